"""Navigate a JSON Schema: find the sub-schema for a value's path.

Pure functions over the dict. References (`$ref`) are followed inside the root only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from neuraxis.messages import Path
from neuraxis.parsing.surrogates import has_surrogate
from neuraxis.specs import Json

Node = Mapping[str, Json]
_URI_SIGNS = "#/:?&=%~!$'()*+,;@"

ANYTHING: Node = {}


def as_node(schema: Json) -> Node | None:
    """Return the schema as a mapping; `{}` for True, None for others."""
    if isinstance(schema, Mapping):
        return cast("Node", schema)
    return ANYTHING if schema is True else None


def pointed(root: Node, pointer: Sequence[str | int]) -> Json:
    """Return the part of the schema at a pointer, or None."""
    node: Json = root
    for part in pointer:
        if isinstance(node, Mapping) and part in node:
            node = cast("Node", node)[str(part)]
        elif isinstance(node, list) and isinstance(part, int):
            items = cast("list[Json]", node)
            if part >= len(items):
                return None
            node = items[part]
        else:
            return None
    return node


def _pointer(target: str) -> list[str]:
    """Return the keys of `#/$defs/name`."""
    return [
        part.replace("~1", "/").replace("~0", "~")
        for part in target[1:].split("/")
        if part
    ]


def with_uri_references(value: Json) -> Json:
    """Return a schema whose `$ref` are URIs: `#/$defs/Gr%C3%B6%C3%9Fe`."""
    if isinstance(value, list):
        return [with_uri_references(item) for item in cast("list[Json]", value)]
    if not isinstance(value, Mapping):
        return value
    return {
        key: quote(item, safe=_URI_SIGNS)
        if key == "$ref" and isinstance(item, str)
        else with_uri_references(item)
        for key, item in cast("Node", value).items()
    }


def referred(node: Node, root: Node) -> Json:
    """Return what the node's `$ref` leads to inside the root, or None."""
    target = node.get("$ref")
    if not isinstance(target, str) or not target.startswith("#"):
        return None
    return pointed(root, _pointer(target))


def resolved(node: Node, root: Node) -> Node:
    """Return the node with its `$ref` followed; its other keys are kept."""
    if "$ref" not in node:  # nearly all
        return node
    for _ in range(16):
        target = node.get("$ref")
        if not isinstance(target, str):
            return node
        if not target.startswith("#"):
            return {key: value for key, value in node.items() if key != "$ref"}
        body = as_node(pointed(root, _pointer(target)))
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        node = {**(body or {}), **siblings}
    return node


def refers_to_itself(root: Node) -> bool:
    """Return whether a node refers to itself without descending into the value.

    `properties` and `items` lead to a smaller value; `$ref` and unions alone could be
    followed for ever.
    """
    pending: list[Json] = [root]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if isinstance(current, Mapping):
            node = cast("Node", current)
            if id(node) not in seen and _leads_back(node, root, [], seen):
                return True
            pending += node.values()
        elif isinstance(current, list):
            pending += cast("list[Json]", current)
    return False


def _leads_back(node: Node, root: Node, above: list[int], seen: set[int]) -> bool:
    if id(node) in above:
        return True
    if id(node) in seen:
        return False
    parts: list[Json] = [referred(node, root)]
    for key in ("anyOf", "oneOf", "allOf"):
        arms_: Json = node.get(key)
        if isinstance(arms_, list):
            parts += cast("list[Json]", arms_)
    ancestors = [*above, id(node)]
    found = any(
        _leads_back(cast("Node", part), root, ancestors, seen)
        for part in parts
        if isinstance(part, Mapping)
    )
    seen.add(id(node))
    return found


_ANEW = frozenset(("unevaluatedProperties", "unevaluatedItems"))


def most_steps(root: Node) -> int:
    """Return how many subschemas apply to one value, at most.

    A subschema that is reached in two ways counts twice: validators check it twice.
    So does one below `unevaluatedProperties`: which keys it describes is found anew.

    Raises:
        RecursionError: a chain of references is very long.
    """
    steps: dict[int, int] = {}
    pending: list[Json] = [root]
    while pending:
        current = pending.pop()
        if isinstance(current, Mapping):
            node = cast("Node", current)
            _steps(node, root, steps)
            pending += node.values()
        elif isinstance(current, list):
            pending += cast("list[Json]", current)
    return max(steps.values())


def _steps(node: Node, root: Node, known: dict[int, int]) -> int:
    if id(node) not in known:
        known[id(node)] = 0  # while it is counted: it may lead back
        times = 1 if _ANEW.isdisjoint(node) else 2
        known[id(node)] = 1 + times * sum(
            _steps(cast("Node", part), root, known)
            for part in _parts_in_place(node, root)
            if isinstance(part, Mapping)
        )
    return known[id(node)]


def _parts_in_place(node: Node, root: Node) -> Iterator[Json]:
    """Yield the subschemas that apply to the same value."""
    yield referred(node, root)
    for key in ("anyOf", "oneOf", "allOf"):
        parts: Json = node.get(key)
        if isinstance(parts, list):
            yield from cast("list[Json]", parts)
    for key in ("not", "if", "then", "else"):
        yield node.get(key)
    for key in ("dependentSchemas", "dependencies"):
        named: Json = node.get(key)
        if isinstance(named, Mapping):
            yield from cast("Node", named).values()


def arms(node: Node, root: Node) -> list[Node]:
    """Return the arms of a union, resolved; else the node itself."""
    for key in ("anyOf", "oneOf"):
        arms_: Json = node.get(key)
        if isinstance(arms_, list):
            nodes = [as_node(arm) for arm in cast("list[Json]", arms_)]
            return [resolved(arm, root) for arm in nodes if arm is not None]
    return [node]


def kinds(node: Node) -> tuple[str, ...]:
    """Return the type names that the node allows; empty if unconstrained."""
    kind: Json = node.get("type")
    if isinstance(kind, str):
        return (kind,)
    if not isinstance(kind, list):
        return ()
    # an external schema may have anything here; the validator reports it
    return tuple([name for name in cast("list[Json]", kind) if isinstance(name, str)])


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


_JOINS = frozenset(("anyOf", "oneOf", "allOf"))
"""Keys whose subschemas apply to the same value."""


def child(node: Node, part: str | int, root: Node) -> Node | None:
    """Return the sub-schema of a key or index; None: not allowed.

    `{}` if the schema does not constrain it, for example in an opaque class.
    """
    node = resolved(node, root)
    if "x-type" in node:
        return ANYTHING
    if _JOINS.isdisjoint(node):
        inner = _child(node, part)
        return None if inner is None else resolved(inner, root)
    found = [
        _child(arm, part) if arm is node else child(arm, part, root)
        for arm in arms(node, root)
    ]
    nodes = [one for one in found if one is not None]
    extra: Json = node.get("allOf")
    if isinstance(extra, list):
        for item in cast("list[Json]", extra):
            inner = as_node(item)
            inner_node = None if inner is None else child(inner, part, root)
            if inner_node:
                nodes = [inner_node, *(one for one in nodes if one)]
    if not nodes:
        return None
    if len(nodes) == 1:
        return resolved(nodes[0], root)
    return ANYTHING if ANYTHING in nodes else {"anyOf": nodes}


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

    The validator checks nothing there, so the runtime itself must look for values that
    are not JSON. `True` is the safe answer.
    """
    if depth > 40 or not isinstance(schema, Mapping):
        return schema is not False
    node = cast("Node", schema)
    if "$ref" in node or "allOf" in node or "oneOf" in node:
        return True
    if "enum" in node or "const" in node or "x-type" in node:
        return False
    arms_: Json = node.get("anyOf")
    if isinstance(arms_, list):
        return any(is_open(arm, root, depth + 1) for arm in cast("list[Json]", arms_))
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


DEEPEST = 200
"""Maximum depth of a value; deeper values are refused (rule D6)."""


_SURE = frozenset({int, bool, type(None)})
"""Classes whose values are all JSON."""


def is_json(value: Any, depth: int = 0) -> bool:
    """Return whether the whole value is JSON."""
    if isinstance(value, str):
        return not has_surrogate(value)
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
"""Expected value that `not_json` reports for a Python object."""


def not_json(value: Any) -> list[tuple[Path, str, Any]]:
    """Return every place that is not JSON: path, reason and value."""
    problems: list[tuple[Path, str, Any]] = []
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending and len(problems) < 50:
        path, value_ = pending.pop()
        if len(path) >= DEEPEST and isinstance(value_, list | tuple | dict):
            text = f"at most {DEEPEST} levels of nesting"
            problems.append((path, text, cast("Any", value_)))
        elif value_ is None or isinstance(value_, bool | int):
            continue
        elif isinstance(value_, str):
            if has_surrogate(value_):
                problems.append((path, "text without lone surrogates", value_))
        elif isinstance(value_, float):
            if not math.isfinite(value_):
                problems.append((path, "a finite number", value_))
        elif isinstance(value_, list | tuple):
            items = cast("Sequence[Any]", value_)
            pending += [((*path, index), item) for index, item in enumerate(items)]
        elif isinstance(value_, dict):
            for key, item in cast("dict[Any, Any]", value_).items():
                if isinstance(key, str):
                    pending.append(((*path, key), item))
                else:
                    problems.append(((*path, str(key)), "a key that is text", key))
        else:
            problems.append((path, NO_JSON, value_))
    return problems


def is_deeper(tree: Json, most: int) -> bool:
    """Return whether a tree, which may contain itself, is deeper than `most`."""
    return place_below(tree, most) is not None


def place_below(tree: Json, most: int) -> Path | None:
    """Return the path of a container deeper than `most` levels, else None."""
    if not isinstance(tree, (Mapping, list, tuple)):
        return None
    # a shared part is visited again only at a greater depth
    seen: dict[int, int] = {}
    pending: list[tuple[Any, Path]] = [(tree, ())]
    while pending:
        node, path = pending.pop()
        if len(path) > most:
            return path
        seen_depth = seen.get(id(node), -1)
        if seen_depth >= len(path):
            continue
        seen[id(node)] = len(path)
        if isinstance(node, Mapping):
            parts: Any = cast("Mapping[Any, Any]", node).items()
        else:
            parts = enumerate(cast("list[Any]", node))
        pending += [
            (part, (*path, key if isinstance(key, int) else str(key)))
            for key, part in parts
            if isinstance(part, (Mapping, list, tuple))
        ]
    return None
