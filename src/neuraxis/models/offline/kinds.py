"""Kinds of parameters: a kind of token, `text`, `list`, `choice`, `object`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from neuraxis.models.offline.tokens import split_name, tokenise
from neuraxis.specs import Json

Node = Mapping[str, Json]
_FORMATS = {
    "email": "email", "uri": "url", "url": "url", "date": "date", "time": "time",
    "date-time": "date",
}  # fmt: skip
_NAMES = {"url": "url", "link": "url", "email": "email", "path": "path"}


def resolved(node: Node, root: Node) -> Node:
    """Return a schema without `$ref` and without null."""
    for _ in range(8):
        ref, options = node.get("$ref"), node.get("anyOf") or node.get("oneOf") or ()
        real = [
            part for part in cast("list[Node]", options) if part.get("type") != "null"
        ]
        more: Node = {}
        if isinstance(ref, str) and ref.startswith("#/$defs/"):
            more = root.get("$defs", {}).get(ref[8:], {})
        elif len(real) == 1:
            more = real[0]
        if not more:
            break
        odd = ("$ref", "anyOf", "oneOf")
        node = {**more, **{key: item for key, item in node.items() if key not in odd}}
    return node


def kind_of(name: str, schema: Node, values: Sequence[Json]) -> str:
    """Return the kind of a parameter; for texts its examples' values count."""
    types = schema.get("type")
    if isinstance(types, list):
        types = next((t for t in cast("list[str]", types) if t != "null"), None)
    if schema.get("enum") or "const" in schema:
        return "choice"
    if schema.get("x-asset-ref") or "x-type" in schema or types in (None, "object"):
        return "object"
    if types in ("integer", "number"):
        return "number"
    if types == "array":
        inner = kind_of(name, schema.get("items") or {}, ())
        return "object" if inner in ("object", "list") else "list"
    if types != "string":
        return str(types)
    written = str(schema.get("format") or "")
    texts = [str(value) for value in values]
    if "x-names-file" in schema or written == "path":
        folder = texts and not any("." in text.rsplit("/", 1)[-1] for text in texts)
        return "folder" if folder else "path"
    kinds = {t[0].kind if len(t) == 1 else "text" for t in map(tokenise, texts)}
    if len(kinds) == 1 and kinds <= {"email", "url", "path", "glob"}:
        return kinds.pop()
    last = split_name(name)[-1:] or [""]
    return _FORMATS.get(written) or _NAMES.get(last[0].lower(), "text")


def shape_of(texts: Sequence[str]) -> str:
    """What all these have: `digits`, `capitals`, `letters` (no digits); or nothing."""
    if texts and all(any(mark.isdigit() for mark in text) for text in texts):
        return "digits"
    if texts and all(text.isupper() and len(text) > 1 for text in texts):
        return "capitals"
    return "letters" if texts and not any(c.isdigit() for t in texts for c in t) else ""
