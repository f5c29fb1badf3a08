"""Deep-copy a value, sharing its immutable parts.

Results are stored and passed on by reference, and a command may change an argument,
or a result after returning it. Lists, sets and objects are copied; everything else in
them is shared. A table is copied without its data, as polars and pandas do it: with
columns of its own (and, from pandas 3 on, data of its own once it is changed).
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

_SHARED = frozenset(
    {str, int, float, bool, type(None), bytes, date, datetime, time, Decimal, UUID}
)
"""Immutable types, which make up most of a value."""
_COLLECTIONS = frozenset({OrderedDict, defaultdict, Counter, deque})
"""Mutable collections of the standard library, beyond list, dict and set."""
DEPTH = 200
"""Maximum depth of a copy; deeper values are shared."""


def copy_value(value: Any) -> Any:
    """Return a copy of lists, sets, objects and tables; share the rest."""
    kind = value.__class__
    if kind in _SHARED:
        return value
    if kind is dict and _SHARED.issuperset(map(type, value.values())):
        return value.copy()
    return _deep_copy(value, {}, 0)


def _deep_copy(value: Any, copies: dict[int, Any], depth: int) -> Any:
    kind = value.__class__
    if kind in _SHARED or depth > DEPTH:
        return value
    if kind is list or kind is dict:
        key = id(value)
        if key in copies:  # The value occurs in several places, or contains itself.
            return copies[key]
        if kind is list:
            items: list[Any] = value
            copied: list[Any] = []
            copies[key] = copied
            copied += [
                item
                if item.__class__ in _SHARED
                else _deep_copy(item, copies, depth + 1)
                for item in items
            ]
            return copied
        return _entries(value, copies, depth)
    if kind is tuple:
        key = id(value)
        if key not in copies:  # Lists of pairs: their items are checked directly.
            parts = cast("tuple[Any, ...]", value)
            copies[key] = tuple([_deep_copy(item, copies, depth + 1) for item in parts])
        return copies[key]
    if kind is set or kind is bytearray:
        return value.copy()
    if kind in _COLLECTIONS:
        return _collection(value, copies, depth)
    if kind.__name__ in ("DataFrame", "Series"):
        package = kind.__module__.partition(".")[0]
        if package == "pandas":
            return value.copy(deep=False)
        if package == "polars":
            return value.clone()
    return value


def _entries(
    entries: dict[Any, Any], copies: dict[int, Any], depth: int
) -> dict[Any, Any]:
    """Return a copy of a dict that was not copied before."""
    copied: dict[Any, Any]
    if _SHARED.issuperset(map(type, entries.values())):  # a row of a table
        copied = copies[id(entries)] = entries.copy()
        return copied
    copied = copies[id(entries)] = {}
    for key, item in entries.items():
        if item.__class__ in _SHARED:
            copied[key] = item
        else:
            copied[key] = _deep_copy(item, copies, depth + 1)
    return copied


def _collection(value: Any, copies: dict[int, Any], depth: int) -> Any:
    """Return a copy of one of `_COLLECTIONS`."""
    here = id(value)
    if here not in copies:
        copied = copies[here] = value.copy()
        if value.__class__ is deque:
            copied.clear()  # Assignment by index is slow in the middle of a deque.
            copied.extend([_deep_copy(item, copies, depth + 1) for item in value])
            return copied
        for key in copied:
            copied[key] = _deep_copy(copied[key], copies, depth + 1)
    return copies[here]
