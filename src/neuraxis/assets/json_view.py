"""Convert a value to JSON for the model, if possible (rule B57).

JSON types with text keys and finite numbers stay unchanged; dates, UUIDs, paths,
decimals, enums, dataclasses, pydantic models, sets, deques, ranges, views of dicts and
numpy scalars are converted by a fixed rule. Anything else (arrays, tables, pictures,
bytes, NaN, cycles) has no JSON form: the result becomes an asset.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Set, ValuesView
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

_OF_DATACLASS = "__dataclass_fields__"
_PLAIN = frozenset({str, bool, int, type(None)})
_NO_OBJECTS = _PLAIN | {float}
_VALUES = (
    str, int, float, date, time, timedelta, UUID, Decimal, PurePath, Enum, Set,
)  # fmt: skip
"""Types whose JSON form is complete; numpy's scalars count as these."""
_OF_TEXT = ("ipaddress", "zoneinfo")
"""Modules of addresses and time zones, which few programs import."""


class NoJsonForm(Exception):
    """Error: the value, or one leaf, has no JSON form (B58)."""


def to_json_value(value: Any) -> tuple[bool, Json]:
    """Return the JSON form of a value, if it has one."""
    if type(value) in _PLAIN:
        return True, value
    try:
        return True, _converted(value, 0, [ITEMS])
    except NoJsonForm:
        return False, None


def holds_objects(value: Any) -> bool:
    """Check whether a convertible value contains objects of classes."""
    pending: list[Any] = [] if type(value) in _NO_OBJECTS else [value]
    while pending:
        item = pending.pop()
        kind = cast("type[Any]", type(item))
        if kind is dict:
            pending += [it for it in item.values() if type(it) not in _NO_OBJECTS]
        elif kind is list or kind is tuple:
            pending += [it for it in item if type(it) not in _NO_OBJECTS]
        elif not isinstance(item, _VALUES):
            return True
    return False


def drain(value: Any) -> Any:
    """Return an iterator or view as a list; other values unchanged.

    Raises:
        ValueError: it yields more than `STREAM_ITEMS` items.
    """
    kind = cast("type[Any]", type(value))
    if kind in _PLAIN or kind is dict or kind is list:
        return value
    if isinstance(value, ValuesView):
        return list(cast("ValuesView[Any]", value))
    if not hasattr(kind, "__next__") or hasattr(value, "read"):  # `read`: a file
        return value
    stream = cast("Iterator[Any]", value)
    items = list(islice(stream, STREAM_ITEMS + 1))
    if len(items) > STREAM_ITEMS:
        raise ValueError(
            f"it gave more than {STREAM_ITEMS} items; give a list, or fewer of them"
        )
    return items


def _converted(value: Any, depth: int, budget: list[int]) -> Json:
    kind = cast("type[Any]", type(value))
    if kind in _PLAIN:
        return value
    if depth > DEPTH:
        raise NoJsonForm
    if kind is dict:
        return _mapping(value, depth, budget)
    if kind is list or kind is tuple:
        _count(len(value), budget)
        return [
            item if type(item) in _PLAIN else _converted(item, depth + 1, budget)
            for item in value
        ]
    if kind is float:
        if not math.isfinite(value):
            raise NoJsonForm
        return value
    if isinstance(value, type):
        raise NoJsonForm  # a class has no JSON form
    return _object(value, depth, budget)


def _count(items: int, budget: list[int]) -> None:
    budget[0] -= items
    if budget[0] < 0:
        raise NoJsonForm


def _mapping(
    value: Mapping[Any, Any], depth: int, budget: list[int]
) -> dict[str, Json]:
    _count(len(value), budget)
    written: dict[str, Json] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise NoJsonForm
        written[key] = (
            item if type(item) in _PLAIN else _converted(item, depth + 1, budget)
        )
    return written


def _fields(value: Any) -> dict[str, Any]:
    """Return an object's fields by their names in JSON."""
    if not isinstance(value, Struct):
        from dataclasses import fields  # imported already if there is a dataclass

        return {item.name: getattr(value, item.name) for item in fields(value)}
    names = json_names(type(value)).items()
    return {**tag_of(type(value)), **{key: getattr(value, name) for name, key in names}}


def as_shown(value: Any) -> Any:
    """Return what an object's class lets JSON show of it; None: nothing."""
    native: Any = value
    if isinstance(value, tuple) and hasattr(native, "_asdict"):
        return native._asdict()
    if isinstance(value, Struct) or hasattr(native, _OF_DATACLASS):
        return _fields(native)
    if hasattr(native, "model_dump"):
        return native.model_dump(mode="python", by_alias=True)
    return None


def _object(value: Any, depth: int, budget: list[int]) -> Json:
    match value:
        case Enum():
            return _converted(_member(value), depth + 1, budget)
        case datetime() | date() | time():
            # pandas' NaT is a datetime, and not equal to itself
            return value.isoformat() if value == value else None
        case timedelta():
            return value.total_seconds()
        case UUID() | Decimal() | PurePath():
            return _text(value)
        case Mapping():
            return _mapping(cast("Mapping[Any, Any]", value), depth, budget)
        case Set():
            return _set_to_list(cast("Set[Any]", value), depth, budget)
        case tuple() | list() | deque() | range() | ValuesView():
            return _items(cast("Any", value), depth, budget)
        case _ if isinstance(value, Struct) or hasattr(value, _OF_DATACLASS):
            return _mapping(_fields(value), depth, budget)
        case _ if hasattr(value, "model_dump"):
            # Uses the aliases that a call uses, not the attribute names.
            return _converted(
                value.model_dump(mode="python", by_alias=True), depth + 1, budget
            )
        case _ if type(value).__module__ == "numpy" and _is_scalar(value):
            return _converted(_plain_scalar(value), depth + 1, budget)
        case _ if isinstance(value, str) or type(value).__module__ in _OF_TEXT:
            return str(value)
        case int():
            return int(value)
        case float():
            return _converted(float(value), depth, budget)
        case _:
            raise NoJsonForm


def _text(value: UUID | Decimal | PurePath) -> str:
    if isinstance(value, Decimal) and not value.is_finite():
        raise NoJsonForm
    return str(value)


def _items(value: Any, depth: int, budget: list[int]) -> Json:
    if hasattr(value, "_asdict"):  # A named tuple, as its class is declared.
        return _mapping(value._asdict(), depth, budget)
    _count(len(value), budget)
    return [_converted(item, depth + 1, budget) for item in value]


def _member(value: Enum) -> Any:
    """Return the text that names an enum member in a call."""
    return value.name if uses_names(type(value)) else value.value


def _plain_scalar(value: Any) -> Any:
    """Return a Python scalar; nanosecond dates become a text or number."""
    if value.dtype.kind == "M":
        return str(value) if value == value else None  # NaT is not equal to itself.
    if value.dtype.kind == "m":
        return _seconds(value)
    return value.item()


def _seconds(value: Any) -> float | None:
    """Return numpy's timedelta in seconds."""
    try:
        seconds = value / type(value)(1, "s")
    except TypeError:  # months and years are not always as long
        raise NoJsonForm from None
    return float(seconds) if seconds == seconds else None


def _is_scalar(value: Any) -> bool:
    return getattr(value, "shape", None) == () and getattr(value, "ndim", None) == 0


def _set_to_list(value: Set[Any], depth: int, budget: list[int]) -> list[Json]:
    """Return a set as a list, sorted where possible for stable output."""
    _count(len(value), budget)
    items = [_converted(item, depth + 1, budget) for item in value]
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)
