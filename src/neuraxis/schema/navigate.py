"""Navigate a JSON Schema: find the sub-schema for a value's path.

Pure functions over the dict. References (`$ref`) are followed inside the root only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from neuraxis.messages import Path
from neuraxis.specs import Json

Node = Mapping[str, Json]

ANYTHING: Node = {}


def as_node(schema: Json) -> Node | None:
    """Return the schema as a mapping; `{}` for True, None for others."""
    if isinstance(schema, Mapping):
        return cast("Node", schema)
    return ANYTHING if schema is True else None


def pointed(root: Node, pointer: Sequence[str | int]) -> Json:
    """Return the part of the schema at a pointer, or None."""
    here: Json = root
    for part in pointer:
        if isinstance(here, Mapping) and part in here:
            here = cast("Node", here)[str(part)]
        elif isinstance(here, list) and isinstance(part, int):
            items = cast("list[Json]", here)
            if part >= len(items):
                return None
            here = items[part]
        else:
            return None
    return here


def _pointer(target: str) -> list[str]:
    """Return the keys of `#/$defs/name`."""
    return [
        part.replace("~1", "/").replace("~0", "~")
        for part in target[1:].split("/")
        if part
    ]


def resolved(node: Node, root: Node) -> Node:
    """Return the node with its `$ref` followed; keys beside it stay."""
    for _ in range(16):
        target = node.get("$ref")
        if not isinstance(target, str):
            return node
        if not target.startswith("#"):
            return {key: value for key, value in node.items() if key != "$ref"}
        body = as_node(pointed(root, _pointer(target)))
        beside = {key: value for key, value in node.items() if key != "$ref"}
        node = {**(body or {}), **beside}
    return node


def refers_to_itself(root: Node) -> bool:
    """Return whether a node refers to itself without descending into the value.

    `properties` and `items` lead to a smaller value; `$ref` and unions alone could be
    followed for ever.
    """
    waiting: list[Json] = [root]
    seen: set[int] = set()
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            node = cast("Node", here)
            if id(node) not in seen and _leads_back(node, root, [], seen):
                return True
            waiting += node.values()
        elif isinstance(here, list):
            waiting += cast("list[Json]", here)
    return False


def _leads_back(node: Node, root: Node, above: list[int], seen: set[int]) -> bool:
    if id(node) in above:
        return True
    if id(node) in seen:
        return False
    parts: list[Json] = []
    target = node.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        parts.append(pointed(root, _pointer(target)))
    for key in ("anyOf", "oneOf", "allOf"):
        listed: Json = node.get(key)
        if isinstance(listed, list):
            parts += cast("list[Json]", listed)
    below = [*above, id(node)]
    found = any(
        _leads_back(cast("Node", part), root, below, seen)
        for part in parts
        if isinstance(part, Mapping)
    )
    seen.add(id(node))
    return found


def arms(node: Node, root: Node) -> list[Node]:
    """Return the arms of a union, resolved; else the node itself."""
    for key in ("anyOf", "oneOf"):
        listed: Json = node.get(key)
        if isinstance(listed, list):
            found = [as_node(arm) for arm in cast("list[Json]", listed)]
            return [resolved(arm, root) for arm in found if arm is not None]
    return [node]


def kinds(node: Node) -> tuple[str, ...]:
    """Return the type names that the node allows; empty if unconstrained."""
    given: Json = node.get("type")
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        return ()
    # an external schema may have anything here; the validator reports it
    return tuple([name for name in cast("list[Json]", given) if isinstance(name, str)])


def all_kinds(node: Node, root: Node) -> set[str]:
    """Return the type names that the node or its arms allow."""
    return {name for arm in arms(node, root) for name in kinds(arm)}


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every scalar in a JSON value, with its path."""
    if len(path) > DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def child(node: Node, part: str | int, root: Node) -> Node | None:
    """Return the sub-schema of a key or index; None: none is allowed.

    `{}` where the schema does not say, an opaque class among others.
    """
    node = resolved(node, root)
    if "x-type" in node:
        return ANYTHING
    found: list[Node] = []
    for arm in arms(node, root):
        below = _child(arm, part) if arm is node else child(arm, part, root)
        if below is not None:
            found.append(below)
    extra: Json = node.get("allOf")
    if isinstance(extra, list):
        for item in cast("list[Json]", extra):
            inner = as_node(item)
            below = None if inner is None else child(inner, part, root)
            if below:
                found = [below, *(one for one in found if one)]
    if not found:
        return None
    if len(found) == 1:
        return resolved(found[0], root)
    return ANYTHING if ANYTHING in found else {"anyOf": found}


def _child(node: Node, part: str | int) -> Node | None:
    allowed = kinds(node)
    if isinstance(part, int):
        if part < 0 or (allowed and "array" not in allowed):
            return None
        prefix: Json = node.get("prefixItems")
        if isinstance(prefix, list) and part < len(cast("list[Json]", prefix)):
            return as_node(cast("list[Json]", prefix)[part])
        return as_node(node.get("items", True))
    if allowed and "object" not in allowed:
        return None
    properties: Json = node.get("properties")
    if isinstance(properties, Mapping) and part in properties:
        return as_node(cast("Node", properties)[part])
    return as_node(node.get("additionalProperties", True))


def is_open(schema: Json, root: Node, depth: int = 0) -> bool:
    """Return whether some place accepts any value, or values of any depth.

    There the validator checks nothing, so the runtime itself must look for values that
    are no JSON. `True` is the safe answer.
    """
    if depth > 40 or not isinstance(schema, Mapping):
        return schema is not False
    node = cast("Node", schema)
    if "$ref" in node or "allOf" in node or "oneOf" in node:
        return True
    if "enum" in node or "const" in node or "x-type" in node:
        return False
    listed: Json = node.get("anyOf")
    if isinstance(listed, list):
        return any(is_open(arm, root, depth + 1) for arm in cast("list[Json]", listed))
    allowed = kinds(node)
    if not allowed:
        return True
    parts: list[Json] = []
    if "array" in allowed:
        parts += [*node.get("prefixItems", ()), node.get("items", True)]
    if "object" in allowed:
        parts += [*node.get("properties", {}).values()]
        parts.append(node.get("additionalProperties", True))
    return any(is_open(part, root, depth + 1) for part in parts)


_SURROGATE = re.compile("[\ud800-\udfff]")

DEEPEST = 200
"""Maximum depth of a value; deeper values are refused (rule D6)."""


_SURE = frozenset({int, bool, type(None)})
"""Classes whose every value is JSON."""


def is_json(value: Any, depth: int = 0) -> bool:
    """Return whether the whole value is JSON."""
    if isinstance(value, str):
        return value.isascii() or not _SURROGATE.search(value)
    if value is None or isinstance(value, int):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    if depth >= DEEPEST:
        return False
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        for item in items:
            if item.__class__ not in _SURE and not is_json(item, depth + 1):
                return False
        return True
    if isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            kind = item.__class__
            if not isinstance(key, str):
                return False
            if kind in _SURE or (kind is str and item.isascii()):
                continue
            if not is_json(item, depth + 1):
                return False
        return True
    return False


NO_JSON = "a JSON value"
"""What `not_json` expects in place of an object of Python."""


def not_json(value: Any) -> list[tuple[Path, str, Any]]:
    """Return every place that is no JSON: path, reason and value."""
    found: list[tuple[Path, str, Any]] = []
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending and len(found) < 50:
        path, here = pending.pop()
        if len(path) >= DEEPEST and isinstance(here, list | tuple | dict):
            text = f"at most {DEEPEST} levels of nesting"
            found.append((path, text, cast("Any", here)))
        elif here is None or isinstance(here, bool | int):
            continue
        elif isinstance(here, str):
            if _SURROGATE.search(here):
                found.append((path, "text without lone surrogates", here))
        elif isinstance(here, float):
            if not math.isfinite(here):
                found.append((path, "a finite number", here))
        elif isinstance(here, list | tuple):
            items = cast("Sequence[Any]", here)
            pending += [((*path, index), item) for index, item in enumerate(items)]
        elif isinstance(here, dict):
            for key, item in cast("dict[Any, Any]", here).items():
                if isinstance(key, str):
                    pending.append(((*path, key), item))
                else:
                    found.append(((*path, str(key)), "a key that is text", key))
        else:
            found.append((path, NO_JSON, here))
    return found


def is_deeper(tree: Json, most: int) -> bool:
    """Return whether a tree, which may contain itself, is deeper than `most`."""
    return place_below(tree, most) is not None


def place_below(tree: Json, most: int) -> Path | None:
    """Return the path of a container deeper than `most` levels, else None."""
    if not isinstance(tree, (Mapping, list, tuple)):
        return None
    # a shared part is visited again only where it is deeper
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
