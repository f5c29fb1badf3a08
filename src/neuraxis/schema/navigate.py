"""Finding one's way inside a JSON Schema: pure functions over the dict.

A schema, its root and a path of a value flow in; the sub-schema that describes the
value at that path flows out. References (`$ref`) are followed inside the root only.
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
    """The schema as a mapping; True is `{}`, False and anything else None."""
    if isinstance(schema, Mapping):
        return cast("Node", schema)
    return ANYTHING if schema is True else None


def pointed(root: Node, pointer: Sequence[str | int]) -> Json:
    """What stands at a place of the schema itself, or None."""
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
    """The keys of `#/$defs/name`."""
    return [
        part.replace("~1", "/").replace("~0", "~")
        for part in target[1:].split("/")
        if part
    ]


def resolved(node: Node, root: Node) -> Node:
    """The node with its `$ref` followed; keys beside the reference stay."""
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
    """Whether a node is made of itself, with nothing between that takes a value apart.

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
    """The arms of a union, resolved; the node itself where it is none."""
    for key in ("anyOf", "oneOf"):
        listed: Json = node.get(key)
        if isinstance(listed, list):
            found = [as_node(arm) for arm in cast("list[Json]", listed)]
            return [resolved(arm, root) for arm in found if arm is not None]
    return [node]


def kinds(node: Node) -> tuple[str, ...]:
    """The type names the node allows; empty: it does not say."""
    given: Json = node.get("type")
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        return ()
    # A foreign schema may hold anything here; the validator tells what is wrong.
    return tuple([name for name in cast("list[Json]", given) if isinstance(name, str)])


def all_kinds(node: Node, root: Node) -> set[str]:
    """The type names that the node or any arm of it allows."""
    return {name for arm in arms(node, root) for name in kinds(arm)}


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every part of a JSON value that is no list and no object, with its path."""
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
    """The sub-schema of one key or index; None: there can be none.

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
    """Whether some place takes any value at all, or values of any depth.

    There the validator looks at nothing, so the runtime itself must look for what is
    no JSON. `True` is the safe answer.
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
"""Levels of a value that are looked at; deeper values are refused (rule D6)."""


_SURE = frozenset({int, bool, type(None)})
"""Classes whose every value is JSON."""


def is_json(value: Any, depth: int = 0) -> bool:
    """Whether the whole value is JSON: the quick form of `not not_json(value)`."""
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


def not_json(value: Any) -> list[tuple[Path, str, Any]]:
    """Every place of a value that is no JSON: its path, what is wrong, the value."""
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
            found.append((path, "a JSON value", here))
    return found


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
