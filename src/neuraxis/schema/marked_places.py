"""Find where a schema, which may contain itself, has certain keywords.

The schema is read whole, each part once. Then only the ways to marked parts are
unfolded, the shortest first; a part that is not opened, since it stands inside itself
or since there are very many, says what it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import cast

from msgspec import Struct

from neuraxis.messages import Path
from neuraxis.schema.navigate import Node, referred
from neuraxis.specs import Json

ANY = "*"
"""Wildcard for any index or key in a path."""

MOST = 1000
"""Maximum marked parts that are unfolded, beside those of the root."""

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_SAME_VALUE_NAMED = ("dependentSchemas", "dependencies")
_INSIDE = (
    *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

Mark = tuple[str, str | bool]
"""A keyword and its value: True, or a word."""


class Marked(Struct, frozen=True):
    """A mark, and the place that it covers.

    Not `exact`: it stands somewhere below the place, which was not opened.
    """

    path: Path
    mark: Mark
    exact: bool


class _Way(Struct, frozen=True):
    """A part, and how it was reached."""

    path: Path
    node: Node
    above: _Way | None = None

    def recurs(self) -> bool:
        """Whether the part stands inside itself."""
        way = self.above
        while way is not None:
            if way.node is self.node:
                return True
            way = way.above
        return False


def marked_places(schema: Node, keys: Collection[str]) -> Iterator[Marked]:
    """Yield every mark of these keywords, with the place that it covers."""
    if not _occurs(schema, keys):
        return
    parts = _parts(schema)
    held = _held(schema, parts, keys)
    # ids are of parts of the schema, which lives longer
    seen: set[tuple[int, Path]] = set()
    ways, left = [_Way((), schema)], MOST
    for way in ways:
        node, path = way.node, way.path
        if (id(node), path) in seen:
            continue
        seen.add((id(node), path))
        own = _marks_in(node, keys)
        inner = [one for one in parts[id(node)] if held[id(one[1])]]
        if way.above is not None and (way.recurs() or len(inner) > left):
            for mark in sorted(held[id(node)], key=str):
                yield Marked(path, mark, mark in own)
            continue
        for mark in own:
            yield Marked(path, mark, True)
        left -= len(inner) if way.above is not None else 0
        ways += [_Way((*path, *step), part, way) for step, part in inner]


def _occurs(schema: Node, keys: Collection[str]) -> bool:
    """Whether one of the keywords may occur; most schemas have none."""
    try:
        text = repr(schema)
    except RecursionError:
        return True
    return any(key in text for key in keys)


def _marks_in(node: Node, keys: Collection[str]) -> list[Mark]:
    values = [(key, node.get(key)) for key in keys]
    return [
        (key, value) for key, value in values if value is True or isinstance(value, str)
    ]


def _parts(root: Node) -> dict[int, list[tuple[Path, Node]]]:
    """Return the parts of every reachable part, with the steps to them."""
    definitions = [part for _, part in _named(root.get("$defs"))]
    # where an unknown reference leads: such as to an anchor
    anywhere: Node = {"anyOf": [root, *definitions]}
    found: dict[int, list[tuple[Path, Node]]] = {}
    pending: list[Node] = [root]
    while pending:
        node = pending.pop()
        if id(node) not in found:
            found[id(node)] = [
                (step, cast("Node", part))
                for step, part in _steps(node, root, anywhere)
                if isinstance(part, Mapping)
            ]
            pending += [part for _, part in found[id(node)]]
    return found


def _steps(node: Node, root: Node, anywhere: Node) -> Iterator[tuple[Path, Json]]:
    for key in _REFERENCES:
        if isinstance(node.get(key), str):
            known = referred(node, root) if key == "$ref" else None
            yield (), anywhere if known is None else known
    for key in _SAME_VALUE:
        yield from (((), part) for part in _listed(node.get(key)))
    for key in _SAME_VALUE_NAMED:
        yield from (((), part) for _, part in _named(node.get(key)))
    for name, part in _named(node.get("properties")):
        yield (name,), part
    for key in _INSIDE:
        yield from (((ANY,), part) for part in _listed(node.get(key)))
    for _, part in _named(node.get("patternProperties")):
        yield (ANY,), part


def _listed(value: Json) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else [value]


def _named(value: Json) -> list[tuple[str, Json]]:
    return [*cast("Node", value).items()] if isinstance(value, Mapping) else []


def _held(
    root: Node, parts: Mapping[int, list[tuple[Path, Node]]], keys: Collection[str]
) -> dict[int, set[Mark]]:
    """Return the marks that each part has or that stand below it."""
    nodes = {id(root): root}
    parents: dict[int, list[int]] = {at: [] for at in parts}
    for at, inner in parts.items():
        for _, part in inner:
            nodes[id(part)] = part
            parents[id(part)].append(at)
    held: dict[int, set[Mark]] = {at: set() for at in parts}
    pending = [(at, mark) for at in nodes for mark in _marks_in(nodes[at], keys)]
    while pending:
        at, mark = pending.pop()
        if mark not in held[at]:
            held[at].add(mark)
            pending += [(above, mark) for above in parents[at]]
    return held
