"""A value in; out comes whether it is short, flat JSON that is said as it is.

Nothing is followed and nothing recurses: both keeping and saying a result look at it
this way first, on the way of every call. False says nothing: look closer.
"""

from __future__ import annotations

from typing import Any

TEXT = 500
"""Characters of a text or a key."""
ITEMS = 16
"""Entries of an object."""
_LARGE = 10**300


def is_short(value: Any) -> bool:
    """Whether it is a text or an object of plain values, short and without NaN."""
    kind = value.__class__
    if kind is str:
        return len(value) <= TEXT
    if kind is not dict or len(value) > ITEMS:
        return False
    for key, item in value.items():
        kind = item.__class__
        if kind is str:
            if len(item) > TEXT:
                return False
        elif kind is float:
            if item - item != 0.0:
                return False  # NaN, or infinite
        elif kind is int:
            if not -_LARGE < item < _LARGE:
                return False  # its digits may be too many to be written
        elif kind is not bool and item is not None:
            return False
        if key.__class__ is not str or len(key) > TEXT:
            return False
    return True
