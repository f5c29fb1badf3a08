"""Translate the schemas of a document to JSON Schema 2020-12 with `$defs`.

A named schema is translated once and referenced, never copied: that keeps a command's
schema short, and lets a type contain itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

import msgspec

from neuraxis.bridges.openapi_client.discriminators import Discriminators, Tag
from neuraxis.bridges.openapi_client.load import Document
from neuraxis.bridges.openapi_client.outlines import whole
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    Node,
    Notes,
    as_flag,
    as_number,
    as_text,
    as_typed,
    as_written,
    shortened,
)
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

_EXAMPLE_CHARACTERS = 120
_TYPES = frozenset(
    {"string", "number", "integer", "boolean", "object", "array", "null"}
)
_MEANT = {
    "int": "integer", "int32": "integer", "int64": "integer", "long": "integer",
    "float": "number", "double": "number", "decimal": "number", "bool": "boolean",
    "str": "string", "text": "string", "date": "string", "datetime": "string",
    "date-time": "string", "uuid": "string", "uri": "string", "url": "string",
    "password": "string", "file": "string", "binary": "string", "list": "array",
    "dict": "object", "map": "object", "dictionary": "object", "hash": "object",
}  # fmt: skip
"""Types that authors write -> JSON Schema types."""
_FLAGS = ("uniqueItems", "deprecated")
_TEXTS = ("contentEncoding", "contentMediaType")
_COUNTS = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties",
    "maxProperties", "minContains", "maxContains",
)  # fmt: skip
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_INNER = (
    "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties",
    "unevaluatedItems",
)  # fmt: skip
_UNIONS = ("allOf", "anyOf", "oneOf", "prefixItems")
_FIELDS = frozenset({"$ref", "allOf", "properties", "patternProperties"})
_DEEPEST = 64
"""Maximum levels of a schema, references not counted."""
_MOST_ARMS = 100
"""Maximum arms of one type that are searched for one that is closed."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


class Schemas(msgspec.Struct, kw_only=True):
    """The translated named schemas of one document."""

    document: Document
    notes: Notes
    modern: bool = False
    """Whether the document is 3.1, whose schemas are JSON Schema 2020-12."""
    defs: dict[str, dict[str, Json]] = {}
    names: dict[tuple[str, str, str], str] = {}
    """Name in `$defs` by a schema's document, pointer and variant."""
    counts: dict[str, int] = {}
    """How often a name was given, with a number behind it."""
    pending: list[tuple[str, Json, str, bool, Tag | None]] = []
    """Named types to translate: name, schema, document, whether it is joined, tag."""
    patterns: dict[str, bool] = {}
    discriminators: Discriminators
    depth: int = 0

    def translate(
        self,
        value: Json,
        base: str = "",
        *,
        joined: bool = False,
        is_parent: bool = False,
        tag: Tag | None = None,
    ) -> dict[str, Json]:
        """Return the JSON Schema of a schema; named ones are referred to.

        Args:
            value: the schema.
            base: the document in which it stands.
            joined: other schemas describe the same object: their fields are let in.
            is_parent: its objects may be of a type that is made of it.
            tag: the constant of the type that it refers to.
        """
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        if not isinstance(value, Mapping):
            if value is not None:
                self.notes.add("a schema that is no object: any value is taken there")
            return {}
        if self.depth == _DEEPEST:
            self.notes.add("a schema is nested too deep: any value is taken there")
            return {}
        self.depth += 1
        try:
            node = cast("Node", value)
            if not isinstance(ref := node.get("$ref"), str):
                return self._translated(node, base, joined=joined)
            if tag is None and not is_parent:
                tag = self._tag(ref, base)
            return self._referred(ref, node, base, tag, joined=joined)
        finally:
            self.depth -= 1

    def _translated(self, node: Node, base: str, *, joined: bool) -> dict[str, Json]:
        if joined:
            node = _opened(node)
        translated: dict[str, Json] = {}
        self._type(node, translated)
        self._limits(node, translated)
        self._parts(node, translated, base)
        self._unions(node, translated, base, joined=joined)
        self._remarks(node, translated)
        self._texts(node, translated)
        return translated

    def _tag(self, ref: str, base: str) -> Tag | None:
        try:
            return self.discriminators.of_child(ref, base)
        except CannotImport:
            return None  # `_referred` notes what is missing

    def _referred(
        self, ref: str, node: Node, base: str, tag: Tag | None, *, joined: bool
    ) -> dict[str, Json]:
        translated: dict[str, Json] = {}
        siblings = {key: part for key, part in node.items() if key != "$ref"}
        joins = joined or (self.modern and _has_fields(siblings))
        try:
            target, place, pointer = self.document.find(ref, base)
        except CannotImport as error:
            self.notes.add(f"{error}; any value is taken there")
        else:
            opens = joins and self._closes(target, place)
            name = self._named(target, place, pointer, tag, joined=opens)
            translated["$ref"] = f"#/$defs/{name}"
        if self.modern:
            translated.update(self.translate(siblings, base, joined=joined))
        elif text := as_text(node.get("description")):
            translated["description"] = shortened(text)
        return translated

    def _closes(self, value: Json, base: str) -> bool:
        """Return whether a type, or an arm of it, refuses other fields."""
        pending, seen = [(value, base)], 0
        while pending and seen < _MOST_ARMS:
            (part, place), seen = pending.pop(), seen + 1
            fields = as_map(part)
            if _opened(fields) is not fields:
                return True
            if isinstance(ref := fields.get("$ref"), str):
                try:
                    pending.append(self.document.find(ref, place)[:2])
                except CannotImport:
                    continue
            pending += [(arm, place) for arm in as_list(fields.get("allOf"))]
        return bool(pending)

    def _named(
        self, target: Json, place: str, pointer: str, tag: Tag | None, *, joined: bool
    ) -> str:
        key = (place, pointer, repr((joined, tag)))
        if key in self.names:
            return self.names[key]
        file = place.rpartition("/")[2].partition(".")[0]
        label = pointer.rpartition("/")[2] or file
        short = _UNSAFE.sub("_", label).strip("_") or "Type"
        name = short
        while name in self.defs:
            self.counts[short] = number = self.counts.get(short, 1) + 1
            name = f"{short}_{number}"
        self.names[key] = name
        self.defs[name] = {}
        # later: types may refer to each other in a long chain, or to themselves
        self.pending.append((name, target, place, joined, tag))
        return name

    def _type(self, node: Node, translated: dict[str, Json]) -> None:
        given = node.get("type")
        written = as_list(given) if isinstance(given, list) else [given]
        kinds: list[str] = []
        for item in written:
            text = item.strip() if isinstance(item, str) else ""
            kind = text if text in _TYPES else _MEANT.get(text.lower(), "")
            if text.lower() in _TYPES:
                kind = text.lower()
            if kind and kind not in kinds:
                kinds.append(kind)
            elif text and not kind and text != "any":
                self.notes.add(f"the type {text[:40]!r} is none: any value is taken")
                kinds = []
                break
        members = [*as_list(node.get("enum"))]
        nullable = bool(
            as_flag(node.get("nullable")) or as_flag(node.get("x-nullable"))
        )
        if nullable and kinds and "null" not in kinds:
            kinds.append("null")
        if kinds:
            translated["type"] = kinds[0] if len(kinds) == 1 else kinds
        if not members:
            return
        translated["enum"] = _members(members, kinds, nullable)
        fits = Schema({"type": kinds}).valid
        if not kinds or any(
            fits(item) for item in translated["enum"] if item is not None
        ):
            return
        self.notes.add("an enum whose members are not of its type: taken as is")
        if "array" in kinds:  # the author meant the items
            del translated["enum"]
            translated["items"] = {"enum": members}
        else:
            del translated["type"]

    def _limits(self, node: Node, translated: dict[str, Json]) -> None:
        for key in _COUNTS:
            value = as_number(node.get(key))
            if value is not None and value >= 0 and value == int(value):
                translated[key] = int(value)
        for key in _NUMBERS:
            if (value := as_number(node.get(key))) is not None:
                translated[key] = value
        if translated.get("multipleOf", 1) <= 0:
            del translated["multipleOf"]
        for key, limit in (
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ):
            if as_flag(node.get(key)) and limit in translated:  # the form of draft 4
                translated[key] = translated.pop(limit)
        if translated.get("maxLength") == 0:  # of generators that know no limit
            del translated["maxLength"]
        pattern = node.get("pattern")
        if isinstance(pattern, str) and self._usable(pattern):
            translated["pattern"] = pattern
        text = as_text(node.get("format"))
        if text and text not in ("binary", "file"):
            translated["format"] = text

    def _remarks(self, node: Node, translated: dict[str, Json]) -> None:
        """Copy the keywords that JSON Schema shares, if of their type."""
        if "const" in node:
            translated["const"] = as_typed(node["const"], translated)
        for key in _FLAGS:
            if as_flag(node.get(key)) is True:
                translated[key] = True
        for key in _TEXTS:
            if text := as_text(node.get(key)):
                translated[key] = text

    def is_read_only(self, value: Json, base: str) -> bool:
        """Return whether a field, or its type, is only in answers."""
        if as_flag(as_map(value).get("readOnly")):
            return True
        try:
            target, _ = self.document.deref(value, base)
        except CannotImport:
            return False
        return as_flag(target.get("readOnly")) is True

    def _usable(self, pattern: str) -> bool:
        if pattern not in self.patterns:
            fits = Schema({"pattern": pattern}).defect is None
            self.patterns[pattern] = fits
            if not fits:
                self.notes.add(f"the pattern {pattern[:80]!r} is not enforced")
        return self.patterns[pattern]

    def _parts(self, node: Node, translated: dict[str, Json], base: str) -> None:
        properties = as_map(node.get("properties"))
        hidden = {
            name for name, part in properties.items() if self.is_read_only(part, base)
        }
        if "properties" in node:
            translated["properties"] = {
                name: self.translate(part, base)
                for name, part in properties.items()
                if name not in hidden
            }
        required = [
            name
            for name in map(as_written, as_list(node.get("required")))
            if name and name not in hidden
        ]
        if required:
            translated["required"] = list(dict.fromkeys(required))
        extra = node.get("additionalProperties")
        if (flag := as_flag(extra)) is not None:
            # beside `allOf`, authors mean the fields of its types, too
            joined = flag is False and bool(as_list(node.get("allOf")))
            key = "unevaluatedProperties" if joined else "additionalProperties"
            translated[key] = flag
        elif isinstance(extra, Mapping):
            translated["additionalProperties"] = self.translate(
                cast("Json", extra), base
            )
        items = node.get("items")
        if isinstance(items, list):
            schemas = cast("list[Json]", items)
            translated["prefixItems"] = [self.translate(part, base) for part in schemas]
        elif items is not None:
            translated["items"] = {
                **self.translate(items, base),
                **translated.get("items", {}),
            }

    def _unions(
        self, node: Node, translated: dict[str, Json], base: str, *, joined: bool
    ) -> None:
        for key in _UNIONS:
            if not (arms := as_list(node.get(key))):
                continue
            is_all = key == "allOf"
            joins = is_all and (joined or _join(node))
            tags: list[Tag | None] = [None] * len(arms)
            if key in ("anyOf", "oneOf"):
                tags = self.discriminators.of_arms(node, arms, base)
            translated[key] = [
                self.translate(arm, base, joined=joins, is_parent=is_all, tag=tag)
                for arm, tag in zip(arms, tags, strict=True)
            ]
        if not all(map(_is_condition, as_list(node.get("oneOf")))):
            # types of real documents overlap, and servers take what fits several
            union: Json = {"anyOf": translated.pop("oneOf")}
            if "anyOf" in translated:
                translated["allOf"] = [*translated.get("allOf", ()), union]
            else:
                translated.update(union)
        for key in _INNER:
            if isinstance(node.get(key), Mapping | bool):
                translated[key] = self.translate(node[key], base)
        for key in ("patternProperties", "dependentSchemas"):
            if isinstance(node.get(key), Mapping):
                translated[key] = {
                    name: self.translate(part, base)
                    for name, part in as_map(node[key]).items()
                    if key != "patternProperties" or self._usable(name)
                }
        if isinstance(node.get("dependentRequired"), Mapping):
            translated["dependentRequired"] = node["dependentRequired"]
        if "$dynamicRef" in node or "$id" in node:
            self.notes.add("$id and $dynamicRef are not followed")

    def _texts(self, node: Node, translated: dict[str, Json]) -> None:
        text = as_text(node.get("description")) or as_text(node.get("title"))
        if text:
            translated["description"] = shortened(text)
        if "default" in node and _is_short(node["default"]):
            translated["default"] = as_typed(node["default"], translated)
        examples = as_list(node.get("examples"))[:2]
        if "example" in node:
            examples = [node["example"]]
        if examples := [item for item in examples if _is_short(item)]:
            translated["examples"] = [as_typed(item, translated) for item in examples]

    def whole(
        self, schema: Mapping[str, Json], limit: int
    ) -> tuple[dict[str, Json], int]:
        """Return the schema with its `$defs`, and the number of shortened ones.

        Args:
            schema: the schema that refers to them.
            limit: maximum characters as JSON; above it the types farthest from the root
                are reduced to kind, description and required fields.
        """
        while self.pending:
            name, target, place, joined, tag = self.pending.pop()
            try:
                named = self.translate(target, place, joined=joined)
                self.defs[name] = named if tag is None else tag.added_to(named)
            except RecursionError:  # of values in it
                self.notes.add(f"{name} is nested too deep: any value is taken there")
        return whole(schema, self.defs, limit)


def _opened(node: Node) -> Node:
    """Return a schema that lets other fields in."""
    if as_flag(node.get("additionalProperties")) is not False:
        return node
    return {key: part for key, part in node.items() if key != "additionalProperties"}


def _join(node: Node) -> bool:
    """Return whether the `allOf` of a schema brings fields of several together.

    A description or `nullable` is often added to a type in this way.
    """
    own = {key: part for key, part in node.items() if key != "allOf"}
    arms = [own, *map(as_map, as_list(node.get("allOf")))]
    return sum(map(_has_fields, arms)) > 1


def _has_fields(node: Node) -> bool:
    if not _FIELDS.isdisjoint(node):
        return True
    unions = (*as_list(node.get("anyOf")), *as_list(node.get("oneOf")))
    return not all(map(_is_condition, unions))


def _is_condition(arm: Json) -> bool:
    """Return whether a union's arm says only which fields go together."""
    return set(as_map(arm)) <= {"required", "not", "description", "title"}


def _members(members: list[Json], kinds: list[str], nullable: bool) -> list[Json]:
    if "string" in kinds and not {"integer", "number", "boolean"} & {*kinds}:
        members = [
            item
            if isinstance(item, str) or item is None
            else json.dumps(item, ensure_ascii=False)
            for item in members
        ]
    members = [as_typed(item, {"type": [*kinds]}) for item in members]
    if nullable and None not in members:
        members.append(None)
    unique: list[Json] = []
    for item in members:
        if not any(item == other and type(item) is type(other) for other in unique):
            unique.append(item)
    return unique


def _is_short(value: Json) -> bool:
    try:
        return len(json.dumps(value)) <= _EXAMPLE_CHARACTERS
    except (TypeError, ValueError, RecursionError):
        return False
