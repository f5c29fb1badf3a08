"""Find values whose shared parts make them far larger when written out.

A list may hold the same list many times, as what is read from YAML with aliases does:
a few hundred characters then stand for more values than any memory holds. Whatever
copies such a value and notes what it has seen is quick; what checks it or writes it
visits each path anew, and does not end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

PARTS = 1_000_000
"""Parts up to which a value may always be written out."""
PART = 100
"""Characters of a text that count as one part."""
TIMES = 10
"""How much larger than in memory a value may be when written out."""
DEPTH = 200
"""Maximum depth that is looked into; deeper values are refused elsewhere."""
_CONTAINERS = (list, tuple, dict)
_SMALL = frozenset({int, float, bool, type(None), str})
_AGAIN = -1
"""Value in `seen` of a part that was met twice; no object has this id."""


def unfolds(value: Any) -> bool:
    """Check whether shared parts make a value far larger when written out."""
    if not isinstance(value, _CONTAINERS) or _is_plain(value):
        return False
    if _parts(value, PARTS) <= PARTS:
        return False
    seen = {id(cast("object", value))}
    most = max(PARTS, TIMES * _parts(value, seen=seen))
    return _AGAIN in seen and _parts(value, most) > most


def _is_plain(value: Any) -> bool:
    """Check whether a value is so small that sharing cannot matter."""
    parts: Any = value
    if isinstance(value, dict):
        parts = cast("dict[Any, Any]", value).values()
    return len(parts) <= TIMES and _SMALL.issuperset(map(type, parts))


def _parts(value: Any, most: float = math.inf, seen: set[int] | None = None) -> int:
    """Return the number of parts; counting stops above `most`.

    Each path is counted anew, or each part once if `seen` is given.
    """
    total, level = 0, [value]
    for _ in range(DEPTH):
        total += sum(map(len, level))
        if not level or total > most:
            break
        below: list[Any] = []
        for part in _large_parts(level):
            if seen is not None:
                if id(part) in seen:
                    seen.add(_AGAIN)
                    continue
                seen.add(id(part))
            if part.__class__ is str:
                total += len(part) // PART
            else:
                below.append(part)
        level = below
    return total


def _large_parts(level: list[Any]) -> Iterator[Any]:
    """Yield the containers and long texts in these containers."""
    for item in level:
        if isinstance(item, dict):
            entries = cast("dict[Any, Any]", item)
            item = [*entries, *entries.values()]
        for part in [
            part
            for part in item
            if part.__class__ not in _SMALL
            or (part.__class__ is str and len(part) > PART)
        ]:
            if part.__class__ is str or isinstance(part, _CONTAINERS):
                yield part
