"""Describe an object's kind and size to the user, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from neuraxis.assets.describe import detail_of
from neuraxis.assets.embed import COLUMNS, is_picture, plain_cell
from neuraxis.assets.rows import rows_of
from neuraxis.formatting import counted, listed, sha256, size_text, type_name

_ROWS = 3
_BEGINNING = 1_000
"""Maximum characters of an object's beginning."""


def in_words(value: Any) -> str:
    """Return an object's kind and size.

    For example `a table of 5 rows and 2 columns: name, age`.
    """
    try:
        return _kind(value)
    except Exception:  # noqa: BLE001 - the value's class may raise any
        return f"an object of the type {type_name(value)}"


def beginning(value: Any) -> str:
    """Return an object's kind and size, and its beginning."""
    description = in_words(value)
    try:
        first = _first(value)
    except Exception:  # noqa: BLE001 - the value's class may raise any
        return description
    return description + (
        first if len(first) <= _BEGINNING else f"{first[:_BEGINNING]}…"
    )


def _kind(value: Any) -> str:
    if (table := rows_of(value)) is not None:
        names, _, total = table
        size = f"{counted(total, 'row')} and {counted(len(names), 'column')}"
        return f"a table of {size}: {_names(names)}"
    if is_picture(value):
        return f"a picture of {value.size[0]} x {value.size[1]} pixels"
    match value:
        case str():
            return f"a text of {counted(len(value), 'character')}"
        case bytes() | bytearray() | memoryview():
            return size_text(memoryview(cast("bytes", value)).nbytes)
        case list() | tuple():
            return f"a list of {counted(len(cast('Sequence[Any]', value)), 'item')}"
        case dict() if not value:
            return "an empty mapping"
        case dict():
            return f"a mapping with the keys {_names([*cast('dict[Any, Any]', value)])}"
        case None:
            return "nothing"
        case _:
            detail = detail_of(value)
            of = f"an object of the type {type_name(value)}"
            return f"{of} ({detail})" if detail else of


def _names(names: Sequence[Any]) -> str:
    # there may be millions: only the shown ones are converted
    return listed([*map(plain_cell, names[:COLUMNS]), *names[COLUMNS:]], COLUMNS)


def _first(value: Any) -> str:
    if (table := rows_of(value)) is not None:
        rows = table[1][:_ROWS]
        lines = [" | ".join(map(plain_cell, row[:COLUMNS])) for row in rows]
        return "".join(f"\n{row}" for row in lines)
    if is_picture(value) or value is None:
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        raw = cast("bytes", value)
        return f", sha256 {sha256(raw)[:16]}: {bytes(raw[:_BEGINNING])!r}"
    return f": {value!r:.{_BEGINNING}}"
