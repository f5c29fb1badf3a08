"""Check a reference's path against the declared response schema.

A reference to a field that no answer can have is reported before anything runs
(rule C23). Only what the schema excludes is a problem; what it leaves open is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from neuraxis.formatting import nearest, quote
from neuraxis.messages import Problem
from neuraxis.references.filters import (
    AROUND,
    COUNTS,
    LEAVE_OUT,
    Filter,
    Operation,
    Slice,
)
from neuraxis.specs import Json

MOST_ALTERNATIVES = 50
_Node = Mapping[str, Json]


def check(schema: _Node, operations: Sequence[Operation]) -> Problem | frozenset[str]:
    """Return a part's possible JSON types, or why no answer has it.

    No types: they are not known. A reference with a `default` may name a missing part.
    """
    nodes: list[_Node] = [schema]
    for operation in operations:
        if isinstance(operation, Filter):
            if operation.name not in ("first", "last"):
                return frozenset()
            operation = 0
        alternatives = _alternatives(nodes, schema)
        if alternatives is None:
            return frozenset()
        found = [_next_node(node, operation) for node in alternatives]
        nodes = [node for node in found if node is not None]
        if not nodes:
            fields = [
                name for node in alternatives for name in node.get("properties", ())
            ]
            kinds = [str(node.get("type", "")) for node in alternatives]
            problem = _problem(operation, operations, fields, kinds)
            if problem is None:
                return frozenset()
            hint = _instead(schema, operation, operations[0], kinds)
            return replace(problem, got=problem.got + hint)
    return _types(_alternatives(nodes, schema) or ())


def _types(nodes: Sequence[_Node]) -> frozenset[str]:
    """Return the JSON types of all nodes; none if one says none."""
    found: set[str] = set()
    for node in nodes:
        kind = node.get("type")
        if not kind:
            return frozenset()
        found.update([kind] if isinstance(kind, str) else kind)
    return frozenset(found)


def _instead(
    schema: _Node, operation: Operation, first: Operation, kinds: Sequence[str]
) -> str:
    """Return the part that was probably meant, in words; "" if unclear."""
    if operation in ("length", "size") and {"array", "string"} & set(kinds):
        return COUNTS
    if first in AROUND and first not in schema.get("properties", ()):
        return LEAVE_OUT.format(first)
    return ""


def _problem(
    operation: str | int | Slice,
    operations: Sequence[Operation],
    fields: list[str],
    kinds: list[str],
) -> Problem | None:
    if any(
        isinstance(other, Filter) and other.name == "default" for other in operations
    ):
        return None
    kind = " or ".join(dict.fromkeys(filter(None, kinds))) or "another type"
    if isinstance(operation, str):
        close = nearest(operation, fields)
        return Problem(
            expected=f"a declared field ({', '.join(fields[:20])})"
            if fields
            else f"no field, since {kind} is declared there",
            got=quote(operation),
            candidates=close or tuple(fields[:20]),
            keyword="unknown_field",
        )
    return Problem(
        expected=f"no index, since {kind} is declared there",
        got="a slice" if isinstance(operation, Slice) else quote(operation),
        candidates=tuple(fields[:20]),
        keyword="unknown_field",
    )


def _alternatives(nodes: Sequence[_Node], root: _Node) -> list[_Node] | None:
    """Resolve `$ref`, anyOf and oneOf to their nodes; None if unknown."""
    unread = list(nodes)
    alternatives: list[_Node] = []
    for _ in range(MOST_ALTERNATIVES):
        if not unread:
            return alternatives
        node = unread.pop()
        if "allOf" in node or "x-type" in node:
            return None
        parts: list[Json] = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        if "$ref" in node:
            name = str(node["$ref"]).removeprefix("#/$defs/")
            parts = [root.get("$defs", {}).get(name)]
        elif not parts:
            alternatives.append(node)
        for part in parts:
            part_node = _node(part)
            if part_node is None:
                return None
            unread.append(part_node)
    return None


def _node(value: Json) -> _Node | None:
    return cast("_Node", value) if isinstance(value, Mapping) else None


def _next_node(node: _Node, operation: str | int | Slice) -> _Node | None:
    """Return a part's schema; None: no such part; `{}`: unconstrained."""
    kind = node.get("type")
    kinds: Sequence[str] = [kind] if isinstance(kind, str) else kind or ()
    if not kinds:
        return {}
    child_node: _Node | None = None
    if "object" in kinds and not isinstance(operation, Slice):
        child_node = _field(node, str(operation))
    if child_node is None and "array" in kinds and _is_index(operation):
        if isinstance(operation, Slice):
            return node
        child_node = {} if "prefixItems" in node else _node(node.get("items")) or {}
    if child_node is None and "string" in kinds and isinstance(operation, Slice):
        return node
    return child_node


def _is_index(operation: str | int | Slice) -> bool:
    return not isinstance(operation, str) or operation.isdigit()


def _field(node: _Node, key: str) -> _Node | None:
    properties: Mapping[str, Json] = node.get("properties", {})
    if key in properties:
        return _node(properties[key]) or {}
    extra = node.get("additionalProperties", True)
    if extra is False and "patternProperties" not in node:
        return None
    return _node(extra) or {}
