"""A JSON Schema said in the words of the notation.

A schema flows in; a short text, for an error or a listing, flows out.
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
            members = [m for m in members_of(node) if m is not None] or [None]
            shown = [_literal(member) for member in members[:_SHOWN]]
            more = len(members) - len(shown)
            tail = f" and {more} more" if more > 0 else ""
            null = " or null" if None in members_of(node) and members != [None] else ""
            return (
                ("one of " if len(members) > 1 else "") + ", ".join(shown) + tail + null
            )
    text = line(schema)
    if text.startswith("{"):
        return f"object {text}"
    return _LONG.get(text, text)


def members_of(node: Mapping[str, Json]) -> list[Json]:
    """The possible values of an `enum` or `const`."""
    return list(node["enum"]) if "enum" in node else [node["const"]]


def _literal(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:39] + "…"


def line(schema: Json, depth: int = 0, named: bool = False) -> str:
    """The type on one line. `named`: objects as plain `Dict`, as a node says them."""
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
        return f"Literal[{', '.join(_literal(m) for m in members_of(node)[:_SHOWN])}]"
    arms = node.get("anyOf") or node.get("oneOf")
    if isinstance(arms, list):
        texts = [line(arm, depth + 1, named) for arm in cast("list[Json]", arms)]
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
        texts = [line(item, depth + 1, named) for item in cast("list[Json]", prefix)]
        return f"Tuple[{', '.join(texts)}]"
    item: Json = node.get("items")
    outer = "Set" if node.get("uniqueItems") is True else "List"
    if isinstance(item, Mapping) and item:
        return f"{outer}[{line(cast('Json', item), depth + 1, named)}]"
    return outer


def _object(node: Mapping[str, Json], depth: int, named: bool) -> str:
    properties: Json = node.get("properties")
    if isinstance(properties, Mapping) and not named:
        if depth > 2:
            return "{…}"
        fields = cast("Mapping[str, Json]", properties)
        required: Any = node.get("required") or ()
        shown = [
            f"{name}{'' if name in required else '?'}: {line(field, depth + 1)}"
            for name, field in list(fields.items())[:_SHOWN]
        ]
        return "{" + ", ".join(shown + ["…"] * (len(fields) > _SHOWN)) + "}"
    value: Json = node.get("additionalProperties")
    if isinstance(value, Mapping) and value and not properties:
        return f"Dict[str, {line(cast('Json', value), depth + 1, named)}]"
    return "Dict"
