"""Describe a JSON Schema in the notation's words, on one line.

There are three forms: short for errors and listings, full for the model, and exact for
a manifest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

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
"""Notation's short spellings of JSON Schema's type names."""

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
"""String formats for which the notation has a type name."""

SECONDS = "seconds"
"""Format of a number of seconds; the type name alone would not show it."""

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
"""JSON Schema keywords that a node of the notation may have (ours)."""

LIMIT_TEXT = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
}
"""Keywords of limits, and the text for each."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LONG = {
    "int": "integer", "float": "number", "bool": "boolean", "List": "list",
    SECONDS: "number of seconds",
}  # fmt: skip


class Form(Struct, frozen=True, kw_only=True):
    """Level of detail of a description. `exact`: readable as a node."""

    members: int
    """Maximum enum values and object fields; the rest are counted."""
    characters: int
    lists: int
    """Maximum levels of nested types."""
    objects: int
    exact: bool = False


SHORT = Form(members=12, characters=40, lists=4, objects=2)
FULL = Form(members=100, characters=400, lists=12, objects=6)
NODE = Form(members=1 << 30, characters=1 << 30, lists=32, objects=0, exact=True)


def type_text(schema: Json, form: Form = SHORT) -> str:
    """Return a description: `integer`, `List[int]`, `one of "a", "b"`."""
    if isinstance(schema, dict):
        node = cast("Mapping[str, Json]", schema)
        if "enum" in node or "const" in node:
            members = [m for m in members_of(node) if m is not None] or [None]
            null = " or null" if None in members_of(node) and members != [None] else ""
            one = "one of " if len(members) > 1 else ""
            return f"{one}{', '.join(_literals(members, form))}{null}"
    text = line(schema, form)
    if text.startswith("{"):
        return f"object {text}"
    return _LONG.get(text, text)


def key_text(names: Mapping[str, Json]) -> str:
    """Describe a mapping's keys."""
    title: Json = names.get("title")
    if isinstance(title, str):
        return _LONG.get(title, title)
    return type_text(dict(names))


def limit_text(keyword: str, limit: Json) -> str:
    """Return a limit in words: `at least 2 items`."""
    text = LIMIT_TEXT[keyword].format(limit)
    return text.removesuffix("s") if limit == 1 else text


def members_of(node: Mapping[str, Json]) -> list[Json]:
    """Return the possible values of an `enum` or `const`."""
    return list(node["enum"]) if "enum" in node else [node["const"]]


def _literals(members: list[Json], form: Form) -> list[str]:
    shown = [_literal(member, form) for member in members[: form.members]]
    more = len(members) - len(shown)
    if more > 0:
        shown[-1] += f" and {more} more"
    return shown


def is_literal(value: Json) -> bool:
    """Return whether `Literal[…]` of the notation can contain the value."""
    if isinstance(value, float):
        return _NUMBER.fullmatch(repr(value)) is not None
    return value is None or isinstance(value, str | int)


def _literal(value: Json, form: Form) -> str:
    if form.exact and isinstance(value, str):
        return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "…"
    return text if len(text) <= form.characters else text[: form.characters - 1] + "…"


def line(schema: Json, form: Form, depth: int = 0) -> str:
    """Return the type on one line; with `NODE` objects are plain `Dict`."""
    if schema is False:
        return "nothing"
    if not isinstance(schema, dict) or not schema:
        return "Any"
    if depth > form.lists:
        return _too_deep(cast("Mapping[str, Json]", schema), form)
    node = cast("Mapping[str, Json]", schema)
    if "$ref" in node:
        return str(node["$ref"]).rsplit("/", 1)[-1]
    if "x-type" in node:
        return str(node["x-type"])
    if "enum" in node or "const" in node:
        members = members_of(node)
        if form.exact and not all(map(is_literal, members)):
            return "Any"
        return f"Literal[{', '.join(_literals(members, form))}]"
    arms = node.get("anyOf") or node.get("oneOf")
    if isinstance(arms, list):
        return _union([line(arm, form, depth + 1) for arm in cast("list[Json]", arms)])
    kinds = node.get("type")
    if isinstance(kinds, list):
        texts = [
            _one(str(kind), node, form, depth) for kind in cast("list[Json]", kinds)
        ]
        return _union(texts)
    if isinstance(kinds, str):
        return _one(kinds, node, form, depth)
    if "properties" in node:
        return _one("object", node, form, depth)
    if "items" in node or "prefixItems" in node:
        return _one("array", node, form, depth)
    return "Any"


def _too_deep(node: Mapping[str, Json], form: Form) -> str:
    """Return the type without its element types."""
    kind = node.get("type")
    if form.exact or not isinstance(kind, str):
        return "Any"
    return (
        "{…}" if kind == "object" and "properties" in node else SIMPLE.get(kind, kind)
    )


def _union(texts: list[str]) -> str:
    unique = list(dict.fromkeys(texts))
    non_null = [text for text in unique if text != "null"]
    if len(non_null) == 1 and len(unique) == 2:
        return f"Optional[{non_null[0]}]"
    return unique[0] if len(unique) == 1 else f"Union[{', '.join(unique)}]"


def _one(kind: str, node: Mapping[str, Json], form: Form, depth: int) -> str:
    if kind == "string":
        return FORMATS.get(str(node.get("format", "")), "string")
    if kind == "array":
        return _list(node, form, depth)
    if kind == "object":
        return _object(node, form, depth)
    if kind == "number" and node.get("format") == SECONDS and not form.exact:
        return SECONDS
    return SIMPLE.get(kind, kind)


def _list(node: Mapping[str, Json], form: Form, depth: int) -> str:
    prefix: Json = node.get("prefixItems")
    if isinstance(prefix, list) and prefix and node.get("items") is False:
        items = cast("list[Json]", prefix)
        return f"Tuple[{', '.join(line(item, form, depth + 1) for item in items)}]"
    item: Json = node.get("items")
    container = "Set" if node.get("uniqueItems") is True else "List"
    if isinstance(item, dict) and item:
        return f"{container}[{line(cast('Json', item), form, depth + 1)}]"
    return container


def _object(node: Mapping[str, Json], form: Form, depth: int) -> str:
    properties: Json = node.get("properties")
    if isinstance(properties, dict) and not form.exact:
        if depth > form.objects:
            return "{…}"
        fields = cast("Mapping[str, Json]", properties)
        required: Any = node.get("required") or ()
        shown = [
            f"{name}{'' if name in required else '?'}: {line(field, form, depth + 1)}"
            for name, field in list(fields.items())[: form.members]
        ]
        return "{" + ", ".join(shown + ["…"] * (len(fields) > form.members)) + "}"
    value: Json = node.get("additionalProperties")
    if isinstance(value, dict) and value and not properties:
        keys, names = "str", node.get("propertyNames")
        if isinstance(names, dict) and names and not form.exact:
            key_schema = cast("dict[str, Json]", names)
            keys = str(key_schema.get("title") or line(key_schema, form, depth + 1))
        return f"Dict[{keys}, {line(cast('Json', value), form, depth + 1)}]"
    return "Dict"
