"""How deep a tree of lists and mappings is, found without going down by calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from neuraxis.messages import Path
from neuraxis.specs import Json


def is_deeper(tree: Json, most: int) -> bool:
    """Whether anything in the tree, which may contain itself, is below that level."""
    return place_below(tree, most) is not None


def place_below(tree: Json, most: int) -> Path | None:
    """The path of a list or mapping that is further down than `most` levels."""
    if not isinstance(tree, (Mapping, list, tuple)):
        return None
    # A part that stands in many places is looked at again only where it is deeper.
    seen: dict[int, int] = {}
    waiting: list[tuple[Any, Path]] = [(tree, ())]
    while waiting:
        node, path = waiting.pop()
        if len(path) > most:
            return path
        known = seen.get(id(node), -1)
        if known >= len(path):
            continue
        seen[id(node)] = len(path)
        if isinstance(node, Mapping):
            parts: Any = cast("Mapping[Any, Any]", node).items()
        else:
            parts = enumerate(cast("list[Any]", node))
        waiting += [
            (part, (*path, key if isinstance(key, int) else str(key)))
            for key, part in parts
            if isinstance(part, (Mapping, list, tuple))
        ]
    return None
