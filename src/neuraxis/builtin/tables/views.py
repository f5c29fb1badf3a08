"""Render part of a table as JSON that fits inline.

The rows may also be passed by reference, so the data never contains notes: cut cells
are listed next to the rows, under `cut`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from neuraxis.assets.describe import describe
from neuraxis.assets.json_view import to_json_value
from neuraxis.builtin.tables.frames import check_columns
from neuraxis.errors import CommandError
from neuraxis.formatting import counted
from neuraxis.specs import Json

CHARACTERS = 8_000
"""Maximum characters of one view, well below the asset limit."""
LARGEST = 15_000
"""Maximum bytes of one view, as the runtime measures its JSON."""
CELL = 500
"""Minimum characters shown of each cell; more if there are few cells."""
_LEAST = 20
_INSIDE = 1_000
"""Maximum items of a list in a cell that are looked at one by one."""


def cell(value: Any) -> Json:
    """Return one value as JSON: dates as text, other objects described."""
    kind = cast("type[Any]", type(value))
    if kind is list and len(value) <= _INSIDE:
        return [_one(item) for item in value]
    if kind is dict and len(value) <= _INSIDE:
        return {str(key): _one(item) for key, item in value.items()}
    return _one(value)


def _one(value: Any) -> Json:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value != value:
        return None
    has_json, json_form = to_json_value(value)
    return json_form if has_json else describe(value)


def _with_nanoseconds(frame: Any) -> Any:
    """Return moments as text if Python would cut their nanoseconds off."""
    texts = [
        column.dt.to_string("iso:strict")
        for column in frame
        if str(column.dtype).startswith(("Time", "Datetime(time_unit='ns'"))
        and (column.dt.nanosecond() % 1000 > 0).any()
    ]
    return frame.with_columns(texts) if texts else frame


def rows_of(
    frame: Any, start: int, count: int, columns: Sequence[str] | None
) -> dict[str, Json]:
    """Return rows of a data frame, as many as fit into `CHARACTERS`.

    Raises:
        CommandError: there is no such column or row.
    """
    if columns:
        check_columns(frame, columns)
        frame = frame.select(columns)
    total: int = frame.height
    if start and start >= total:
        raise CommandError(
            f"The table has {counted(total, 'row')}, counted from 0; there is no row "
            f"{start}."
        )
    part = _with_nanoseconds(frame.slice(start, count))
    return rows_view(part.iter_rows(named=True), start, part.height, total)


def rows_view(
    items: Iterator[Any], start: int, count: int, total: int
) -> dict[str, Json]:
    """Return up to `count` rows or items from `start`, with cuts."""
    rows_shown: list[Json] = []
    cut: list[Json] = []
    used = 0
    for index, item in enumerate(items, start):
        cells = max(1, len(cast("Any", item))) if isinstance(item, dict) else 1
        cell_limit = CHARACTERS // cells - 100
        row, shorter = _row(item, index, max(CELL, cell_limit // count))
        if not rows_shown and cost([row, shorter]) > CHARACTERS:
            row, shorter = _row(item, index, max(_LEAST, cell_limit))
        used += cost([row, shorter])
        if rows_shown and used > CHARACTERS:
            break
        rows_shown.append(row)
        cut += shorter
    view: dict[str, Json] = {"rows": rows_shown}
    if cut:
        view["cut"] = cut
    return paged(view, start, len(rows_shown), total, "total_rows")


def _row(item: Any, index: int, room: int) -> tuple[Json, list[Json]]:
    """Return a row as JSON, and its cells that were cut."""
    if not isinstance(item, dict):
        value, length = _shortened(cell(item), room)
        return value, [{"row": index, "characters": length}] if length else []
    row: dict[str, Json] = {}
    cut: list[Json] = []
    for name, value in cast("dict[Any, Any]", item).items():
        row[str(name)], length = _shortened(cell(value), room)
        if length:
            cut.append({"row": index, "column": str(name), "characters": length})
    return row, cut


def _shortened(value: Json, room: int) -> tuple[Json, int]:
    """Return the beginning of a long value, and its length or 0."""
    if not isinstance(value, list | dict | str):
        return value, 0
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    part = beginning(text, room)
    if len(part) == len(text):
        return cast("Json", value), 0
    return part, len(text)


def cost(value: Json) -> int:
    """Return a value's share of `CHARACTERS`; non-ASCII letters cost more."""
    return max(
        len(json.dumps(value, ensure_ascii=False)),
        len(json.dumps(value)) * CHARACTERS // LARGEST,
    )


def beginning(text: str, room: int) -> str:
    """Return the longest beginning of a text within a cost."""
    part = text[:room]
    while (length := len(json.dumps(part)) * CHARACTERS // LARGEST) > room:
        part = part[: len(part) * room // length]
    return part


def fitting(items: Any) -> list[Json]:
    """Return the first items that fit into `CHARACTERS`; at least one."""
    fitted: list[Json] = []
    used = 0
    for item in items:
        used += cost(item)
        if fitted and used > CHARACTERS:
            break
        fitted.append(item)
    return fitted


def paged(
    view: dict[str, Json], start: int, shown: int, total: int, name: str
) -> dict[str, Json]:
    """Return a view with the total and the next page's start."""
    view[name] = total
    if start + shown < total:
        view["next_start"] = start + shown
    return view
