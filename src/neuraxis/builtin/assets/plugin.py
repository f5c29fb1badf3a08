"""Page through a stored object: lines, characters, rows, matches.

Each command gets the object itself through an asset reference and returns JSON that
is small enough to be inline. Lines are counted from 1, as in an editor; rows, items
and characters from 0, as in a reference's path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.assets.describe import describe, size_of
from neuraxis.assets.embed import is_picture
from neuraxis.assets.json_view import to_json_value
from neuraxis.assets.pictures import part_of
from neuraxis.builtin.assets import grep
from neuraxis.builtin.assets.lines import (
    Lines,
    decoded,
    is_table,
    line_of_item,
    lines_of,
)
from neuraxis.builtin.images.pillow import picture_of
from neuraxis.builtin.tables.frames import frame_of
from neuraxis.builtin.tables.views import (
    CHARACTERS,
    beginning,
    cost,
    fitting,
    paged,
    rows_of,
    rows_view,
)
from neuraxis.errors import CommandError
from neuraxis.formatting import counted, size_text, type_name
from neuraxis.plugins.context import Context
from neuraxis.specs import Json

LINE = 2_000
"""Maximum characters of one line; `asset_text` reads the rest."""
MATCH = 300
"""Maximum characters shown of a line that matches."""
KEYS = 50
NAME = 80
"""Maximum characters of a field's name."""


def asset_lines(asset: Any, start: int = 1, count: int = 50) -> dict[str, Json]:
    """Return lines of a text, or items of a list as JSON."""
    lines = lines_of(_opened(asset))
    _check_start(start - 1, lines)
    entries: list[Json] = []
    cut: list[Json] = []
    used = 0
    for number, line in enumerate(lines.since(start - 1), start):
        text = beginning(line.text, LINE)
        used += cost(text) + 1
        if number >= start + count or (entries and used > CHARACTERS):
            break
        entries.append(text)
        if len(line.text) > len(text):
            cut.append({"line": number, "characters": len(line.text)})
            if line.position >= 0:
                cut[-1]["position"] = line.position
    view: dict[str, Json] = {"lines": entries, "total_lines": lines.total}
    if cut:
        view["cut"] = cut
    if start - 1 + len(entries) < lines.total:
        view["next_start"] = start + len(entries)
    return view


def _check_start(index: int, lines: Lines) -> None:
    if index and index >= lines.total:
        raise CommandError(
            f"The text has {counted(lines.total, 'line')}; there is no line "
            f"{index + 1}."
        )


def asset_text(asset: Any, start: int = 0, count: int = 4000) -> dict[str, Json]:
    """Return characters of a text, or of another value's JSON."""
    value = _opened(asset)
    if isinstance(value, bytes | bytearray | memoryview):
        value = decoded(cast("bytes", value))
    text = value if isinstance(value, str) else _json_of(value)
    if start and start >= len(text):
        raise CommandError(
            f"The text has {counted(len(text), 'character')}, counted from 0; there is "
            f"none at {start}."
        )
    part = beginning(text[start : start + count], CHARACTERS)
    view: dict[str, Json] = {"text": part}
    return paged(view, start, len(part), len(text), "total_characters")


def _json_of(value: Any) -> str:
    """Return the JSON of a value; a description is not enough.

    Raises:
        CommandError: it has none.
    """
    plain = isinstance(value, Mapping | list | tuple) or to_json_value(value)[0]
    if not plain:
        raise CommandError(
            f"A {type_name(value)} has no text: {describe(value)}. Look at it with "
            "asset_rows or describe_asset, or give it by its reference to a command "
            "that works with it."
        )
    return line_of_item(value)


def asset_grep(
    asset: Any,
    pattern: str,
    context: Context,
    most: int = 20,
    start: int = 1,
    ignore_case: bool = False,
) -> dict[str, Json]:
    """Search lines, items or rows with a regular expression."""
    lines = lines_of(_opened(asset))
    _check_start(start - 1, lines)
    fits = grep.matcher(pattern, ignore_case)
    matches: list[Json] = []
    used = 0
    view: dict[str, Json] = {"matches": matches, "total_lines": lines.total}
    search = grep.matching(lines.since(start - 1), fits, context.cancelled)
    for index, line in search:
        text, at = grep.window(line.text, fits, MATCH)
        used += cost(text) + 40
        if len(matches) >= most or (matches and used > CHARACTERS):
            view["next_start"] = start + index
            break
        match: dict[str, Json] = {"line": start + index, "text": text}
        if line.position >= 0 and len(line.text) > MATCH:
            match["position"] = line.position + at
        matches.append(match)
    return view


def asset_rows(
    asset: Any, start: int = 0, count: int = 20, columns: list[str] | None = None
) -> dict[str, Json]:
    """Return rows of a table, items of a list, or array rows."""
    value = _opened(asset)
    if is_table(value):
        return rows_of(frame_of(value), start, count, columns)
    rows = hasattr(value, "__getitem__") and getattr(value, "shape", None) != ()
    if isinstance(value, str | bytes) or not rows:
        raise CommandError(f"Expected a table, a list or an array: {describe(value)}.")
    if isinstance(value, Mapping):
        raise CommandError(
            "Expected a table, a list or an array, got an object; refer to one of its "
            f"fields: {', '.join(map(str, list(cast('dict[str, Any]', value))[:20]))}."
        )
    items = cast("Sequence[Any]", value)
    if start and start >= len(items):
        raise CommandError(
            f"The list has {counted(len(items), 'row')}, counted from 0; there is no "
            f"row {start}."
        )
    _check_fields(items, columns or ())
    some = items[start : start + count]
    values = (_item(item, columns) for item in some)
    return rows_view(values, start, len(some), len(items))


def _check_fields(items: Sequence[Any], columns: Sequence[str]) -> None:
    """Refuse a field name that no item has."""
    unmatched = set(columns)
    for item in items if unmatched else ():
        if isinstance(item, Mapping):
            unmatched -= cast("Mapping[Any, Any]", item).keys()
        if not unmatched:
            return
    if unmatched:
        raise CommandError(f"No item has the field {' or '.join(sorted(unmatched))}.")


def _item(item: Any, columns: list[str] | None) -> Any:
    if isinstance(item, dict):
        row = cast("dict[Any, Any]", item)
        return {name: row.get(name) for name in columns} if columns else row
    if getattr(item, "ndim", 0) > 1:
        return describe(item)
    return item.tolist() if hasattr(item, "tolist") else item


def describe_asset(asset: Any) -> dict[str, Json]:
    """Describe an object: its kind, its size and its parts."""
    value = _opened(asset)
    description: dict[str, Json] = {
        "is": describe(value),
        "size": size_text(size_of(value)),
    }
    if isinstance(value, str):
        description["characters"] = len(value)
        description["lines"] = lines_of(value).total
    elif isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        description["fields"] = _fields(list(fields.items())[:KEYS])
        if len(fields) > KEYS:
            description["more_fields"] = len(fields) - KEYS
    elif isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        description["items"] = len(items)
        description["first"] = [describe(item) for item in items[:3]]
    elif is_table(value):
        frame = frame_of(value)
        description["rows"] = frame.height
        schema = list(frame.schema.items())
        description["columns"] = {name: str(kind)[:60] for name, kind in schema[:KEYS]}
        if len(schema) > KEYS:
            description["more_columns"] = [
                name for name, _ in schema[KEYS : KEYS + 100]
            ]
    return description


def _fields(entries: Sequence[tuple[Any, Any]]) -> dict[str, Json]:
    """Describe each field; a long name is cut and marked."""
    descriptions: dict[str, Json] = {}
    for number, (key, item) in enumerate(entries):
        name = str(key)
        if len(name) > NAME:
            name = f"{name[:NAME]}… ({len(name)} characters)"
        while name in descriptions:  # two cut names may be equal
            name = f"{name} #{number + 1}"
        descriptions[name] = describe(item)
    return descriptions


def look_at(asset: Any, context: Context) -> dict[str, Any]:
    """Show a picture or PDF file to the model."""
    value = _opened(asset)
    try:
        part = part_of(value)
    except CommandError:
        if not hasattr(value, "__array_interface__") or is_picture(value):
            raise
        part = part_of(picture_of(value))
    context.show()
    return {"mime_type": part.media_type, "data": part.data}


def list_assets(context: Context, start: int = 0) -> dict[str, Json]:
    """List all objects stored in this session, the oldest first."""
    every = context.assets()
    page = fitting(every[start:])
    return paged({"assets": page}, start, len(page), len(every), "total_assets")


def _opened(asset: Any) -> Any:
    """Return the object; for a whole asset, its response or attachment."""
    return _inside(_inside(asset, "content"), "response", "command")


def _inside(value: Any, name: str, *others: str) -> Any:
    """Return the named field of a wrapper with exactly these fields."""
    if type(value) is not dict:
        return value
    fields = cast("dict[str, Any]", value)
    return fields[name] if set(fields) == {name, *others} else fields
