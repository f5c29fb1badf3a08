"""A parameter schema as servers take it: our schema in, plain JSON Schema out.

Servers may force a model's output into the schema, so a place that takes an asset
reference must allow one, and a class that JSON cannot hold allows nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from neuraxis.specs import Json

REFERENCE: Mapping[str, Json] = {
    "type": "object",
    "description": "a reference to an asset",
    "properties": {
        "asset_id": {"type": "string"},
        "field_path": {"type": "array", "items": {"type": ["string", "integer"]}},
    },
    "required": ["asset_id"],
    "additionalProperties": False,
}

_SUBSCHEMAS = ("items", "additionalProperties", "contains", "propertyNames")
_MAPS = ("properties", "$defs", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def for_server(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The schema without our own words, with references where they are allowed."""
    plain = _plain(schema)
    # The whole `param` of a tool must be an object for a server (rule B45 is given up).
    return plain if plain.get("type") == "object" else _with_reference(plain, schema)


def _plain(schema: Mapping[str, Json]) -> dict[str, Json]:
    if "x-type" in schema:
        kept = {"description": schema["description"]} if "description" in schema else {}
        return {**REFERENCE, **kept}
    made: dict[str, Json] = {}
    for key, value in schema.items():
        if key.startswith("x-"):
            continue
        if key in _MAPS and isinstance(value, Mapping):
            nodes = cast("Mapping[str, Json]", value)
            made[key] = {name: _node(node) for name, node in nodes.items()}
        elif key in _LISTS and isinstance(value, list):
            made[key] = [_node(node) for node in cast("list[Json]", value)]
        elif key in _SUBSCHEMAS:
            made[key] = _node(value)
        else:
            made[key] = value
    return made


def _node(node: Json) -> Json:
    if not isinstance(node, Mapping):
        return node
    schema = cast("Mapping[str, Json]", node)
    return _with_reference(_plain(schema), schema)


def _with_reference(
    plain: dict[str, Json], schema: Mapping[str, Json]
) -> dict[str, Json]:
    if not schema.get("x-asset-ref") or "x-type" in schema:
        return plain
    outer = {key: plain.pop(key) for key in ("description", "$defs") if key in plain}
    return {**outer, "anyOf": [plain, dict(REFERENCE)]}
