"""Convert a value to JSON for the model, if possible (rule B57).

JSON types with text keys and finite numbers stay unchanged; dates, UUIDs, paths,
decimals, enums, dataclasses, pydantic models, sets and numpy scalars are converted by
a fixed rule. Anything else (arrays, tables, pictures, bytes, NaN, cycles) has no JSON
form: the result becomes an asset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from msgspec import Struct

from neuraxis.schema.builders import json_names, tag_of, uses_names
from neuraxis.specs import STREAM_ITEMS, Json

DEPTH = 100
"""Maximum nesting depth; a deeper value becomes an asset."""
ITEMS = 1_000_000
"""Maximum items; a larger value becomes an asset.

A value that occurs many times counts each time it is written.
"""

_PLAIN = frozenset({str, bool, int, type(None)})
_NO_OBJECTS = _PLAIN | {float}
_VALUES = (
    str, int, float, date, time, timedelta, UUID, Decimal, PurePath, Enum, Set,
)  # fmt: skip
"""Types whose JSON form is complete; numpy's scalars count as these."""


class NoJsonForm(Exception):
    """Error: the value, or one leaf, has no JSON form (B58)."""


def to_json_value(value: Any) -> tuple[bool, Json]:
    """Return the JSON form of a value, if it has one."""
    if type(value) in _PLAIN:
        return True, value
    try:
        return True, _to_json(value, 0, [ITEMS])
    except NoJsonForm:
        return False, None


def holds_objects(value: Any) -> bool:
    """Check whether a convertible value contains objects of classes."""
    waiting: list[Any] = [] if type(value) in _NO_OBJECTS else [value]
    while waiting:
        item = waiting.pop()
        kind = cast("type[Any]", type(item))
        if kind is dict:
            waiting += [it for it in item.values() if type(it) not in _NO_OBJECTS]
        elif kind is list or kind is tuple:
            waiting += [it for it in item if type(it) not in _NO_OBJECTS]
        elif not isinstance(item, _VALUES):
            return True
    return False


def drain(value: Any) -> Any:
    """Return the items of an iterator as a list; other values unchanged.

    Raises:
        ValueError: it gave more than `STREAM_ITEMS` items.
    """
    kind = cast("type[Any]", type(value))
    if not hasattr(kind, "__next__") or hasattr(value, "read"):  # or a file
        return value
    stream = cast("Iterator[Any]", value)
    items = list(islice(stream, STREAM_ITEMS + 1))
    if len(items) > STREAM_ITEMS:
        raise ValueError(
            f"it gave more than {STREAM_ITEMS} items; give a list, or fewer of them"
        )
    return items


def _to_json(value: Any, depth: int, left: list[int]) -> Json:
    kind = cast("type[Any]", type(value))
    if kind in _PLAIN:
        return value
    if depth > DEPTH:
        raise NoJsonForm
    if kind is dict:
        return _mapping_to_json(value, depth, left)
    if kind is list or kind is tuple:
        _count(len(value), left)
        return [
            item if type(item) in _PLAIN else _to_json(item, depth + 1, left)
            for item in value
        ]
    if kind is float:
        if not math.isfinite(value):
            raise NoJsonForm
        return value
    if isinstance(value, type):
        raise NoJsonForm  # Its JSON would lose the object's methods.
    return _object_to_json(value, depth, left)


def _count(items: int, left: list[int]) -> None:
    left[0] -= items
    if left[0] < 0:
        raise NoJsonForm


def _mapping_to_json(
    value: Mapping[Any, Any], depth: int, left: list[int]
) -> dict[str, Json]:
    _count(len(value), left)
    written: dict[str, Json] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise NoJsonForm
        written[key] = item if type(item) in _PLAIN else _to_json(item, depth + 1, left)
    return written


def _fields(value: Any) -> dict[str, Any]:
    """Return an object's fields by their names in JSON."""
    if not isinstance(value, Struct):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    names = json_names(type(value)).items()
    return {**tag_of(type(value)), **{key: getattr(value, name) for name, key in names}}


def _object_to_json(value: Any, depth: int, left: list[int]) -> Json:
    match value:
        case Enum():
            return _to_json(_member(value), depth + 1, left)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID() | Decimal() | PurePath():
            return _text(value)
        case Mapping():
            return _mapping_to_json(cast("Mapping[Any, Any]", value), depth, left)
        case Set():
            return _set_to_list(cast("Set[Any]", value), depth, left)
        case tuple() | list():
            return _items_to_json(cast("Any", value), depth, left)
        case _ if isinstance(value, Struct) or is_dataclass(value):
            return _mapping_to_json(_fields(value), depth, left)
        case _ if hasattr(value, "model_dump"):
            # Uses the aliases that a call uses, not the attribute names.
            return _to_json(
                value.model_dump(mode="python", by_alias=True), depth + 1, left
            )
        case _ if type(value).__module__ == "numpy" and _is_scalar(value):
            return _to_json(_plain_scalar(value), depth + 1, left)
        case str():
            return str(value)
        case int():
            return int(value)
        case float():
            return _to_json(float(value), depth, left)
        case _:
            raise NoJsonForm


def _text(value: UUID | Decimal | PurePath) -> str:
    if isinstance(value, Decimal) and not value.is_finite():
        raise NoJsonForm
    return str(value)


def _items_to_json(value: Any, depth: int, left: list[int]) -> Json:
    if hasattr(value, "_asdict"):  # A named tuple, as its class is declared.
        return _mapping_to_json(value._asdict(), depth, left)
    _count(len(value), left)
    return [_to_json(item, depth + 1, left) for item in value]


def _member(value: Enum) -> Any:
    """Return the text that names an enum member in a call."""
    return value.name if uses_names(type(value)) else value.value


def _plain_scalar(value: Any) -> Any:
    """Return a Python scalar; nanosecond dates become a text or number."""
    if value.dtype.kind == "M":
        return str(value) if value == value else None  # NaT is not equal to itself.
    if value.dtype.kind == "m":
        return value.astype("timedelta64[us]").item()
    return value.item()


def _is_scalar(value: Any) -> bool:
    return getattr(value, "shape", None) == () and getattr(value, "ndim", None) == 0


def _set_to_list(value: Set[Any], depth: int, left: list[int]) -> list[Json]:
    """Return a set as a list, sorted where possible for stable output."""
    _count(len(value), left)
    items = [_to_json(item, depth + 1, left) for item in value]
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)
