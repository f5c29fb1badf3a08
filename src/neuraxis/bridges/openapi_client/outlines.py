"""Add the types a schema refers to, the farthest in outline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from neuraxis.bridges.openapi_client.tolerant_access import Node, as_text, shortened
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Json

_NAMED = ("properties", "patternProperties", "$defs", "dependentSchemas")
"""Keywords that map an author's names to schemas."""
_DATA = ("default", "const", "enum", "examples", "required", "dependentRequired")
_MOST_ARMS = 50
"""Maximum arms of a type that are searched for its fields."""
Types = Mapping[str, dict[str, Json]]


def whole(
    schema: Mapping[str, Json], types: Types, limit: int
) -> tuple[dict[str, Json], int]:
    """Return a schema with its `$defs`, and the number of shortened ones.

    Args:
        schema: the schema that refers to them.
        types: every type by its name.
        limit: maximum characters as JSON; above it the types farthest from the root are
            reduced to kind, description and required fields.
    """
    full = _gathered(schema, types, lambda name: types[name], None)[0]
    if not full:
        return dict(schema), 0
    complete = {**schema, "$defs": full}
    if _size(complete) <= limit:
        return complete, 0

    def brief(name: str) -> dict[str, Json]:
        return cast("dict[str, Json]", _without_prose(types[name]))

    short, cut = _gathered(schema, types, brief, limit - _size(schema))
    return {**schema, "$defs": short}, cut


def _gathered(
    schema: Mapping[str, Json],
    types: Types,
    take: Callable[[str], dict[str, Json]],
    room: int | None,
) -> tuple[dict[str, Json], int]:
    definitions: dict[str, Json] = {}
    pending = _references(schema)
    cut = 0
    while pending:
        nested: list[str] = []
        for name in pending:
            if name in definitions or name not in types:
                continue
            part = take(name)
            if room is not None:
                if _size(part) > room:
                    part, cut = _outline(part, types, room), cut + 1
                room -= _size(part)
            definitions[name] = part
            nested += _references(part)
        pending = nested
    return definitions, cut


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


def without_unevaluated(schema: dict[str, Json]) -> dict[str, Json]:
    """Return a schema that takes unknown keys beside those of joined types."""
    return cast("dict[str, Json]", _without_closing(schema, named=False))


def _without_closing(value: Json, *, named: bool) -> Json:
    """`named`: the keys are an author's names, not keywords."""
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return [_without_closing(item, named=False) for item in items]
    if not isinstance(value, Mapping):
        return value
    return {
        key: part
        if not named and key in _DATA
        else _without_closing(part, named=not named and key in _NAMED)
        for key, part in cast("Node", value).items()
        if named or key not in ("unevaluatedProperties", "unevaluatedItems")
    }


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


def _outline(schema: Node, types: Types, room: int) -> dict[str, Json]:
    """Return a type with only its required fields, if they fit."""
    text = shortened(as_text(schema.get("description")), 60)
    outline = {key: schema[key] for key in ("type", "enum") if key in schema}
    fields: dict[str, Json] = {}
    required: dict[str, None] = {}
    for part in _arms(schema, types):
        fields = {**as_map(part.get("properties")), **fields}
        required |= {str(name): None for name in as_list(part.get("required"))}
        if "type" in part:
            outline.setdefault("type", part["type"])
    kind = outline.get("type", "object")
    if "object" in (as_list(kind) or [kind]):
        # a type that is closed around this one takes the fields that are cut
        outline["additionalProperties"] = True
    if needed := [name for name in required if name in fields]:
        longer = {
            **outline,
            "properties": {name: _without_prose(fields[name]) for name in needed},
            "required": needed,
            "description": f"{text} (its other fields are not listed here)".strip(),
        }
        if _size(longer) <= room:
            return longer
    outline["description"] = f"{text} (its fields are not listed here)".strip()
    return outline


def _arms(schema: Node, types: Types) -> list[Node]:
    """Return a type and the arms of its `allOf`, references followed."""
    arms: list[Node] = []
    pending: list[Json] = [schema]
    while pending and len(arms) < _MOST_ARMS:
        arm = as_map(pending.pop(0))
        arms.append(arm)
        if isinstance(ref := arm.get("$ref"), str):
            pending.append(types.get(ref.removeprefix("#/$defs/")))
        pending += as_list(arm.get("allOf"))
    return arms
