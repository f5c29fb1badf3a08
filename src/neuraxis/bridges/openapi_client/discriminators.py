"""Find the values of the property that tells a document's types apart.

A union, or the parent of its types, names that property in `discriminator`. Schemas of
OpenAPI do not repeat its value in each type, but a model needs to know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from neuraxis.bridges.openapi_client.load import Document
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    Node,
    as_flag,
    as_text,
)
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

_SCHEMAS = ("/components/schemas", "/definitions")
"""Where schemas have names, in OpenAPI 3 and 2.0."""
_LIMITS = ("type", "enum", "const", "pattern", "minLength", "maxLength")
_DEEPEST = 8
"""Maximum depth of parents that is followed."""


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """Property that is constant in the objects of a type."""

    name: str
    values: tuple[str, ...]
    """The possible values, usually one."""
    required: bool = False
    """Whether the type or its parents require it."""

    def added_to(self, schema: Mapping[str, Json]) -> dict[str, Json]:
        """Return the translated schema of the type with the constant."""
        properties = as_map(schema.get("properties"))
        old = as_map(properties.get(self.name))
        fixed: dict[str, Json] = {
            key: old[key] for key in ("description", "deprecated") if key in old
        }
        values = list(self.values)
        fixed |= {"const": values[0]} if len(values) == 1 else {"enum": values}
        tagged: dict[str, Json] = {
            **schema,
            "properties": {**properties, self.name: {"type": "string", **fixed}},
        }
        required = as_list(schema.get("required"))
        if self.required and self.name not in required:
            tagged["required"] = [*required, self.name]
        return tagged


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """Schema that a type's objects fit: its own, or a parent's."""

    node: Node
    place: str
    own: bool
    """Whether it is written in the type itself, so that no sibling has it."""


class Discriminators(msgspec.Struct, kw_only=True):
    """Discriminators of one document."""

    document: Document
    mapped: dict[int, list[tuple[str, Node]]] = {}
    """Values and their types, by the identity of a `mapping`."""
    children: dict[tuple[str, str], Tag | None] = {}
    """Constants of types by place and pointer, as far as they are known."""

    def of_arms(self, node: Node, arms: list[Json], base: str) -> list[Tag | None]:
        """Return the constant of each arm of a union.

        The names of schemas are values only if no arm says otherwise: then the document
        does not follow its own discriminator.
        """
        name = _property(node)
        if not name:
            return [None] * len(arms)
        tags: list[Tag | None] = []
        by_name: list[int] = []
        is_followed = True
        for arm in arms:
            try:
                target, place = self.document.deref(arm, base)
                values = self._keys(node, base, target)
                if not values and (values := self._name(arm, base)):
                    by_name.append(len(tags))
                    is_followed &= not self._contradicts(name, values, target, place)
            except CannotImport:
                tags.append(None)
                continue
            tags.append(self._tag(name, values, target, place))
        if not is_followed:
            return [None if at in by_name else tag for at, tag in enumerate(tags)]
        return tags

    def of_child(self, ref: str, base: str) -> Tag | None:
        """Return the constant of a type whose parent has the discriminator.

        A parent's `mapping` without the type may leave it out on purpose: it could be a
        type between others.

        Raises:
            CannotImport: the type is missing.
        """
        _, *found = self.document.find(ref, base)
        known = (found[0], found[1])
        if known not in self.children:
            self.children[known] = self._of_child(ref, base)
        return self.children[known]

    def _of_child(self, ref: str, base: str) -> Tag | None:
        target, place = self.document.deref({"$ref": ref}, base)
        for part in self._parts(target, place):
            name = _property(part.node)
            if not name or part.own:
                continue
            values = self._keys(part.node, part.place, target)
            if not values and not _mapping(part.node):
                values = self._name({"$ref": ref}, base)
            return self._tag(name, values, target, place)
        return None

    def _keys(self, owner: Node, base: str, target: Node) -> tuple[str, ...]:
        """Return the keys of a discriminator's mapping that lead to a type."""
        mapping = _mapping(owner)
        if not mapping:
            return ()
        if id(mapping) not in self.mapped:
            found: list[tuple[str, Node]] = []
            for key, value in mapping.items():
                for ref in _references(as_text(value)):
                    try:
                        node, _ = self.document.deref({"$ref": ref}, base)
                    except CannotImport:
                        continue
                    found.append((key, node))
                    break
            self.mapped[id(mapping)] = found
        return tuple(key for key, node in self.mapped[id(mapping)] if node is target)

    def _name(self, arm: Json, base: str) -> tuple[str, ...]:
        """Return the name of a referred schema, if it has one."""
        ref = as_map(arm).get("$ref")
        if not isinstance(ref, str):
            return ()
        folder, _, name = self.document.find(ref, base)[2].rpartition("/")
        return (name.replace("~1", "/"),) if folder in _SCHEMAS else ()

    def _parts(
        self, node: Node, place: str, *, own: bool = True, depth: int = 0
    ) -> Iterator[_Part]:
        yield _Part(node=node, place=place, own=own)
        for arm in as_list(node.get("allOf")) if depth < _DEEPEST else ():
            try:
                inner, at = self.document.deref(arm, place)
            except CannotImport:
                continue
            is_own = own and "$ref" not in as_map(arm)
            yield from self._parts(inner, at, own=is_own, depth=depth + 1)

    def _fields(self, name: str, target: Node, place: str) -> Iterator[_Part]:
        """Yield what a type and its parents say about one property."""
        for part in self._parts(target, place):
            written = as_map(part.node.get("properties")).get(name)
            if written is None:
                continue
            beside = {key: v for key, v in as_map(written).items() if key != "$ref"}
            yield _Part(node=beside, place=part.place, own=part.own)
            if "$ref" in as_map(written):
                node, at = self.document.deref(written, part.place)
                yield _Part(node=node, place=at, own=False)

    def _tag(
        self, name: str, values: tuple[str, ...], target: Node, place: str
    ) -> Tag | None:
        fields = list(self._fields(name, target, place))
        if not values or not fields or any(map(_is_settled, fields)):
            return None
        if self._contradicts(name, values, target, place):
            return None
        parts = self._parts(target, place)
        required = any(name in as_list(part.node.get("required")) for part in parts)
        return Tag(name=name, values=values, required=required)

    def _contradicts(
        self, name: str, values: tuple[str, ...], target: Node, place: str
    ) -> bool:
        shown = [as_map(target.get("example")).get(name)]
        for field in self._fields(name, target, place):
            node = field.node
            limits = {key: node[key] for key in _LIMITS if key in node}
            schema = Schema(limits)
            if schema.defect or not all(map(schema.valid, values)):
                return True
            if field.own:
                shown += [node.get("default"), node.get("example")]
                shown += as_list(node.get("examples"))
        return any(item is not None and item not in values for item in shown)


def _is_settled(field: _Part) -> bool:
    """Return whether a type itself fixes the property, or hides it."""
    has_values = field.own and not {"enum", "const"}.isdisjoint(field.node)
    is_joined = not {"allOf", "anyOf", "oneOf"}.isdisjoint(field.node)
    return has_values or is_joined or as_flag(field.node.get("readOnly")) is True


def _property(owner: Node) -> str:
    """Return the property that tells types apart; in 2.0 it stands alone."""
    given = owner.get("discriminator")
    return as_text(given) or as_text(as_map(given).get("propertyName"))


def _mapping(owner: Node) -> Node:
    return as_map(as_map(owner.get("discriminator")).get("mapping"))


def _references(text: str) -> Iterator[str]:
    """Yield what a mapping's value may mean: a name, or a reference."""
    if "/" not in text and "#" not in text:
        yield f"#/components/schemas/{text}"
    if "/" in text or "#" in text or text.endswith((".json", ".yaml", ".yml")):
        yield text
