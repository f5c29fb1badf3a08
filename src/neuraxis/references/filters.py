"""Filters of the `{{ … }}` grammar: pure functions over JSON values.

Each charges its `Budget` (20,000 elements touched, 1 MiB of text made, 10 million
elements copied by slices) before it does the work. `apply` runs the operations of an
expression one after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from neuraxis.formatting import nearest, quote, type_name
from neuraxis.references.path import MISSING, available, child, keys_of
from neuraxis.references.render import (
    Budget,
    ReferenceFailure,
    as_text,
    failure,
    to_json,
    to_python,
)
from neuraxis.specs import Json


class Slice(Struct, frozen=True, kw_only=True):
    """Slice `[start:stop:step]`."""

    start: int | None = None
    stop: int | None = None
    step: int | None = None


class Filter(Struct, frozen=True, kw_only=True):
    """Filter `| name(arguments)`, with every argument in its place."""

    name: str
    arguments: tuple[Json, ...] = ()


Operation = str | int | Slice | Filter
"""Key, index, slice or filter."""


# --- the table -----------------------------------------------------------------

Arguments = tuple[Json, ...]
AROUND = ("response", "result", "output", "value")
"""Wrapper keys that models put before a field by mistake."""
LEAVE_OUT = "; leave out .{}, which is no part of the answer"
COUNTS = "; | length counts it"
_EXACT = 2**53
"""Limit below which floats represent every whole number exactly."""


def _items(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, (list, tuple)):
        return cast("Sequence[Any]", value)
    raise failure(f"a list before the filter {name}", type_name(value))


def _string(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    raise failure(f"a text before the filter {name}", type_name(value))


def _part(item: Any, key: Json, otherwise: Json) -> Any:
    if not isinstance(key, (str, int)) or isinstance(key, bool):
        raise failure("a field name in quotes", quote(key))
    part_value = child(item, key)
    if part_value is not MISSING:
        return part_value
    if otherwise is not None:
        return otherwise
    raise failure(
        f"the field {quote(key)} in each element",
        available(item),
        _candidates(item, key),
    )


def _join(value: Any, arguments: Arguments, budget: Budget) -> str:
    items = _items(value, "join")
    separator, attribute = arguments
    between = _string(separator, "join")
    budget.spend_steps(len(items))
    budget.spend_text(len(between) * max(0, len(items) - 1))
    if attribute is not None:
        items = [_part(item, attribute, None) for item in items]
    return between.join([as_text(item, budget) for item in items])


def _tojson(value: Any, arguments: Arguments, budget: Budget) -> str:
    indent = arguments[0]
    if indent is not None and not (type(indent) is int and 0 <= indent <= 8):
        raise failure("an indent of 0 to 8", quote(indent))
    return to_json(value, budget, indent)


def _topython(value: Any, arguments: Arguments, budget: Budget) -> str:
    return to_python(value, budget)


def _length(value: Any, arguments: Arguments, budget: Budget) -> int:
    if isinstance(value, (str, list, tuple, Mapping)):
        return len(cast("Sequence[Any]", value))
    raise failure("a list, an object or a text before length", type_name(value))


def _end(name: str, index: int) -> Callable[[Any, Arguments, Budget], Any]:
    def take(value: Any, arguments: Arguments, budget: Budget) -> Any:
        items = value if isinstance(value, str) else _items(value, name)
        return items[index] if items else MISSING

    return take


def _map(value: Any, arguments: Arguments, budget: Budget) -> list[Any]:
    items = _items(value, "map")
    budget.spend_steps(len(items))
    key, otherwise = arguments
    return [_part(item, key, otherwise) for item in items]


def _changed(
    name: str, change: Callable[[str], str]
) -> Callable[[Any, Arguments, Budget], str]:
    def run(value: Any, arguments: Arguments, budget: Budget) -> str:
        text = _string(value, name)
        budget.spend_text(len(text))
        return change(text)

    return run


def _replace(value: Any, arguments: Arguments, budget: Budget) -> str:
    text = _string(value, "replace")
    old, new = (_string(argument, "replace") for argument in arguments)
    if not old:
        raise failure("a text to replace that is not empty", '""')
    budget.spend_text(len(text))
    # only growth can exceed the limit: count it before making the text
    if len(new) > len(old):
        budget.spend_text(text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _number(value: Any, name: str) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise failure(f"a number before the filter {name}", type_name(value))


def _round(value: Any, arguments: Arguments, budget: Budget) -> int | float:
    number, digits = _number(value, "round"), arguments[0]
    if type(digits) is not int or not 0 <= digits <= 15:
        raise failure("0 to 15 digits for round", quote(digits))
    if isinstance(number, int):
        return number
    if not math.isfinite(number):
        raise failure("a finite number before the filter round", str(number))
    return round(number, digits) if digits else round(number)


def _converted(value: Any, kind: Callable[[Any], int | float]) -> int | float | None:
    """Convert a number, or a text of one; None for other values."""
    if not isinstance(value, (str, int, float)):
        return None
    try:
        try:
            number = kind(value)
        except ValueError:
            # "12.0" for an integer, as 12.0 is accepted, too
            number = kind(float(value))
            if abs(number) >= _EXACT:
                return None  # conversion would change the number
    except (ValueError, OverflowError):
        return None
    return number if isinstance(number, int) or math.isfinite(number) else None


def _cast(
    name: str, kind: Callable[[Any], int | float]
) -> Callable[[Any, Arguments, Budget], Any]:
    def run(value: Any, arguments: Arguments, budget: Budget) -> Any:
        number = _converted(value, kind)
        if number is not None:
            return number
        if arguments[0] is not None:
            return arguments[0]
        raise failure(f"a number, or a text that is one, before {name}", quote(value))

    return run


def _list(value: Any, arguments: Arguments, budget: Budget) -> list[Any]:
    items = _items(value, "list")
    return items if isinstance(items, list) else list(items)


def _text(value: Any, arguments: Arguments, budget: Budget) -> str:
    return as_text(value, budget)


class FilterSpec(Struct, frozen=True, kw_only=True):
    """Specification of a filter: parameter names, default values, function."""

    run: Callable[[Any, Arguments, Budget], Any]
    parameters: tuple[str, ...] = ()
    defaults: tuple[Json, ...] = ()


def _default(value: Any, arguments: Arguments, budget: Budget) -> Any:
    """Return the default for missing or null; with `true` also for empty."""
    if value is None:
        return arguments[0]
    # a plugin's class may raise an exception in bool(): check JSON types only
    is_json = type(value) in (str, list, dict, bool, int, float)
    return arguments[0] if arguments[1] and is_json and not value else value


FILTERS: Mapping[str, FilterSpec] = {
    "default": FilterSpec(
        run=_default, parameters=("default_value", "boolean"), defaults=(False,)
    ),
    "first": FilterSpec(run=_end("first", 0)),
    "float": FilterSpec(
        run=_cast("float", float), parameters=("default",), defaults=(None,)
    ),
    "int": FilterSpec(run=_cast("int", int), parameters=("default",), defaults=(None,)),
    "join": FilterSpec(run=_join, parameters=("d", "attribute"), defaults=("", None)),
    "last": FilterSpec(run=_end("last", -1)),
    "length": FilterSpec(run=_length),
    "list": FilterSpec(run=_list),
    "lower": FilterSpec(run=_changed("lower", str.lower)),
    "map": FilterSpec(run=_map, parameters=("attribute", "default"), defaults=(None,)),
    "replace": FilterSpec(run=_replace, parameters=("old", "new")),
    "round": FilterSpec(run=_round, parameters=("precision",), defaults=(0,)),
    "string": FilterSpec(run=_text),
    "tojson": FilterSpec(run=_tojson, parameters=("indent",), defaults=(None,)),
    "topython": FilterSpec(run=_topython),
    "trim": FilterSpec(run=_changed("trim", str.strip)),
    "upper": FilterSpec(run=_changed("upper", str.upper)),
}
ALIASES: Mapping[str, str] = {"count": "length", "d": "default", "to_json": "tojson"}


# --- evaluating ----------------------------------------------------------------


def apply(value: Any, operations: Sequence[Operation], budget: Budget) -> Any:
    """Apply the operations to a value, one after another.

    What is missing stays missing until a `default` replaces it.

    Raises:
        ReferenceFailure: a key, an index or a fitting type is missing; says which
            keys exist.
    """
    missing: ReferenceFailure | None = None
    for place, operation in enumerate(operations):
        if isinstance(operation, Filter):
            if missing is not None:
                if operation.name != "default":
                    raise missing
                value, missing = None, None
            before = value
            spec = FILTERS[operation.name]
            value = spec.run(value, operation.arguments, budget)
            if value is MISSING:
                missing = failure(f"an element for {operation.name}", available(before))
        elif missing is None:
            result = _take(value, operation, budget)
            if result is MISSING:
                missing = failure(
                    _wanted(operation),
                    available(value) + _instead(value, operations[place:]),
                    _candidates(value, operation),
                )
            value = result
    if missing is not None:
        raise missing
    return value


def _take(value: Any, operation: str | int | Slice, budget: Budget) -> Any:
    if isinstance(operation, Slice):
        if not isinstance(value, (list, tuple, str)):
            return MISSING
        items = cast("Sequence[Any]", value)
        part = slice(operation.start, operation.stop, operation.step)
        budget.spend_copied(len(range(*part.indices(len(items)))))
        return items[part]
    if isinstance(operation, int) and operation < 0:
        if not isinstance(value, (list, tuple)):
            return MISSING
        items = cast("Sequence[Any]", value)
        return items[operation] if -operation <= len(items) else MISSING
    return child(value, operation)


def _wanted(operation: str | int | Slice) -> str:
    if isinstance(operation, Slice):
        return "a list or a text to take a part of"
    return f"the {'key' if isinstance(operation, str) else 'index'} {quote(operation)}"


def _candidates(value: Any, operation: str | int | Slice) -> tuple[str, ...]:
    """Return the keys most similar to the missing one, for the message."""
    if not isinstance(operation, str) or not isinstance(value, Mapping):
        return ()
    return nearest(operation, keys_of(value)[:200])


def _instead(value: Any, operations: Sequence[Operation]) -> str:
    """Suggest the part meant by a missing one; "" if unclear."""
    part = operations[0]
    next_operation = operations[1] if len(operations) > 1 else None
    if part in ("length", "size") and isinstance(value, (list, tuple, str)):
        return COUNTS
    if part in AROUND and (
        child(value, next_operation) is not MISSING
        if isinstance(next_operation, (str, int))
        else not isinstance(value, Mapping)
    ):
        return LEAVE_OUT.format(part)
    if isinstance(part, str) and isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        if items and child(items[0], part) is not MISSING:
            return f"; [0] takes the first, | map({quote(part)}) this key of each"
    return ""
