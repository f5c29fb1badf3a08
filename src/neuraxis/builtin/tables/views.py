"""A part of a table flows in; JSON small enough to be said flows out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from neuraxis.assets.describe import describe
from neuraxis.assets.sayable import sayable
from neuraxis.builtin.tables.frames import check_columns
from neuraxis.errors import CommandError
from neuraxis.specs import Json

CHARACTERS = 8_000
"""Characters of one view: well below the size at which an answer becomes an asset."""
CELL = 500
"""Characters of one cell; the rest is told by its length."""


def cell(value: Any) -> Json:
    """One value as JSON: dates as text, a long text cut, what is no JSON described."""
    if isinstance(value, str):
        cut = len(value) - CELL
        return value if cut <= 0 else f"{value[:CELL]}… ({len(value)} characters)"
    if isinstance(value, float) and value != value:
        return None
    can_be_said, said = sayable(value)
    if not can_be_said:
        return describe(value)
    if isinstance(said, list | dict):
        text = json.dumps(said, ensure_ascii=False)
        if len(text) > CELL:
            return f"{text[:CELL]}… ({len(text)} characters)"
    return cast("Json", said)


def rows_of(
    frame: Any, start: int, count: int, columns: Sequence[str] | None
) -> dict[str, Json]:
    """Some rows of a data frame, as many as fit into `CHARACTERS`.

    Raises:
        CommandError: there is no such column or row.
    """
    if columns:
        check_columns(frame, columns)
        frame = frame.select(columns)
    total: int = frame.height
    if start and start >= total:
        raise CommandError(
            f"The table has {total} rows, counted from 0; there is no row {start}."
        )
    told = fitting(
        {name: cell(value) for name, value in row.items()}
        for row in frame.slice(start, count).iter_rows(named=True)
    )
    return paged({"rows": told}, start, len(told), total, "total_rows")


def fitting(items: Any) -> list[Json]:
    """The first items that stay within `CHARACTERS` together; at least one."""
    told: list[Json] = []
    used = 0
    for item in items:
        used += len(json.dumps(item, ensure_ascii=False)) + 2
        if told and used > CHARACTERS:
            break
        told.append(item)
    return told


def paged(
    view: dict[str, Json], start: int, shown: int, total: int, name: str
) -> dict[str, Json]:
    """A view with how much there is, and where the next page begins."""
    view[name] = total
    if start + shown < total:
        view["next_start"] = start + shown
    return view
