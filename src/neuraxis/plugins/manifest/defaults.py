"""Pass a manifest's defaults to a command for omitted arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, cast

from neuraxis.schema.navigate import Node, child, resolved
from neuraxis.specs import Json


def fill_defaults(
    run: Callable[..., Any], schema: Mapping[str, Json]
) -> Callable[..., Any]:
    """Return the function with its schema's defaults filled in."""
    if not _has_default(schema):
        return run
    properties: Mapping[str, dict[str, Json]] = schema.get("properties", {})
    whole: Json = schema.get("default")
    # a long list without defaults inside is not examined
    deep = {
        name for name, field in properties.items() if _has_default(field, inside=True)
    }

    def call(*values: Any, **arguments: Any) -> Any:
        if schema.get("type") == "object":
            if type(whole) is dict and properties.keys().isdisjoint(arguments):
                arguments |= deepcopy(cast("dict[str, Any]", whole))
            return run(**_with_fields(schema, arguments, schema, deep))
        if not values and "default" in schema:
            values = (deepcopy(whole),)
        return run(*[_filled(schema, item, schema) for item in values], **arguments)

    return call


def _has_default(schema: Mapping[str, Json], inside: bool = False) -> bool:
    """Return whether a schema, or a part of it, has defaults."""
    parts = {key: schema[key] for key in schema if key != "default" or not inside}
    written = repr(parts)
    return "'default'" in written or (inside and "'$ref'" in written)


def _filled(node: Node, value: Any, root: Node) -> Any:
    if type(value) is dict:
        return _with_fields(node, cast("dict[str, Any]", value), root)
    if type(value) is list:
        items = cast("list[Any]", value)
        inner = [child(node, index, root) for index in range(len(items))]
        return [
            _filled(subschema, item, root) if subschema else item
            for subschema, item in zip(inner, items, strict=True)
        ]
    return value


def _with_fields(
    node: Node, value: dict[str, Any], root: Node, deep: set[str] | None = None
) -> dict[str, Any]:
    """Return a completed copy; `deep`: the only fields to look into."""
    filled: dict[str, Any] = {}
    for key, item in value.items():
        subschema = child(node, key, root) if deep is None or key in deep else None
        filled[key] = _filled(subschema, item, root) if subschema else item
    for key, field in resolved(node, root).get("properties", {}).items():
        if key not in value and "default" in field:
            filled[key] = deepcopy(field["default"])
    return filled
