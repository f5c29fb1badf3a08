"""Translate the schemas of a document to JSON Schema 2020-12 with `$defs`.

A named schema is translated once and referenced, never copied: that keeps a command's
schema short, and lets a type contain itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from neuraxis.bridges.openapi_client.load import Document
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
    patterns: dict[str, bool] = {}

    def translate(self, value: Json, base: str = "") -> dict[str, Json]:
        """Return the JSON Schema of a schema; named ones are referred to."""
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        if not isinstance(value, Mapping):
            if value is not None:
                self.notes.add("a schema that is no object: any value is taken there")
            return {}
        node = cast("Node", value)
        if isinstance(ref := node.get("$ref"), str):
            return self._referred(ref, node, base)
        translated: dict[str, Json] = {}
        self._type(node, translated)
        self._limits(node, translated)
        self._parts(node, translated, base)
        self._remarks(node, translated)
        self._texts(node, translated)
        return translated

    def _referred(self, ref: str, node: Node, base: str) -> dict[str, Json]:
        translated: dict[str, Json] = {}
        try:
            target, place, pointer = self.document.find(ref, base)
        except CannotImport as error:
            self.notes.add(f"{error}; any value is taken there")
        else:
            translated["$ref"] = f"#/$defs/{self._named(target, place, pointer)}"
        if self.modern:
            siblings = {key: part for key, part in node.items() if key != "$ref"}
            translated.update(self.translate(siblings, base))
        elif text := as_text(node.get("description")):
            translated["description"] = shortened(text)
        return translated

    def _named(self, target: Json, place: str, pointer: str, variant: str = "") -> str:
        key = (place, pointer, variant)
        if key in self.names:
            return self.names[key]
        file = place.rpartition("/")[2].partition(".")[0]
        label = pointer.rpartition("/")[2] or file
        short = _UNSAFE.sub("_", label).strip("_") or "Type"
        name, number = short, 2
        while name in self.defs:
            name, number = f"{short}_{number}", number + 1
        self.names[key] = name
        self.defs[name] = {}  # a type that contains itself finds its name
        self.defs[name] = self.translate(target, place)
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
        self._unions(node, translated, base)

    def _unions(self, node: Node, translated: dict[str, Json], base: str) -> None:
        for key in _UNIONS:
            if arms := as_list(node.get(key)):
                translate = self._joined if key == "allOf" else self.translate
                translated[key] = [translate(arm, base) for arm in arms]
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

    def _joined(self, arm: Json, base: str) -> dict[str, Json]:
        """Return an arm of an `allOf` that lets other arms' fields in."""
        node, ref = as_map(arm), as_map(arm).get("$ref")
        try:
            target, place, pointer = (
                self.document.find(ref, base)
                if isinstance(ref, str)
                else (node, "", "")
            )
        except CannotImport:
            return self.translate(arm, base)  # it notes what is missing
        fields = as_map(target)
        if as_flag(fields.get("additionalProperties")) is not False:
            return self.translate(arm, base)
        opened = {
            key: part for key, part in fields.items() if key != "additionalProperties"
        }
        if target is node:
            return self.translate(opened, base)
        return {"$ref": f"#/$defs/{self._named(opened, place, pointer, 'joined')}"}

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
                are reduced to kind and description.
        """
        full = self._gathered(schema, lambda name: self.defs[name], None)[0]
        if not full:
            return dict(schema), 0
        complete = {**schema, "$defs": full}
        if _size(complete) <= limit:
            return complete, 0
        short, cut = self._gathered(schema, self._brief, limit - _size(schema))
        return {**schema, "$defs": short}, cut

    def _brief(self, name: str) -> dict[str, Json]:
        return cast("dict[str, Json]", _without_prose(self.defs[name]))

    def _gathered(
        self,
        schema: Mapping[str, Json],
        take: Callable[[str], dict[str, Json]],
        room: int | None,
    ) -> tuple[dict[str, Json], int]:
        definitions: dict[str, Json] = {}
        pending = _references(schema)
        cut = 0
        while pending:
            nested: list[str] = []
            for name in pending:
                if name in definitions or name not in self.defs:
                    continue
                part = take(name)
                if room is not None:
                    if _size(part) > room:
                        part, cut = _outline(part, room), cut + 1
                    room -= _size(part)
                definitions[name] = part
                nested += _references(part)
            pending = nested
        return definitions, cut


def shape(
    document: Document, value: Json, base: str = "", depth: int = 3
) -> dict[str, Json]:
    """Return the outline of a response: fields and kinds, nothing required.

    A server's real answers often differ from its document in details; they must not be
    refused for that, and the model needs only the names of the fields.
    """
    try:
        node, base = document.deref(value, base)
    except CannotImport:
        return {}
    properties: dict[str, Json] = {}
    for part in [node, *as_list(node.get("allOf"))]:
        try:
            inner, _ = document.deref(part, base)
        except CannotImport:
            continue
        properties.update(as_map(inner.get("properties")))
    if properties:
        if depth == 0:
            return {"type": ["object", "null"]}
        return {
            "type": "object" if depth == 3 else ["object", "null"],
            "properties": {
                name: shape(document, part, base, depth - 1)
                for name, part in list(properties.items())[:40]
            },
        }
    if "items" in node:
        items = shape(document, node["items"], base, max(depth - 1, 0))
        return {"type": "array" if depth == 3 else ["array", "null"], "items": items}
    text = as_text(node.get("description"))
    return {"description": shortened(text, 80)} if text and depth >= 2 else {}


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
    except (TypeError, ValueError):
        return False


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _references(value: Json) -> list[str]:
    """Return the names in `$defs` that a schema refers to, in order."""
    names: dict[str, None] = {}
    pending: list[Json] = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, Mapping):
            node = cast("Node", here)
            ref = node.get("$ref")
            if isinstance(ref, str):
                names[ref.removeprefix("#/$defs/")] = None
            pending += [
                part for part in node.values() if isinstance(part, Mapping | list)
            ]
        elif isinstance(here, list):
            pending += cast("list[Json]", here)
    return list(names)


def _without_prose(value: Json) -> Json:
    """Return the schema without examples, and with short descriptions."""
    if isinstance(value, list):
        return [_without_prose(item) for item in cast("list[Json]", value)]
    if not isinstance(value, Mapping):
        return value
    reduced: dict[str, Json] = {}
    for key, part in cast("Node", value).items():
        if key == "description" and isinstance(part, str):
            reduced[key] = shortened(part, 60)
        elif key == "properties" or not (key == "examples" and isinstance(part, list)):
            reduced[key] = _without_prose(part)
    return reduced


def _outline(schema: Mapping[str, Json], room: int) -> dict[str, Json]:
    """Return a type with only its required fields, if they fit."""
    text = shortened(as_text(schema.get("description")), 60)
    outline = {key: schema[key] for key in ("type", "enum") if key in schema}
    fields = as_map(schema.get("properties"))
    required = [name for name in as_list(schema.get("required")) if name in fields]
    if required:
        longer = {
            **outline,
            "properties": {str(name): fields[str(name)] for name in required},
            "required": required,
            "description": f"{text} (its other fields are not listed here)".strip(),
        }
        if _size(longer) <= room:
            return longer
    outline["description"] = f"{text} (its fields are not listed here)".strip()
    return outline
