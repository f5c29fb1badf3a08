"""Show a small asset as JSON, beside its reference.

One value that JSON cannot hold makes a whole answer an asset (rule B58). If the rest is
short, the model sees it, with a description in place of that value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from neuraxis.assets.describe import describe
from neuraxis.assets.json_view import as_shown, to_json_value
from neuraxis.assets.rows import rows_of
from neuraxis.specs import Json

CHARACTERS = 1_000
"""Maximum characters, about; a longer value is not shown."""
_DEPTH = 20
_NUMBER = 8
"""Characters of a number, a truth value or a mark, about."""
_WRITTEN = (date, time, timedelta, UUID, Decimal, PurePath, Enum)
"""Types of single values that have a text."""


class _TooLong(Exception):
    """Signal: the value is too long to be shown."""


def preview(value: Any) -> Json:
    """Return a short container or object as JSON; else None."""
    try:
        shown = _shown(value, [CHARACTERS], 0)
    except _TooLong:
        return None
    is_container = isinstance(shown, dict | list)
    return cast("Json", shown) if is_container else None


def _shown(value: Any, room: list[int], depth: int) -> Json:
    _take(room, len(value) + 2 if isinstance(value, str) else _NUMBER)
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return describe(value)
    if depth > _DEPTH:
        raise _TooLong
    if isinstance(value, _WRITTEN):
        return _written(value, room)
    try:
        return _parts(value, room, depth + 1)
    except _TooLong:
        raise
    except Exception:  # noqa: BLE001 - the value's class may raise any
        return describe(value)


def _written(value: Any, room: list[int]) -> Json:
    has_json, written = to_json_value(value)
    if not has_json:  # a decimal that is no number, a member that holds bytes
        written = str(value) if isinstance(value, Decimal) else describe(value)
    _take(room, len(str(written)))
    return written


def _parts(value: Any, room: list[int], depth: int) -> Json:
    if isinstance(value, list | tuple | Set) and not hasattr(
        cast("Any", value), "_fields"
    ):
        members = cast("list[Any]", value)
        return [_shown(item, room, depth) for item in members]
    if isinstance(value, Mapping):
        return _entries(cast("Mapping[Any, Any]", value).items(), room, depth)
    if (table := rows_of(value)) is not None:
        names, rows, total = table
        if total > len(rows):
            raise _TooLong
        if len({*names}) < len(names):  # JSON would keep one of them
            return describe(value)
        return [_entries(zip(names, row, strict=False), room, depth) for row in rows]
    if (shown := as_shown(value)) is not None:
        return _shown(shown, room, depth)
    has_json, written = to_json_value(value)  # numpy's numbers, addresses, deques
    if not has_json:
        written = describe(value)
    _take(room, len(str(written)))
    return written


def _entries(
    pairs: Iterable[tuple[Any, Any]], room: list[int], depth: int
) -> dict[str, Json]:
    shown: dict[str, Json] = {}
    for key, item in pairs:
        name = str(key)
        if name in shown:  # 1 and "1": JSON would keep one of them
            raise _TooLong
        _take(room, len(name) + 2)
        shown[name] = _shown(item, room, depth)
    return shown


def _take(room: list[int], characters: int) -> None:
    room[0] -= characters
    if room[0] < 0:
        raise _TooLong
