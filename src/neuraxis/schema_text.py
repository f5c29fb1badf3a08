"""A JSON Schema said in the words of the notation.

A schema flows in; out comes a short text for an error or a listing (`type_text`), or
a node of the YAML notation (`node_from_schema`). Nothing is checked here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from neuraxis.specs import Json

SIMPLE = {
    "string": "string",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
    "array": "List",
    "object": "Dict",
}
"""JSON Schema's type names in the notation's short spelling."""

FORMATS = {
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "duration": "timedelta",
    "uuid": "uuid",
    "byte": "bytes",
    "path": "path",
    "decimal": "decimal",
}
"""Formats of strings that the notation has a type name for."""

LIMITS = (
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
)
"""Keywords that a node of the notation may carry as they are (ours)."""

_LONG = {"int": "integer", "float": "number", "bool": "boolean", "List": "list"}
_SHOWN = 12


def type_text(schema: Json) -> str:
    """A short text: `integer`, `List[int]`, `one of "a", "b"`."""
    if isinstance(schema, Mapping):
        node = cast("Mapping[str, Json]", schema)
        if "enum" in node or "const" in node:
            members = [m for m in _members(node) if m is not None] or [None]
            shown = [_literal(member) for member in members[:_SHOWN]]
            more = len(members) - len(shown)
            tail = f" and {more} more" if more > 0 else ""
            null = " or null" if None in _members(node) and members != [None] else ""
            return (
                ("one of " if len(members) > 1 else "") + ", ".join(shown) + tail + null
            )
    text = _type(schema, 0)
    return _LONG.get(text, text)


def _members(node: Mapping[str, Json]) -> list[Json]:
    return list(node["enum"]) if "enum" in node else [node["const"]]


def _literal(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:39] + "…"


def _type(schema: Json, depth: int, named: bool = False) -> str:
    """`named`: objects as plain `Dict`, since a notation text has no braces."""
    if schema is False:
        return "nothing"
    if not isinstance(schema, Mapping) or not schema:
        return "Any"
    node = cast("Mapping[str, Json]", schema)
    if "$ref" in node:
        return str(node["$ref"]).rsplit("/", 1)[-1]
    if "x-type" in node:
        return str(node["x-type"])
    if "enum" in node or "const" in node:
        return f"Literal[{', '.join(_literal(m) for m in _members(node)[:_SHOWN])}]"
    arms = node.get("anyOf") or node.get("oneOf")
    if isinstance(arms, list):
        texts = [_type(arm, depth + 1, named) for arm in cast("list[Json]", arms)]
        return _union(texts)
    kinds = node.get("type")
    if isinstance(kinds, list):
        texts = [
            _one(str(kind), node, depth, named) for kind in cast("list[Json]", kinds)
        ]
        return _union(texts)
    if isinstance(kinds, str):
        return _one(kinds, node, depth, named)
    if "properties" in node:
        return _one("object", node, depth, named)
    if "items" in node or "prefixItems" in node:
        return _one("array", node, depth, named)
    return "Any"


def _union(texts: list[str]) -> str:
    unique = list(dict.fromkeys(texts))
    others = [text for text in unique if text != "null"]
    if len(others) == 1 and len(unique) == 2:
        return f"Optional[{others[0]}]"
    return unique[0] if len(unique) == 1 else f"Union[{', '.join(unique)}]"


def _one(kind: str, node: Mapping[str, Json], depth: int, named: bool) -> str:
    if kind == "string":
        return FORMATS.get(str(node.get("format", "")), "string")
    if kind == "array":
        return _list(node, depth, named)
    if kind == "object":
        return _object(node, depth, named)
    return SIMPLE.get(kind, kind)


def _list(node: Mapping[str, Json], depth: int, named: bool) -> str:
    if depth > 4:
        return "List"
    prefix: Json = node.get("prefixItems")
    if isinstance(prefix, list) and prefix and node.get("items") is False:
        texts = [_type(item, depth + 1, named) for item in cast("list[Json]", prefix)]
        return f"Tuple[{', '.join(texts)}]"
    item: Json = node.get("items")
    outer = "Set" if node.get("uniqueItems") is True else "List"
    if isinstance(item, Mapping) and item:
        return f"{outer}[{_type(cast('Json', item), depth + 1, named)}]"
    return outer


def _object(node: Mapping[str, Json], depth: int, named: bool) -> str:
    properties: Json = node.get("properties")
    if isinstance(properties, Mapping) and not named:
        if depth > 2:
            return "{…}"
        fields = cast("Mapping[str, Json]", properties)
        required: Any = node.get("required") or ()
        shown = [
            f"{name}{'' if name in required else '?'}: {_type(field, depth + 1)}"
            for name, field in list(fields.items())[:_SHOWN]
        ]
        return "{" + ", ".join(shown + ["…"] * (len(fields) > _SHOWN)) + "}"
    value: Json = node.get("additionalProperties")
    if isinstance(value, Mapping) and value and not properties:
        return f"Dict[str, {_type(cast('Json', value), depth + 1, named)}]"
    return "Dict"


# --- JSON Schema -> notation ---------------------------------------------------

_KEPT = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum"}
    | {"const", "anyOf", "oneOf", "prefixItems", "$ref", "$defs", "x-type", "not"}
    | {"description", "default", "examples", "format", "x-asset-ref", "$schema"}
    | {"title", "x-optional", *LIMITS}
)


def node_from_schema(
    schema: Json, *, loss: list[str] | None = None, flag: str = "required"
) -> dict[str, Json]:
    """A JSON Schema as a v2 node; what the notation cannot say is named in `loss`.

    `flag` is `required` for parameters and `optional` for responses (rule B39).
    """
    lost = [] if loss is None else loss
    root: Mapping[str, Json] = {}
    if isinstance(schema, Mapping):
        root = cast("Mapping[str, Json]", schema)
    definitions: Mapping[str, Json] = root.get("$defs") or {}
    writer = _Writer(definitions=definitions, flag=flag, loss=lost, written=set())
    return writer.node(schema, "")


class _Writer:
    """Writes one schema; a definition is written in full where it is first used."""

    __slots__ = ("definitions", "flag", "loss", "written")

    def __init__(
        self,
        *,
        definitions: Mapping[str, Json],
        flag: str,
        loss: list[str],
        written: set[str],
    ) -> None:
        self.definitions = definitions
        self.flag = flag
        self.loss = loss
        self.written = written

    def node(self, schema: Json, where: str) -> dict[str, Json]:
        if not isinstance(schema, Mapping):
            if schema is False:
                self.loss.append(f"{where or 'root'}: the schema false")
            return {"type": "Any"}
        given = cast("Mapping[str, Json]", schema)
        self.loss += [f"{where or 'root'}: {key}" for key in given if key not in _KEPT]
        node: dict[str, Json] = {"type": None}
        inner, nullable = _without_null(given)
        node["type"] = self.type(inner, where, node)
        if nullable:
            node["nullable"] = True
        for key in ("description", "default"):
            if key in given:
                node[key] = given[key]
        examples: Json = given.get("examples")
        if isinstance(examples, list) and examples:
            node["example"] = examples[0]
        if given.get("x-asset-ref") is True:
            node["asset_ref_acceptable"] = True
        if given.get("x-optional") is True:
            node["required"] = False
        return node

    def type(
        self, given: Mapping[str, Json], where: str, node: dict[str, Json]
    ) -> Json:
        """The value of `type`; other keys of the same node are put in `node`."""
        if "$ref" in given:
            return self.reference(str(given["$ref"]), where)
        if isinstance(given.get("properties"), Mapping):
            return self.fields(given, where)
        for key in ("format", *LIMITS):
            if key in given and not (key == "format" and given[key] in FORMATS):
                node[key] = given[key]
        if "enum" in given or "const" in given:
            node["enum"] = [m for m in _members(given) if m is not None]
            return _type({"type": given.get("type", _enum_type(_members(given)))}, 0)
        items: Json = given.get("items")
        if given.get("type") == "array" and isinstance(items, Mapping) and items:
            return self.items(cast("Mapping[str, Json]", items), where, node, given)
        if given.get("type") == "object" and given.get("additionalProperties") is False:
            return {}
        return self.text(given, where)

    def text(self, given: Mapping[str, Json], where: str) -> str:
        """A type that fits one line; what does not fit is lost."""
        arms: Json = given.get("anyOf") or given.get("oneOf") or ()
        parts = [*cast("list[Json]", arms), *(given.get("prefixItems") or ())]
        for key in ("items", "additionalProperties"):
            if isinstance(given.get(key), Mapping):
                parts.append(given[key])
        for part in parts:
            if isinstance(part, Mapping):
                inside = cast("Mapping[str, Json]", part)
                if "properties" in inside:
                    self.loss.append(f"{where or 'root'}: fields of an object inside")
                if "$ref" in inside:
                    self.reference(str(inside["$ref"]), where)
                self.loss += [
                    f"{where or 'root'}: {key} inside"
                    for key in (*LIMITS, "format")
                    if key in inside
                    and key != "uniqueItems"
                    and inside[key] not in FORMATS
                ]
        return _type(given, 0, named=True)

    def items(
        self,
        items: Mapping[str, Json],
        where: str,
        node: dict[str, Json],
        given: Mapping[str, Json],
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
            return _type({**given, "items": _with_null(plain, nullable)}, 0, named=True)
        return self.text(given, where)

    def fields(self, given: Mapping[str, Json], where: str) -> dict[str, Json]:
        required: Any = given.get("required") or ()
        if given.get("additionalProperties") is not False:
            self.loss.append(f"{where or 'root'}: additionalProperties")
        written: dict[str, Json] = {}
        for name, field in given["properties"].items():
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
        given = cast("Mapping[str, Json]", body)
        if isinstance(given.get("properties"), Mapping):
            return {"_type_ref": name, **self.fields(given, name)}
        items: Json = given.get("items")
        if isinstance(items, Mapping) and "properties" in items:
            fields = self.fields(cast("Mapping[str, Json]", items), name)
            listed = [{"name": key, **field} for key, field in fields.items()]
            return [{"_type_ref": name}, *listed]
        self.loss.append(f"{where or 'root'}: the definition {name}")
        return self.text(given, where)


def _enum_type(members: list[Json]) -> list[str]:
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    return list(dict.fromkeys(names[type(m)] for m in members if type(m) in names))


def _without_null(given: Mapping[str, Json]) -> tuple[Mapping[str, Json], bool]:
    """The schema without its null arm, and whether there was one."""
    kinds: Json = given.get("type")
    if (
        isinstance(kinds, list)
        and "null" in kinds
        and len(cast("list[str]", kinds)) > 1
    ):
        rest = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        return {**given, "type": rest[0] if len(rest) == 1 else rest}, True
    arms: Json = given.get("anyOf")
    if isinstance(arms, list) and {"type": "null"} in arms:
        others = [arm for arm in cast("list[Json]", arms) if arm != {"type": "null"}]
        if len(others) == 1 and isinstance(others[0], Mapping):
            outer = {key: value for key, value in given.items() if key != "anyOf"}
            return {**cast("Mapping[str, Json]", others[0]), **outer}, True
    return given, False


def _with_null(plain: Mapping[str, Json], nullable: bool) -> Json:
    return {"anyOf": [plain, {"type": "null"}]} if nullable else plain
