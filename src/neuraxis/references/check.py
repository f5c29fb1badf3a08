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


def check(schema: _Node, operations: Sequence[Operation]) -> Problem | None:
    """Return why no answer of this schema has the requested part.

    A reference with a `default` may name a missing part.
    """
    nodes: list[_Node] = [schema]
    for operation in operations:
        if isinstance(operation, Filter):
            if operation.name not in ("first", "last"):
                return None
            operation = 0
        found: list[_Node] = []
        fields: list[str] = []
        kinds: list[str] = []
        alternatives = _alternatives(nodes, schema)
        if alternatives is None:
            return None
        for node in alternatives:
            below = _below(node, operation)
            if below is not None:
                found.append(below)
            fields += node.get("properties", ())
            kinds.append(str(node.get("type", "")))
        if not found:
            problem = _problem(operation, operations, fields, kinds)
            hint = _instead(schema, operation, operations[0], kinds)
            return problem and replace(problem, got=problem.got + hint)
        nodes = found
    return None


def _instead(
    schema: _Node, operation: Operation, first: Operation, kinds: Sequence[str]
) -> str:
    """Return the part most likely meant, in words; "" where unclear."""
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
    """Return the nodes behind `$ref`, anyOf and oneOf; None if unknown."""
    unread = list(nodes)
    found: list[_Node] = []
    for _ in range(MOST_ALTERNATIVES):
        if not unread:
            return found
        node = unread.pop()
        if "allOf" in node or "x-type" in node:
            return None
        parts: list[Json] = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        if "$ref" in node:
            name = str(node["$ref"]).removeprefix("#/$defs/")
            parts = [root.get("$defs", {}).get(name)]
        elif not parts:
            found.append(node)
        for part in parts:
            known = _node(part)
            if known is None:
                return None
            unread.append(known)
    return None


def _node(value: Json) -> _Node | None:
    return cast("_Node", value) if isinstance(value, Mapping) else None


def _below(node: _Node, operation: str | int | Slice) -> _Node | None:
    """Return a part's schema; None: no such part; `{}`: unconstrained."""
    kind = node.get("type")
    kinds: Sequence[str] = [kind] if isinstance(kind, str) else kind or ()
    if not kinds:
        return {}
    below: _Node | None = None
    if "object" in kinds and not isinstance(operation, Slice):
        below = _field(node, str(operation))
    if below is None and "array" in kinds and _is_index(operation):
        if isinstance(operation, Slice):
            return node
        below = {} if "prefixItems" in node else _node(node.get("items")) or {}
    if below is None and "string" in kinds and isinstance(operation, Slice):
        return node
    return below


def _is_index(operation: str | int | Slice) -> bool:
    return not isinstance(operation, str) or operation.isdigit()


def _field(node: _Node, key: str) -> _Node | None:
    properties: Mapping[str, Json] = node.get("properties", {})
    if key in properties:
        return _node(properties[key]) or {}
    more = node.get("additionalProperties", True)
    if more is False and "patternProperties" not in node:
        return None
    return _node(more) or {}
