"""Outline what an operation answers, for the model."""

from __future__ import annotations

from neuraxis.bridges.openapi_client.load import Document
from neuraxis.bridges.openapi_client.tolerant_access import (
    CannotImport,
    as_text,
    shortened,
)
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Json


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
        if depth <= 0:
            return {"type": ["object", "null"]}
        return {
            "type": "object" if depth == 3 else ["object", "null"],
            "properties": {
                name: shape(document, part, base, depth - 1)
                for name, part in list(properties.items())[:40]
            },
        }
    if "items" in node:
        kind: Json = "array" if depth == 3 else ["array", "null"]
        if depth < 0:
            return {"type": kind}
        items = shape(document, node["items"], base, depth - 1)
        return {"type": kind, "items": items}
    text = as_text(node.get("description"))
    return {"description": shortened(text, 80)} if text and depth >= 2 else {}
