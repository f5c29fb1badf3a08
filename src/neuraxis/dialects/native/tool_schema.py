"""Convert a parameter schema to plain JSON Schema for servers.

Servers may force a model's output into the schema, so a place that accepts an asset
reference must allow one, and a class that JSON cannot represent allows nothing else.
The reference is written inline, since not every server accepts `$ref`; so a union has
it once, however many of its arms accept one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from neuraxis.dialects.instruction_template import PLUGINS, instruction_text
from neuraxis.schema.builders import REFERENCE
from neuraxis.schema.describe import SECONDS
from neuraxis.specs import Json, PluginSpec

_SUBSCHEMAS = ("items", "additionalProperties", "contains", "propertyNames")
_MAPS = ("properties", "$defs", "patternProperties")
_BESIDE = {"anyOf", "description", "title", "default", "examples", "$defs"}
_LISTS = ("allOf", "prefixItems")


def for_server(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return the schema without our keywords, with references where allowed."""
    plain = _plain(schema)
    # a server requires an object as the whole `param` of a tool (B45 is given up)
    return plain if plain.get("type") == "object" else _with_reference(plain, schema)


def _plain(schema: Mapping[str, Json]) -> dict[str, Json]:
    if "x-type" in schema:
        description = (
            {"description": schema["description"]} if "description" in schema else {}
        )
        return {**REFERENCE, **description}
    converted: dict[str, Json] = {}
    for key, value in schema.items():
        if key.startswith("x-"):
            continue
        if key in _MAPS and isinstance(value, Mapping):
            nodes = cast("Mapping[str, Json]", value)
            converted[key] = {name: _node(node) for name, node in nodes.items()}
        elif key in ("anyOf", "oneOf") and isinstance(value, list):
            converted.update(
                _union(key, [_node(arm) for arm in cast("list[Json]", value)])
            )
        elif key in _LISTS and isinstance(value, list):
            converted[key] = [_node(node) for node in cast("list[Json]", value)]
        elif key in _SUBSCHEMAS:
            converted[key] = _node(value)
        else:
            converted[key] = value
    if converted.get("format") == SECONDS:  # servers show a model the description only
        del converted["format"]
        text = str(converted.get("description", "")).rstrip(". ")
        converted["description"] = f"{text} (in seconds)" if text else "Seconds."
    arms = converted.get("anyOf")
    if isinstance(arms, list) and len(cast("list[Json]", arms)) == 1:
        (arm,) = cast("list[Json]", arms)
        if isinstance(arm, dict) and set(converted) <= _BESIDE:
            del converted["anyOf"]
            converted = {**cast("dict[str, Json]", arm), **converted}
    return converted


def _union(key: str, arms: list[Json]) -> dict[str, Json]:
    """Return the union with unique arms; nested unions are flattened."""
    flat: list[Json] = []
    for arm in arms:
        inner = _arms_only(arm)
        flat += inner or [arm]
    unique: list[Json] = []
    for arm in flat:
        if arm not in unique:
            unique.append(arm)
    # with parts of unions in it, more than one arm may fit
    return {key if flat == arms == unique else "anyOf": unique}


def _arms_only(arm: Json) -> list[Json]:
    """Return the arms of a schema that is only a union."""
    if not isinstance(arm, dict) or set(cast("dict[str, Json]", arm)) != {"anyOf"}:
        return []
    return cast("list[Json]", arm["anyOf"])


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
    if plain.keys() <= _BESIDE - {"anyOf"}:
        return plain  # any value, so a reference too
    outer = {key: plain.pop(key) for key in ("description", "$defs") if key in plain}
    if plain == {key: REFERENCE[key] for key in REFERENCE if key != "description"}:
        return {**REFERENCE, **outer}
    return {**outer, **_union("anyOf", [plain, dict(REFERENCE)])}


def prompt_text(plugins: Sequence[PluginSpec], *, goes_on: bool = False) -> str:
    """Return the instruction text with the plugin authors' notes."""
    text = instruction_text("native.md", goes_on=goes_on)
    before, _, after = text.partition(PLUGINS)
    notes = [
        f"About {plugin.name}:\n{plugin.prompt.strip()}"
        for plugin in plugins
        if plugin.prompt
    ]
    about_plugins = "\n\n".join(notes)
    return f"{before}{about_plugins}{after}".strip() + "\n"
