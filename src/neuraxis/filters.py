"""A value of a result and a filter's arguments flow in; the filtered value flows out.

The filters of the `{{ … }}` grammar: a closed table of pure functions over JSON values.
Each is bounded by a `Budget` (20,000 elements touched, 1 MiB of text made), which is
asked before the work is done and not after.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import pathlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuraxis.errors import NeuraxisError
from neuraxis.messages import Problem
from neuraxis.paths import MISSING, available, child, keys_of
from neuraxis.sentences import problem_text, quote, type_name
from neuraxis.specs import Json

MOST_STEPS = 20_000
MOST_TEXT = 1 << 20


class ReferenceFailure(NeuraxisError):
    """A reference cannot be given its value; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem_text(problem))

    @property
    def message(self) -> str:
        """The problem as a sentence without its full stop."""
        return problem_text(self.problem)


class Budget:
    """What one template may still cost."""

    __slots__ = ("steps", "text")

    def __init__(self, steps: int = MOST_STEPS, text: int = MOST_TEXT) -> None:
        self.steps = steps
        self.text = text

    def spend_steps(self, count: int) -> None:
        """Count elements before they are touched."""
        self.steps -= count
        if self.steps < 0:
            raise failure(
                f"at most {MOST_STEPS:,} elements in one reference",
                "a larger value",
            )

    def spend_text(self, length: int) -> None:
        """Count characters before they are written."""
        self.text -= length
        if self.text < 0:
            raise failure(
                f"at most {MOST_TEXT:,} characters of text from references",
                "more; pass the value whole, without text around and filters",
            )


def failure(
    expected: str, got: str, candidates: tuple[str, ...] = ()
) -> ReferenceFailure:
    """A failure whose place is filled in by `references.evaluate`."""
    return ReferenceFailure(
        Problem(
            expected=expected, got=got, candidates=candidates[:20], keyword="reference"
        )
    )


# --- text ----------------------------------------------------------------------


def as_text(value: Any, budget: Budget, indent: int | None = None) -> str:
    """A string as it is, any other JSON value as JSON (rule C20)."""
    if isinstance(value, str):
        budget.spend_text(len(value))
        return value
    return to_json(value, budget, indent)


def to_json(value: Any, budget: Budget, indent: int | None = None) -> str:
    """JSON text of a value, within the budget."""
    nodes = _measure(value, budget.text)
    if indent is not None:
        # The indenting encoder is a slow one: count each element.
        budget.spend_steps(nodes)
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain
        )
    except RecursionError:
        raise failure("a value that is less deeply nested", "a deeper one") from None
    except (TypeError, ValueError):
        raise failure(
            "a value that JSON can hold, to make text of it", type_name(value)
        ) from None
    budget.spend_text(len(text))
    return text


def _measure(value: Any, limit: int) -> int:
    """How many elements; stops as soon as the JSON text must be over the limit."""
    nodes, length = 0, 0
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        nodes += 1
        if isinstance(node, str):
            length += len(node)
        elif isinstance(node, dict):
            entries: dict[Any, Any] = node
            length += 4 * len(entries)
            if length <= limit:
                stack.extend(entries.values())
        elif isinstance(node, (list, tuple)):
            items: Sequence[Any] = node
            length += 3 * len(items)
            if length <= limit:
                stack.extend(items)
        if length > limit:
            Budget(text=0).spend_text(length)
    return nodes


def _plain(value: Any) -> Json:
    """JSON for the few classes that have one obvious written form (rule B57)."""
    match value:
        case datetime.date() | datetime.time():
            return value.isoformat()
        case uuid.UUID() | decimal.Decimal() | pathlib.PurePath():
            return str(value)
        case enum.Enum():
            return value.value
        case Mapping():
            entries: Mapping[Any, Any] = value
            return dict(entries)
        case _:
            raise TypeError(type_name(value))


# --- the table -----------------------------------------------------------------

Arguments = tuple[Json, ...]


def _items(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, (list, tuple)):
        items: Sequence[Any] = value
        return items
    raise failure(f"a list before the filter {name}", type_name(value))


def _string(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    raise failure(f"a text before the filter {name}", type_name(value))


def _part(item: Any, key: Json, otherwise: Json) -> Any:
    if not isinstance(key, (str, int)) or isinstance(key, bool):
        raise failure("a field name in quotes", quote(key))
    found = child(item, key)
    if found is not MISSING:
        return found
    if otherwise is not None:
        return otherwise
    raise failure(
        f"the field {quote(key)} in each element",
        available(item),
        keys_of(item, key),
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


def _length(value: Any, arguments: Arguments, budget: Budget) -> int:
    if isinstance(value, (str, list, tuple, Mapping)):
        sized: Sequence[Any] | Mapping[Any, Any] = value
        return len(sized)
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
    # Only growth can pass the limit: count it before the text is made.
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
    if not math.isfinite(number):
        raise failure("a finite number before the filter round", str(number))
    return round(number, digits) if digits else round(number)


def _cast(
    name: str, kind: Callable[[Any], int | float]
) -> Callable[[Any, Arguments, Budget], Any]:
    def run(value: Any, arguments: Arguments, budget: Budget) -> Any:
        if isinstance(value, (str, int, float)):
            try:
                number = kind(value)
            except (ValueError, OverflowError):
                number = math.nan
            if math.isfinite(number):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSpec:
    """A filter: its parameters' names, the values of those left out, the function."""

    run: Callable[[Any, Arguments, Budget], Any]
    parameters: tuple[str, ...] = ()
    defaults: tuple[Json, ...] = ()


def _default(value: Any, arguments: Arguments, budget: Budget) -> Any:
    """Missing or null gives the default; with `true` also what is empty."""
    empty = isinstance(value, (str, list, dict, int, float)) and not value
    return arguments[0] if value is None or (arguments[1] and empty) else value


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
    "trim": FilterSpec(run=_changed("trim", str.strip)),
    "upper": FilterSpec(run=_changed("upper", str.upper)),
}
ALIASES: Mapping[str, str] = {"count": "length", "d": "default", "to_json": "tojson"}
