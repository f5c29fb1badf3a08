"""Replace asset references in a text for the user (rule B62).

A picture is saved into the workspace and shown as a Markdown picture, a table becomes a
Markdown table of its first rows, a text is inserted unchanged. Inserted text is never
scanned for references again. A reference that cannot be resolved or shown stays as
written.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from neuraxis.assets.describe import describe
from neuraxis.assets.json_view import to_json_value
from neuraxis.assets.rows import rows_of
from neuraxis.assets.store import AssetStore
from neuraxis.formatting import sha256
from neuraxis.references.asset_ref import AssetRef, format_url, parse_embedded
from neuraxis.specs import Json

COLUMNS = 12
CELL = 80
TEXT = 20_000
"""Maximum characters of an inserted text; a longer one becomes a file."""
MOST = 50
"""Maximum objects in one text; the rest stay references."""
FILE_BYTES = 10 * 1024 * 1024
"""Default maximum of bytes of a file with a long text."""

Save = Callable[[str, bytes], str]
"""Write a file of that name into the workspace; return its path."""


class CannotBeShown(Exception):
    """Error: the object has no form in a text, or writing failed."""


def embed(
    text: str, store: AssetStore, save: Save, file_bytes: int = FILE_BYTES
) -> str:
    """Replace each reference by a readable form of its object.

    `save` may raise `CannotBeShown`; the object is then described in words, as is a
    text that would be a file of more than `file_bytes`.
    """
    parts: list[str] = []
    at = 0
    for start, end, ref in parse_embedded(text)[:MOST]:
        try:
            shown = _shown(of_root(store.resolve(ref), ref), ref, save, file_bytes)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a lost reference, a number of thousands of digits, a class or its Rust part that raises anything
            continue
        parts += [text[at:start], shown]
        at = end
    parts.append(text[at:])
    return "".join(parts)


def of_root(value: Any, ref: AssetRef) -> Any:
    """Return the content of a whole asset: its response or attachment."""
    if ref.field_path and ref.field_path != ("content",):
        return value
    content: Any = value if ref.field_path else value["content"]
    if type(content) is not dict:
        return content
    fields = cast("dict[str, Any]", content)
    return fields["response"] if set(fields) == {"command", "response"} else fields


def _shown(value: Any, ref: AssetRef, save: Save, file_bytes: int) -> str:
    try:
        if isinstance(value, str):
            return _text(value, ref, save, file_bytes)
        table = rows_of(value)
        if table is not None:
            return _table(*table)
        if is_picture(value):
            return _picture(value, ref, save)
    except CannotBeShown:
        return _in_words(value)
    has_json, json_form = to_json_value(value)
    if not has_json:
        return _in_words(value)
    json_form = _head(json_form, [TEXT + 1])
    if isinstance(json_form, dict | list):
        text = json.dumps(json_form, ensure_ascii=False, indent=2)
        return f"\n```json\n{_cut(text, TEXT)}\n```\n"
    return (
        _cut(json_form, TEXT)
        if isinstance(json_form, str)
        else json.dumps(json_form, ensure_ascii=False)
    )


def _in_words(value: Any) -> str:
    description = describe(value)
    return description if isinstance(description, str) else json.dumps(description)


def _head(value: Json, room: list[int]) -> Json:
    """Return the beginning of a value that `room` characters of JSON show.

    The whole text may be thousands of times as long, since a list may hold the same
    text, or the same list, many times.
    """
    if isinstance(value, str):
        shown = value[: max(room[0], 0)]
        room[0] -= len(value)
        return shown
    room[0] -= 1
    if isinstance(value, dict):
        entries: dict[str, Json] = {}
        for key, item in cast("dict[str, Json]", value).items():
            if room[0] <= 0:
                break
            shown = key[: room[0]]
            room[0] -= len(key)
            entries[shown] = _head(item, room)
        return entries
    if isinstance(value, list):
        items: list[Json] = []
        for item in cast("list[Json]", value):
            if room[0] <= 0:
                break
            items.append(_head(item, room))
        return items
    return value


def _name(ref: AssetRef, ending: str) -> str:
    """Return a file name from the reference; stable for each object."""
    path = ref.field_path
    parts = [ref.asset_id, *(path[2:] if path[:2] == ("content", "response") else path)]
    exact = "-".join(map(str, parts))
    plain = re.sub(r"[^0-9A-Za-z-]", "_", exact)[:80]
    if plain != exact or any("-" in str(part) for part in parts):
        # Another object must not get the same file.
        digest = sha256(format_url(ref).encode("utf-8", "surrogatepass"))
        plain += f"-{digest[:8]}"
    return f"shown/{plain}.{ending}"


def _text(value: str, ref: AssetRef, save: Save, file_bytes: int) -> str:
    if len(value) <= TEXT:
        return value
    if len(value) > file_bytes:  # before it is encoded, which takes memory
        raise CannotBeShown
    path = save(_name(ref, "txt"), value.encode("utf-8", "replace"))
    return f"{value[:TEXT]}…\n\n[{len(value)} characters, the whole text]({path})"


def is_picture(value: Any) -> bool:
    """Check whether a value is a Pillow picture."""
    size = getattr(value, "size", None)
    return (
        isinstance(getattr(value, "mode", None), str)
        and isinstance(size, tuple)
        and callable(getattr(value, "save", None))
    )


def png_of(picture: Any) -> bytes:
    """Return a picture as the bytes of a PNG file.

    Raises:
        OSError, ValueError: it cannot be converted.
    """
    sink = io.BytesIO()
    plain = picture.mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I")
    (picture if plain else picture.convert("RGB")).save(sink, "PNG")
    return sink.getvalue()


def _picture(value: Any, ref: AssetRef, save: Save) -> str:
    try:
        data = png_of(value)
    except (OSError, ValueError) as error:
        raise CannotBeShown from error
    path = save(_name(ref, "png"), data)
    width, height = value.size
    return f"![{ref.asset_id}, {width}x{height}]({path})"


def is_table(value: Any) -> bool:
    """Check whether a value is a library's table or rows."""
    return rows_of(value) is not None


def _table(names: list[str], rows: list[Sequence[Any]], total: int) -> str:
    shown = names[:COLUMNS]
    lines = [
        _row([_cell(name) for name in shown]),
        _row(["---"] * len(shown)),
        *(_row([_cell(value) for value in row[:COLUMNS]]) for row in rows),
    ]
    omitted: list[str] = []
    if total > len(rows):
        omitted.append(f"{total - len(rows)} more rows")
    if len(names) > len(shown):
        omitted.append(f"{len(names) - len(shown)} more columns")
    note = f"\n\n({', '.join(omitted)})" if omitted else ""
    return "\n\n" + "\n".join(lines) + note + "\n\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    """Return a value as a cell of a Markdown table."""
    return _cut(_one_line(value).replace("\\", "\\\\").replace("|", "\\|"), CELL)


def plain_cell(value: Any) -> str:
    """Return a table's value as one short line."""
    return _cut(_one_line(value), CELL)


def _one_line(value: Any) -> str:
    if value is None:
        return ""
    has_json, json_form = to_json_value(value)
    shown = _head(json_form, [TEXT]) if has_json else describe(value)
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    return " ".join(text.split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
