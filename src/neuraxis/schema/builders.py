"""Build the JSON Schemas of the notation's type names.

Each function returns a schema made of the schemas of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from enum import Enum
from typing import Any, cast

from msgspec import Struct

from neuraxis.schema.navigate import kinds
from neuraxis.specs import Json

Parts = list[dict[str, Json]]


def is_key(schema: dict[str, Json]) -> bool:
    """Return whether the type is allowed for keys: keys are strings (B35)."""
    return not schema or schema.get("type") == "string"


def _list_of(items: Parts) -> dict[str, Json]:
    return {"type": "array", **({"items": items[0]} if items and items[0] else {})}


def _dict_of(items: Parts) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "object"}
    if items and "enum" in items[0]:
        schema["propertyNames"] = {"enum": items[0]["enum"]}
    if items and items[1]:
        schema["additionalProperties"] = items[1]
    return schema


def _tuple_of(items: Parts) -> dict[str, Json]:
    if not items:
        return _list_of(items)
    count = len(items)
    bounds = {"minItems": count, "maxItems": count}
    return {"type": "array", "prefixItems": items, "items": False, **bounds}


def nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """Return the same schema, with null allowed."""
    return union_of([schema, {"type": "null"}])


class Maker(Struct, frozen=True):
    """Generic type: its number of parts, in words, and its builder."""

    count: Container[int]
    wanted: str
    make: Callable[[Parts], dict[str, Json]]


MAKERS = {
    "list": Maker((0, 1), "one type", _list_of),
    "set": Maker(
        (0, 1), "one type", lambda items: {**_list_of(items), "uniqueItems": True}
    ),
    "dict": Maker((0, 2), "a key and a value type", _dict_of),
    "tuple": Maker(range(100), "types", _tuple_of),
    "optional": Maker((1,), "one type in brackets", lambda parts: nullable(parts[0])),
    "union": Maker(range(1, 100), "types in brackets", lambda parts: union_of(parts)),
}
"""Generics of the notation by their meaning."""


def union_of(arms: list[dict[str, Json]]) -> dict[str, Json]:
    """Return one schema for any of the arms, merged where possible."""
    flat: list[dict[str, Json]] = []
    for arm in arms:
        inner = arm.get("anyOf") if set(arm) == {"anyOf"} else None
        flat += cast("list[dict[str, Json]]", inner) if inner else [arm]
    unique = [arm for index, arm in enumerate(flat) if arm not in flat[:index]]
    if {} in unique:
        return {}
    if len(unique) == 1:
        return unique[0]
    null = {"type": "null"}
    others = [arm for arm in unique if arm != null]
    if len(others) == 1 and null in unique:
        only = others[0]
        if "enum" in only:
            allowed = kinds(only)
            typed = {"type": list(dict.fromkeys([*allowed, "null"]))} if allowed else {}
            members: list[Json] = only["enum"]
            enum = members if None in members else [*members, None]
            return {**only, **typed, "enum": enum}
        if isinstance(only.get("type"), str) and only["type"] != "null":
            return {**only, "type": [only["type"], "null"]}
    if all(set(arm) == {"type"} for arm in unique):
        return {"type": list(dict.fromkeys(k for arm in unique for k in kinds(arm)))}
    return {"anyOf": unique}


REFERENCE: dict[str, Json] = {
    "type": "object",
    "description": "a reference to an asset",
    "properties": {
        "asset_id": {"type": "string"},
        "field_path": {"type": "array", "items": {"type": ["string", "integer"]}},
    },
    "required": ["asset_id"],
    "additionalProperties": False,
}
"""JSON Schema of an asset reference."""

_BESIDE = ("description", "examples", "default", "title")


def or_reference(schema: dict[str, Json], mark: str) -> dict[str, Json]:
    """Return the schema, marked, with a reference allowed in its place."""
    marks: dict[str, Json] = {mark: True}
    value: dict[str, Json] = {}
    for key, item in schema.items():
        is_mark = key.startswith("x-") and key != "x-type"
        (marks if key in _BESIDE or is_mark else value)[key] = item
    marks.pop("x-asset-ref", None)
    return {"anyOf": [value, dict(REFERENCE)], **marks} if value else marks


def without_reference(schema: Mapping[str, Json], mark: str) -> Mapping[str, Json]:
    """Undo `or_reference`, except for the mark."""
    plain = {key: schema[key] for key in schema if key not in (mark, "anyOf")}
    arms: Json = schema.get("anyOf")
    return {**cast("list[dict[str, Json]]", arms)[0], **plain} if arms else plain


def json_names(cls: type[Any]) -> dict[str, str]:
    """Return the names in JSON of a Struct's fields; empty otherwise."""
    if not issubclass(cls, Struct):
        return {}
    return dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))


def tag_of(cls: type[Any]) -> dict[str, Json]:
    """Return a Struct's tag by its key in JSON; empty without."""
    if not issubclass(cls, Struct) or cls.__struct_config__.tag is None:
        return {}
    config = cls.__struct_config__
    return {str(config.tag_field): config.tag}


def uses_names(members: type[Enum]) -> bool:
    """Return whether an enum is written by names, for values not JSON."""
    return not all(isinstance(member.value, str | int | float) for member in members)


def literal_of(members: list[Json]) -> dict[str, Json]:
    """Return the enum of `Literal["a", 3]`, with its type if shared."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    values = list(
        dict.fromkeys("null" if m is None else names[type(m)] for m in members)
    )
    return {"type": values[0] if len(values) == 1 else values, "enum": members}
