"""Read the `for_each` of a call: a list or a reference.

A step with `for_each` runs once for each item; `{{ item }}` in its arguments stands
for the item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.messages import Path, Problem
from neuraxis.planning.references import ITEM, CallReader
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.evaluate import fill_in
from neuraxis.references.find import find_places as places_of
from neuraxis.references.path import available
from neuraxis.references.template import Binding, Expression
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

MOST_ITEMS = 20
"""Maximum items of a loop without `max_items`."""
HARD_MOST = 1_000
"""Upper limit of `max_items`."""

_KEY = "$for_each"
_ANYTHING = Schema(
    {
        "type": "object",
        "properties": {_KEY: {"x-asset-ref": True, "items": {"x-asset-ref": True}}},
    }
)
_LIST = Schema({"type": "array"})


class Item(Struct, frozen=True, kw_only=True):
    """One item of a loop, and its index in the list."""

    index: int
    value: Any
    part_of: str
    """Id of the step's call."""


class Loop(Struct, frozen=True, kw_only=True):
    """Loop of a step: `value`, with references at the other fields' paths."""

    value: Json
    most: int
    bindings: tuple[Binding, ...] = ()
    asset_refs: tuple[tuple[Path, AssetRef], ...] = ()

    def items(self, resolve: Callable[[AssetRef], Any]) -> Any:
        """Return the resolved list; the value itself if it is none."""
        written = {_KEY: self.value}
        return fill_in(written, self.bindings, self.asset_refs, resolve)[_KEY]


def read_loop(reading: CallReader) -> Loop | None:
    """Read the loop of a call; None after reporting a mistake.

    The arguments may refer to `item` from now on.
    """
    call, work = reading.call, reading.work
    most = MOST_ITEMS if call.max_items is None else call.max_items
    before = len(work.errors)
    if not 1 <= most <= HARD_MOST:
        _refuse(reading, "$max_items", f"1 to {HARD_MOST}", str(call.max_items))
    own = CallReader(here=reading.here, call=call, schema=_ANYTHING, work=work)
    written = {_KEY: call.for_each}
    if work.lenient and isinstance(call.for_each, str):
        # blanks around a reference, or a list that was written as text
        written[_KEY], notes = _LIST.coerce(call.for_each.strip())
        where = call_errors.path_text((_KEY,), work.target(reading.here))
        reading.notes += [f"{where}: {note.partition(': ')[2]}" for note in notes]
    value: Json = own.read(written, places_of(written))[_KEY]
    reading.depends |= own.depends
    reading.notes += own.notes
    reading.warnings += own.warnings
    reading.extra = {ITEM: ITEM}
    whole = [binding for binding in own.bindings if binding.path == (_KEY,)]
    is_reference = any(path == (_KEY,) for path, _ in own.asset_refs)
    if len(work.errors) > before:
        return None
    if whole:
        template = whole[0].template
        if not template.whole:
            got = call_errors.quote(call.for_each)
            _refuse(reading, _KEY, "a list, or one reference without text around", got)
            return None
        reading.items_of = cast("Expression", template.parts[0])
    elif (_KEY,) in own.refused:
        pass  # a parameter whose value is not known yet
    elif not is_reference and not isinstance(value, list):
        _refuse(
            reading, _KEY, "a list, or a reference to one", call_errors.quote(value)
        )
        return None
    elif isinstance(value, list) and len(cast("list[Json]", value)) > most:
        count = len(cast("list[Json]", value))
        _refuse(reading, _KEY, _at_most(most), f"{count} items")
        return None
    return Loop(
        value=value,
        most=most,
        bindings=tuple(own.bindings),
        asset_refs=tuple(own.asset_refs),
    )


def wrong_items(items: Any, most: int) -> Problem | None:
    """Return why a resolved value cannot be the loop's list."""
    if not isinstance(items, list | tuple):
        return Problem(path=(_KEY,), expected="a list", got=available(items))
    count = len(cast("list[Any]", items))
    if count > most:
        return Problem(path=(_KEY,), expected=_at_most(most), got=f"{count} items")
    return None


def is_of(call_id: str, ids: set[str]) -> bool:
    """Check whether a call, or its item, belongs to these calls."""
    return call_id in ids or call_id.rpartition(".")[0] in ids


def _at_most(most: int) -> str:
    return (
        f"at most {most} items (take a part of the list, [:{most}], or write "
        f'"$max_items", at most {HARD_MOST})'
    )


def _refuse(reading: CallReader, key: str, expected: str, got: str) -> None:
    work, here = reading.work, reading.here
    problem = Problem(path=(key,), expected=expected, got=got)
    work.tell(here, call_errors.invalid_param(work.target(here), [problem]))
