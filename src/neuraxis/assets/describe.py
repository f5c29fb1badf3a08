"""Describe an asset for the model: AssetMeta within a budget (B55, B56).

The meta maps paths to short descriptions: a container's type, a scalar itself, and for
objects without a JSON form the main facts (shape, columns, size). A path of the meta,
appended to `asset://`, is a reference.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from neuraxis.assets.json_view import as_shown
from neuraxis.formatting import counted, size_text, type_name
from neuraxis.references.asset_ref import url_part
from neuraxis.specs import Json

BUDGET = 360
"""Maximum characters of one asset's meta as JSON."""
TOTAL_BUDGET = 4000
"""Maximum characters of all metas together; the oldest are shortened first."""
FIRST_ITEMS = 3
"""Maximum items shown of a long list."""
TEXT = 80
"""Maximum characters shown of a long text."""
FIELDS = 160
"""Maximum characters shown of one item's fields."""
FIELD = 24
"""Maximum characters shown of one field's value."""
_MORE = "…"
_UNKNOWN = 100
"""Assumed bytes of an object that reports no size."""
_LARGE = 1e300
_ESTIMATED = 200_000
"""Bytes above which a size is estimated: exact counting blocks the interpreter."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
T = TypeVar("T")


def json_size(value: Json) -> int:
    """Return the approximate bytes of a JSON value's text."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, bool | int | float) and -_LARGE < value < _LARGE:
        return 8
    rough = size_of(value)
    return rough if rough > _ESTIMATED else len(json.dumps(value))


def size_of(value: Any, most: float = math.inf) -> int:
    """Return the approximate bytes of a value.

    An object's own report is used, else its parts are counted. Each container is
    counted once, so that cyclic ones have a size. Counting stops above `most`.
    """
    total = 0
    seen: set[int] = set()
    pending: list[Any] = [value]
    while pending and total <= most:
        item = pending.pop()
        match item:
            case str() | bytes() | bytearray() | memoryview():
                total += len(cast("bytes", item)) + 2
            case None | bool() | int() | float():
                total += 8
            case Mapping() | list() | tuple():
                container = cast("Any", item)
                if id(container) not in seen:
                    seen.add(id(container))
                    parts = _parts(container)
                    texts = [len(part) + 2 for part in parts if part.__class__ is str]
                    nested = [part for part in parts if part.__class__ not in _SCALARS]
                    total += sum(texts) + 8 * (len(parts) - len(texts) - len(nested))
                    pending += nested
            case _:
                total += _attribute_or(_own_size, item, _UNKNOWN)
    return total


def _parts(container: Any) -> list[Any]:
    if isinstance(container, Mapping):
        mapping = cast("Mapping[Any, Any]", container)
        return [*mapping.keys(), *mapping.values()]
    return list(container)


def _attribute_or(tell: Callable[[Any], T], value: Any, otherwise: T) -> T:
    """Return a native object's attribute; `otherwise` if reading it fails.

    A closed file or connection may raise anything, and is still the result of a
    command that worked.
    """
    try:
        return tell(value)
    except Exception:  # noqa: BLE001 - the value's class may raise any
        return otherwise


def _own_size(value: Any) -> int:
    nbytes = getattr(value, "nbytes", None)  # numpy, pyarrow
    if isinstance(nbytes, int):
        return nbytes
    estimate = getattr(value, "estimated_size", None)  # polars
    if callable(estimate):
        return int(cast("Any", estimate()))
    usage = getattr(value, "memory_usage", None)  # pandas
    if callable(usage):
        return int(cast("Any", usage(deep=False)).sum())
    if isinstance(height := getattr(value, "height", None), int) and isinstance(
        width := getattr(value, "width", None), int
    ):  # PIL
        return width * height * len(getattr(value, "getbands", lambda: "x")())
    return _UNKNOWN


def describe(value: Any) -> Json:
    """Describe one value: a short scalar itself, else its type and size."""
    match value:
        case None | bool() | int() | float():
            # NaN and infinity have no JSON; such large numbers are useless here.
            plain = value is None or isinstance(value, bool) or abs(value) < _LARGE
            if plain or isinstance(value, float):
                return value if plain else repr(value)[:TEXT]
            return f"an integer of {cast('int', value).bit_length()} bits"
        case str():
            if len(value) <= TEXT:
                return value
            return f"{value[:TEXT]}… ({len(value)} characters)"
        case bytes() | bytearray() | memoryview():
            nbytes = memoryview(cast("bytes", value)).nbytes
            return f"{_class(value)} {size_text(nbytes)}"
        case _:
            detail = detail_of(value)
            return f"{_class(value)} {detail}" if detail else _class(value)


def _class(value: Any) -> str:
    cls = cast("type[Any]", type(value))
    name = cls.__qualname__
    return f"<class '{name if cls.__module__ == 'builtins' else type_name(value)}'>"


def detail_of(value: Any) -> str:
    """Return the main facts about a native object, or nothing."""
    return _attribute_or(_detail, value, "")


def _detail(value: Any) -> str:
    """Describe a native object by duck type, without importing its library.

    What costs something to read, as the columns of a lazy table do, is read last.
    """
    shape = getattr(value, "shape", None)
    if _is_pair(shape) and getattr(value, "columns", None) is not None:
        return _table(value, cast("tuple[int, int]", shape))
    dtype = getattr(value, "dtype", None)
    if dtype is not None and isinstance(shape, tuple):
        description = f"shape {shape}, {dtype}, {size_text(size_of(value))}"
        return description[: 2 * TEXT]
    rows = getattr(value, "num_rows", None)
    if isinstance(rows, int) and hasattr(value, "schema"):  # pyarrow
        names = cast("Sequence[str]", value.schema.names)
        return (
            f"{counted(rows, 'row')}, {counted(len(names), 'column')}: {_names(names)}"
        )
    size, mode = getattr(value, "size", None), getattr(value, "mode", None)
    if isinstance(mode, str) and isinstance(size, tuple):
        width, height = cast("tuple[int, int]", size)
        return f"{width}x{height}, {mode}"
    return ""


def _is_pair(shape: Any) -> bool:
    return isinstance(shape, tuple) and len(cast("tuple[int, ...]", shape)) == 2


def _table(value: Any, shape: tuple[int, int]) -> str:
    types = list(getattr(value, "dtypes", ()))
    columns = [
        f"{name} {kind}" for name, kind in zip(list(value.columns), types, strict=False)
    ]
    return f"{shape[0]} rows, {shape[1]} columns: {_names(columns)}"


def _fields_of(value: Any) -> Mapping[str, Any]:
    """Return the fields that JSON shows of a mapping or object."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    fields = as_shown(value)
    return cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else {}


def _item(value: Any) -> str:
    """Return the fields of a list's item, or their names."""
    fields = _attribute_or(_fields_of, value, {})
    if not fields:
        return ""
    described: list[str] = []
    for name, field in islice(fields.items(), FIELDS // 4):
        description = describe(field)
        text = description if isinstance(description, str) else _written(description)
        short = text[: FIELD - 1] + _MORE if len(text) > FIELD else text
        described.append(f"{str(name)[:40]}: {short}")
    if sum(map(len, described)) > FIELDS or len(described) < len(fields):
        return _names(list(fields))  # all names are more useful than some values
    return ", ".join(described)


def _described_item(value: Any) -> Json:
    fields = _item(value)
    return f"{_class(value)} {fields}" if fields else describe(value)


def _is_fully_described(item: Any) -> bool:
    """Return whether a list's item is described completely on its line."""
    fields = _fields_of(item)
    parts = islice(fields.values(), FIELDS)
    return bool(fields) and all(type(part) in _SCALARS for part in parts)


def _names(names: Sequence[object]) -> str:
    text = ""
    for place, name in enumerate(names):
        part = str(name)[:40]
        if len(text) + len(part) > FIELDS:
            return f"{text}, … ({len(names) - place} more)"
        text += f", {part}" if text else part
    return text


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each member of a container."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            if isinstance(key, str):
                yield url_part(key), item
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("Sequence[Any]", value)):
            yield str(index), item


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def meta_of(
    asset_id: str, root: Mapping[str, Any], *, budget: int = BUDGET
) -> dict[str, Json]:
    """Return the asset's meta, breadth first, in at most `budget` characters.

    A container that is cut says so under `path/…`. The id and the type of the content
    are always present, so a budget below about 120 cannot be met.
    """
    content = root["content"]
    meta: dict[str, Json] = {
        "asset_id": asset_id,
        "content_type": type(content).__name__,
        "content": describe(content),
    }
    used = len(_written(meta))
    pending: deque[tuple[str, Any]] = deque()
    if _is_container(content):  # An attachment may be any object.
        pending.append(("content", content))
    while pending:
        path, container = pending.popleft()
        is_list = isinstance(container, list | tuple)
        limit = FIRST_ITEMS if is_list else 20
        count = len(cast("Sequence[Any]", container))
        shown = 0
        for name, item in _children(container):
            place = f"{path}/{name}"
            description = _described_item(item) if is_list else describe(item)
            # A single trailing slash is ignored, so two mean the key "".
            meta_path = place if name else f"{place}/"
            # 40 characters are reserved for the line that counts omitted places.
            room = budget - 40 - len(path) - used
            first = is_list and not shown
            if (container is content or first) and description is not item:
                # The beginning of the most useful description is better than nothing.
                description = _shortened(meta_path, item, description, room)
            cost = _cost(meta_path, description)
            if shown >= limit or cost > room:
                break
            meta[meta_path] = description
            used += cost
            shown += 1
            if (
                _is_container(item)
                and item
                and not (is_list and _is_fully_described(item))
            ):
                pending.append((place, item))
        if shown < count:
            note = f"shown {shown} of {count}"
            cost = _cost(f"{path}/{_MORE}", note)
            if used + cost <= budget:
                meta[f"{path}/{_MORE}"] = note
                used += cost
    return meta


def _written(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cost(name: str, description: Json) -> int:
    return len(_written({name: description}))


def _shortened(name: str, item: Any, description: Json, room: int) -> Json:
    """Shorten a description to fit, at the end of a column's name."""
    over = _cost(name, description) - room
    if over <= 0 or not isinstance(description, str):
        return description
    short = description[: -over - len(_MORE)]
    if len(short) < TEXT // 2:
        return description
    if not isinstance(item, str):
        complete, comma, _ = short.rpartition(", ")
        short = complete + comma or short
    return short + _MORE


def line_of(asset_id: str, root: Mapping[str, Any]) -> dict[str, Json]:
    """Return the shortest meta: the id and a one-line description."""
    response = root["content"].get("response")
    return {"asset_id": asset_id, "content/response": short_text(response)}


def short_text(value: Any) -> str:
    """Describe a value on one line, with a list's first item."""
    description = describe(value)
    text = description if isinstance(description, str) else json.dumps(description)
    if isinstance(value, list | tuple) and value:
        items = cast("Sequence[Any]", value)
        if first := _item(items[0]):
            text += f" {counted(len(items), 'item')}, the first: {first}"
    return text[:120]
