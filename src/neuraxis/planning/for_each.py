"""Read the `for_each` of a call: a list or a reference.

A step with `for_each` runs once for each item; `{{ item }}` in its arguments stands
for the item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from neuraxis import call_errors
from neuraxis.messages import Problem
from neuraxis.planning.plan import ITEM, Loop
from neuraxis.planning.references import CallReader
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.evaluate import fill_in
from neuraxis.references.find import find_places as places_of
from neuraxis.references.path import available
from neuraxis.references.template import Expression
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

DEFAULT_MAX_ITEMS = 20
"""Maximum items of a loop without `max_items`."""
MAX_ITEMS = 1_000
"""Upper limit of `max_items`."""

_KEY = "$for_each"
_ANYTHING = Schema(
    {
        "type": "object",
        "properties": {_KEY: {"x-asset-ref": True, "items": {"x-asset-ref": True}}},
    }
)
_LIST = Schema({"type": "array"})


def items_of(loop: Loop, resolve: Callable[[AssetRef], Any]) -> Any:
    """Return the resolved list, or whatever the reference leads to."""
    values = {_KEY: loop.value}
    return fill_in(values, loop.bindings, loop.asset_refs, resolve)[_KEY]


def read_loop(reading: CallReader) -> Loop | None:
    """Read the loop of a call; return None after reporting a mistake.

    Afterwards the reader accepts references to `item` in the arguments.
    """
    call, work = reading.call, reading.work
    limit = DEFAULT_MAX_ITEMS if call.max_items is None else call.max_items
    errors_before = len(work.errors)
    if not 1 <= limit <= MAX_ITEMS:
        _refuse(reading, "$max_items", f"1 to {MAX_ITEMS}", str(call.max_items))
    reader = CallReader(index=reading.index, call=call, schema=_ANYTHING, work=work)
    values = {_KEY: call.for_each}
    if work.lenient and isinstance(call.for_each, str):
        # spaces around a reference, or a list written as text
        values[_KEY], notes = _LIST.coerce(call.for_each.strip())
        where = call_errors.path_text((_KEY,), work.target(reading.index))
        reading.notes += [f"{where}: {note.partition(': ')[2]}" for note in notes]
    value: Json = reader.read(values, places_of(values))[_KEY]
    reading.depends |= reader.depends
    reading.notes += reader.notes
    reading.warnings += reader.warnings
    reading.extra = {ITEM: ITEM}
    bindings = [binding for binding in reader.bindings if binding.path == (_KEY,)]
    is_reference = any(path == (_KEY,) for path, _ in reader.asset_refs)
    if len(work.errors) > errors_before:
        return None
    if bindings:
        template = bindings[0].template
        if not template.whole:
            got = call_errors.quote(call.for_each)
            _refuse(reading, _KEY, "a list, or one reference without text around", got)
            return None
        reading.items_of = cast("Expression", template.parts[0])
    elif (_KEY,) in reader.refused:
        pass  # a plan parameter without a value yet
    elif not is_reference and not isinstance(value, list):
        _refuse(
            reading, _KEY, "a list, or a reference to one", call_errors.quote(value)
        )
        return None
    elif isinstance(value, list) and len(cast("list[Json]", value)) > limit:
        count = len(cast("list[Json]", value))
        _refuse(reading, _KEY, _at_most(limit), f"{count} items")
        return None
    return Loop(
        value=value,
        most=limit,
        bindings=tuple(reader.bindings),
        asset_refs=tuple(reader.asset_refs),
    )


def list_problem(items: Any, limit: int) -> Problem | None:
    """Return why a resolved value is no valid list of items."""
    if not isinstance(items, list | tuple):
        return Problem(path=(_KEY,), expected="a list", got=available(items))
    count = len(cast("list[Any]", items))
    if count > limit:
        return Problem(path=(_KEY,), expected=_at_most(limit), got=f"{count} items")
    return None


def _at_most(limit: int) -> str:
    return (
        f"at most {limit} items (take a part of the list, [:{limit}], or write "
        f'"$max_items", at most {MAX_ITEMS})'
    )


def _refuse(reading: CallReader, key: str, expected: str, got: str) -> None:
    work, index = reading.work, reading.index
    problem = Problem(path=(key,), expected=expected, got=got)
    work.add_error(index, call_errors.invalid_param(work.target(index), [problem]))
