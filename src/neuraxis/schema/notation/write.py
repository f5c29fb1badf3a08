"""Write a JSON Schema as a node of the v2 notation (D2).

What the notation cannot express is listed in `loss`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from neuraxis.schema.annotations import (
    CLASS_KEY,
    FILE_KEY,
    FILE_WORD,
    FLAGS,
    KEYS_KEY,
    RAW_KEY,
    RAW_WORD,
    TRUSTED_KEY,
    TRUSTED_WORD,
)
from neuraxis.schema.builders import without_reference
from neuraxis.schema.describe import (
    FORMATS,
    LIMITS,
    NODE,
    is_literal,
    line,
    members_of,
)
from neuraxis.schema.navigate import is_deeper
from neuraxis.schema.notation.types import DEEPEST
from neuraxis.specs import Json

_DEEPEST = 2 * DEEPEST
"""Maximum JSON levels: an object's field is two below the object."""

_KEPT = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum"}
    | {"const", "anyOf", "oneOf", "prefixItems", "$ref", "$defs", "x-type", "not"}
    | {"description", "default", "examples", "format", "x-asset-ref", "$schema"}
    | {"title", "x-optional", *LIMITS, *FLAGS.values(), FILE_KEY}
    | {TRUSTED_KEY, RAW_KEY, CLASS_KEY, KEYS_KEY}
)


def node_from_schema(
    schema: Json, *, loss: list[str] | None = None, flag: str = "required"
) -> dict[str, Json]:
    """Return a JSON Schema as a v2 node; list losses in `loss`.

    `flag` is `required` for parameters and `optional` for responses (rule B39).
    """
    losses = [] if loss is None else loss
    root: Mapping[str, Json] = {}
    if isinstance(schema, Mapping):
        root = cast("Mapping[str, Json]", schema)
    definitions: Mapping[str, Json] = root.get("$defs") or {}
    writer = _Writer(definitions=definitions, flag=flag, loss=losses, written=set())
    if is_deeper(schema, _DEEPEST):
        losses.append(f"root: what is nested deeper than {_DEEPEST} levels")
        return {"type": "Any"}
    return writer.node(schema, "")


class _Writer(Struct, kw_only=True):
    """Writes one schema; a definition is written in full at first use."""

    definitions: Mapping[str, Json]
    flag: str
    loss: list[str]
    written: set[str]

    def node(self, schema: Json, where: str) -> dict[str, Json]:
        if not isinstance(schema, Mapping):
            if schema is False:
                self.loss.append(f"{where or 'root'}: the schema false")
            return {"type": "Any"}
        fields = cast("Mapping[str, Json]", schema)
        self.loss += [f"{where or 'root'}: {key}" for key in fields if key not in _KEPT]
        node: dict[str, Json] = {"type": None}
        if fields.get(RAW_KEY) is True:
            fields = {**without_reference(fields, RAW_KEY), "x-asset-ref": True}
            node[RAW_WORD] = False
        inner, nullable = _without_null(fields)
        node["type"] = self.type(inner, where, node)
        if nullable:
            node["nullable"] = True
        for key in ("description", "default"):
            if key in fields:
                node[key] = fields[key]
        examples: Json = fields.get("examples")
        if isinstance(examples, list) and examples:
            node["example"] = examples[0]
        if fields.get("x-asset-ref") is True:
            node["asset_ref_acceptable"] = True
        for word, mark in FLAGS.items():
            if fields.get(mark) is True:
                node[word] = True
        if fields.get(TRUSTED_KEY) is True:
            node[TRUSTED_WORD] = True
        if FILE_KEY in fields:
            node[FILE_WORD] = fields[FILE_KEY]
        if fields.get("x-optional") is True:
            node["required"] = False
        return node

    def type(
        self, schema: Mapping[str, Json], where: str, node: dict[str, Json]
    ) -> Json:
        """Return the value of `type`; other keys go into `node`."""
        if "$ref" in schema:
            return self.reference(str(schema["$ref"]), where)
        if isinstance(schema.get("properties"), Mapping):
            return self.fields(schema, where)
        for key in ("format", *LIMITS):
            if key in schema and not (key == "format" and schema[key] in FORMATS):
                node[key] = schema[key]
        if "enum" in schema or "const" in schema:
            node["enum"] = [m for m in members_of(schema) if m is not None]
            return line(
                {"type": schema.get("type", _enum_type(members_of(schema)))}, NODE
            )
        items: Json = schema.get("items")
        if schema.get("type") == "array" and isinstance(items, Mapping) and items:
            return self.items(cast("Mapping[str, Json]", items), where, node, schema)
        if (
            schema.get("type") == "object"
            and schema.get("additionalProperties") is False
        ):
            return {}
        return self.text(schema, where)

    def text(self, schema: Mapping[str, Json], where: str) -> str:
        """Return a type that fits one line, and note losses."""
        if is_deeper(schema, DEEPEST):
            self.loss.append(f"{where or 'root'}: what is nested deeper in the type")
        arms: Json = schema.get("anyOf") or schema.get("oneOf") or ()
        parts = [*cast("list[Json]", arms), *(schema.get("prefixItems") or ())]
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), Mapping):
                parts.append(schema[key])
        for part in parts:
            if isinstance(part, Mapping):
                part_schema = cast("Mapping[str, Json]", part)
                if "properties" in part_schema:
                    self.loss.append(f"{where or 'root'}: fields of an object inside")
                if "$ref" in part_schema:
                    self.reference(str(part_schema["$ref"]), where)
                if not all(map(is_literal, part_schema.get("enum", ()))):
                    self.loss.append(f"{where or 'root'}: enum inside")
                self.loss += [
                    f"{where or 'root'}: {key} inside"
                    for key in (*LIMITS, "format")
                    if key in part_schema
                    and key != "uniqueItems"
                    and part_schema[key] not in FORMATS
                ]
        return line(schema, NODE)

    def items(
        self,
        items: Mapping[str, Json],
        where: str,
        node: dict[str, Json],
        schema: Mapping[str, Json],
    ) -> Json:
        inner, nullable = _without_null(items)
        if isinstance(inner.get("properties"), Mapping) and not nullable:
            fields = self.fields(inner, f"{where}[]")
            return [{"name": name, **field} for name, field in fields.items()] or "List"
        extra = {key: inner[key] for key in ("enum", "format", *LIMITS) if key in inner}
        if extra and "$ref" not in inner and "anyOf" not in inner:
            node["items"] = extra
            plain = {k: v for k, v in inner.items() if k not in extra}
            if "enum" in extra and "type" not in plain:
                plain["type"] = _enum_type(extra["enum"])
            return line({**schema, "items": _with_null(plain, nullable)}, NODE)
        return self.text(schema, where)

    def fields(self, schema: Mapping[str, Json], where: str) -> dict[str, Json]:
        required: Any = schema.get("required") or ()
        if schema.get("additionalProperties") is not False:
            self.loss.append(f"{where or 'root'}: additionalProperties")
        written: dict[str, Json] = {}
        for name, field in schema["properties"].items():
            node = self.node(field, f"{where}.{name}" if where else name)
            if name not in required:
                node[self.flag] = self.flag == "optional"
            written[name] = node
        return written

    def reference(self, target: str, where: str) -> Json:
        name = target.rsplit("/", 1)[-1]
        body: Json = self.definitions.get(name)
        if name in self.written or not isinstance(body, Mapping):
            return name
        self.written.add(name)
        definition = cast("Mapping[str, Json]", body)
        if isinstance(definition.get("properties"), Mapping):
            return {"_type_ref": name, **self.fields(definition, name)}
        items: Json = definition.get("items")
        if isinstance(items, Mapping) and "properties" in items:
            fields = self.fields(cast("Mapping[str, Json]", items), name)
            entries = [{"name": key, **field} for key, field in fields.items()]
            return [{"_type_ref": name}, *entries]
        self.loss.append(f"{where or 'root'}: the definition {name}")
        return self.text(definition, where)


def _enum_type(members: list[Json]) -> list[str]:
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    return list(dict.fromkeys(names[type(m)] for m in members if type(m) in names))


def _without_null(schema: Mapping[str, Json]) -> tuple[Mapping[str, Json], bool]:
    """Return the schema without its null arm, and whether it had one."""
    kinds: Json = schema.get("type")
    if (
        isinstance(kinds, list)
        and "null" in kinds
        and len(cast("list[str]", kinds)) > 1
    ):
        kinds_ = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        return {**schema, "type": kinds_[0] if len(kinds_) == 1 else kinds_}, True
    arms: Json = schema.get("anyOf")
    if isinstance(arms, list) and {"type": "null"} in arms:
        arms_ = [arm for arm in cast("list[Json]", arms) if arm != {"type": "null"}]
        if len(arms_) == 1 and isinstance(arms_[0], Mapping):
            siblings = {key: value for key, value in schema.items() if key != "anyOf"}
            return {**cast("Mapping[str, Json]", arms_[0]), **siblings}, True
    return schema, False


def _with_null(plain: Mapping[str, Json], nullable: bool) -> Json:
    return {"anyOf": [plain, {"type": "null"}]} if nullable else plain
