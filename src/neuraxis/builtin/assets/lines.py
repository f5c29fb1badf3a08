"""Split a stored value into lines, without copying it all.

A text has its own lines; a list or a table has one line of JSON for each item or row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from neuraxis.assets.describe import describe
from neuraxis.assets.json_view import to_json_value
from neuraxis.builtin.tables.frames import frame_of
from neuraxis.builtin.tables.views import cell
from neuraxis.errors import CommandError
from neuraxis.formatting import type_name
from neuraxis.specs import Json

_SLICE = 1000
DEPTH = 20
"""Maximum depth of the search for values without a JSON form."""
PARTS = 10_000
"""Maximum lists and objects in one item; each occurrence counts."""
TABLES = ("polars", "pandas", "pyarrow")


class Line(Struct, frozen=True):
    """One line; `position` is its offset in the text, -1 for JSON."""

    text: str
    position: int = -1


class Lines(Struct, frozen=True):
    """Lines of a value."""

    total: int
    since: Callable[[int], Iterator[Line]]
    """Yield the lines from an index on, counted from 0."""


def lines_of(value: Any) -> Lines:
    """Return the lines of a text, list, mapping, table or array.

    Raises:
        CommandError: the value has none (a picture, a number).
    """
    if isinstance(value, bytes | bytearray | memoryview):
        value = decoded(cast("bytes", value))
    if isinstance(value, str):
        text = value
        total = text.count("\n") + (not text.endswith("\n") and bool(text))
        return Lines(total, lambda first: _of_text(text, first))
    if isinstance(value, Mapping):
        pairs = list(cast("Mapping[Any, Any]", value).items())
        return Lines(
            len(pairs),
            lambda first: (
                Line(
                    f"{json.dumps(str(key), ensure_ascii=False)}: {line_of_item(item)}"
                )
                for key, item in pairs[first:]
            ),
        )
    if is_table(value):
        frame = frame_of(value)
        return Lines(frame.height, lambda first: _of_table(frame, first))
    if isinstance(value, list | tuple) or getattr(value, "shape", ()):
        items = cast("list[Any]", value)
        return Lines(
            len(items),
            lambda first: (
                Line(line_of_item(items[index])) for index in range(first, len(items))
            ),
        )
    raise CommandError(
        f"A {type_name(value)} has no lines: {describe(value)}. A command that works "
        "with it takes it by its reference."
    )


def decoded(value: bytes) -> str:
    """Return bytes, or an object that contains bytes, as text.

    Raises:
        CommandError: they are not text.
    """
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"The bytes are no text in UTF-8 (byte {error.start} is none)."
        ) from None


def is_table(value: Any) -> bool:
    """Return whether the value is a known data frame, without imports."""
    cls = cast("type[Any]", type(value))
    package = cls.__module__.partition(".")[0]
    return package in TABLES and cls.__name__ in ("DataFrame", "Table")


def line_of_item(item: Any) -> str:
    """Return an item as one line of JSON, with descriptions where needed."""
    value = _plain(item, (), [PARTS])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(item: Any, ancestors: tuple[int, ...], left: list[int]) -> Json:
    """Return the JSON form of an item.

    Args:
        item: a value.
        ancestors: the ids of its containers, since it may contain itself.
        left: the remaining number of parts.
    """
    left[0] -= 1
    if left[0] < 0:
        return describe(item)
    item = item.tolist() if hasattr(item, "tolist") else item
    has_json, json_form = to_json_value(item)
    if has_json:
        return json_form
    containers = (*ancestors, id(item))
    if len(containers) > DEPTH or id(item) in ancestors:
        return describe(item)
    if isinstance(item, Mapping):
        entries = cast("Mapping[Any, Any]", item).items()
        return {str(key): _plain(value, containers, left) for key, value in entries}
    if isinstance(item, list | tuple):
        return [
            _plain(value, containers, left) for value in cast("Sequence[Any]", item)
        ]
    return describe(item)


def _of_text(text: str, first: int) -> Iterator[Line]:
    at = 0
    for _ in range(first):
        line_end = text.find("\n", at)
        if line_end < 0:
            return
        at = line_end + 1
    while at < len(text):
        end = text.find("\n", at)
        stop = len(text) if end < 0 else end
        yield Line(text[at:stop].removesuffix("\r"), at)
        at = stop + 1


def _of_table(frame: Any, first: int) -> Iterator[Line]:
    for start in range(first, frame.height, _SLICE):
        for row in frame.slice(start, _SLICE).iter_rows(named=True):
            cells = {name: cell(value) for name, value in row.items()}
            yield Line(json.dumps(cells, ensure_ascii=False))
