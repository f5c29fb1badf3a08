"""Deep-copy a value so that changes to one spare the other.

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
    return _apart(value, {}, 0)


def _apart(value: Any, known: dict[int, Any], depth: int) -> Any:
    kind = value.__class__
    if kind in _SHARED or depth > DEPTH:
        return value
    if kind is list or kind is dict:
        here = id(value)
        if here in known:  # The value occurs in several places, or contains itself.
            return known[here]
        if kind is list:
            items: list[Any] = value
            listed: list[Any] = []
            known[here] = listed
            listed += [
                item if item.__class__ in _SHARED else _apart(item, known, depth + 1)
                for item in items
            ]
            return listed
        return _entries(value, known, depth)
    if kind is tuple:
        here = id(value)
        if here not in known:  # Lists of pairs: their items are checked directly.
            parts = cast("tuple[Any, ...]", value)
            known[here] = tuple([_apart(item, known, depth + 1) for item in parts])
        return known[here]
    if kind is set or kind is bytearray:
        return value.copy()
    if kind in _COLLECTIONS:
        return _collection(value, known, depth)
    if kind.__name__ in ("DataFrame", "Series"):
        package = kind.__module__.partition(".")[0]
        if package == "pandas":
            return value.copy(deep=False)
        if package == "polars":
            return value.clone()
    return value


def _entries(
    entries: dict[Any, Any], known: dict[int, Any], depth: int
) -> dict[Any, Any]:
    """Return a copy of a dict that was not met before."""
    made: dict[Any, Any]
    if _SHARED.issuperset(map(type, entries.values())):  # a row of a table
        made = known[id(entries)] = entries.copy()
        return made
    made = known[id(entries)] = {}
    for key, item in entries.items():
        if item.__class__ in _SHARED:
            made[key] = item
        else:
            made[key] = _apart(item, known, depth + 1)
    return made


def _collection(value: Any, known: dict[int, Any], depth: int) -> Any:
    """Return a copy of one of `_COLLECTIONS`."""
    here = id(value)
    if here not in known:
        made = known[here] = value.copy()
        if value.__class__ is deque:
            made.clear()  # Assignment by index takes long in the middle of a deque.
            made.extend([_apart(item, known, depth + 1) for item in value])
            return made
        for key in made:
            made[key] = _apart(made[key], known, depth + 1)
    return known[here]
