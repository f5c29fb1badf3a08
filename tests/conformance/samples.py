"""A parameter schema in; fitting calls, and calls wrong in one way, out."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

_WRONG: Mapping[str, Any] = {  # nothing that a lossless reading could mend
    "string": {"not": "a text"},
    "integer": "many",
    "number": "much",
    "boolean": "perhaps",
    "array": {"x": 1},
    "object": "a text",
    "null": "something",
}
_TEXTS = {"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "uuid": "0" * 32,
          "uri": "https://example.org/", "time": "03:04:05Z"}  # fmt: skip


def sample(
    node: Mapping[str, Any], root: Mapping[str, Any], *, full: bool = True
) -> Any:
    """A value that fits; `full`: with every optional field."""
    if "x-type" in node:
        return {"asset_id": "a0"}
    if "$ref" in node:
        return sample(root["$defs"][node["$ref"].rpartition("/")[2]], root, full=full)
    for key in ("enum", "examples"):  # an example may be a mere word
        if node.get(key):
            return copy.deepcopy(node[key][0])
    if "const" in node:
        return node["const"]
    for key in ("anyOf", "oneOf"):
        if key in node:
            return sample(node[key][0], root, full=full)
    kind = node.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        fields: dict[str, Any] = node.get("properties", {})
        names = fields if full else node.get("required", ())
        made = {name: sample(fields[name], root, full=full) for name in names}
        more = node.get("additionalProperties")
        if not fields and isinstance(more, dict):
            made["key"] = sample(more, root, full=full)
        return made
    if kind == "array":
        items = node.get("items")
        return [sample(items, root, full=full)] if isinstance(items, dict) else ["x"]
    plain = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
    return plain.get(kind or "", _TEXTS.get(node.get("format", ""), "text"))


def mistakes(
    node: Mapping[str, Any],
    root: Mapping[str, Any],
    value: Any,
    path: tuple[Any, ...] = (),
) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Kind of the mistake, where it is, and the whole of `value` with that mistake."""
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    if path and isinstance(node.get("type"), str) and "x-type" not in node:
        yield "wrong type", path, copy.deepcopy(_WRONG[node["type"]])
    if path and node.get("enum"):
        yield "bad enum", path, "none of these"
    if isinstance(value, dict) and "asset_id" not in value:
        fields: dict[str, Any] = node.get("properties", {})
        for name in node.get("required", ()):
            if name in value:
                rest = {key: item for key, item in value.items() if key != name}
                yield "missing", (*path, name), rest
        if node.get("additionalProperties") is False:
            yield "unknown key", (*path, "no_such_key"), {**value, "no_such_key": 1}
        for name, inner in fields.items():
            if name in value:
                for kind, where, bad in mistakes(
                    inner, root, value[name], (*path, name)
                ):
                    yield kind, where, {**value, name: bad}
    if isinstance(value, list) and value and isinstance(node.get("items"), dict):
        for kind, where, bad in mistakes(node["items"], root, value[0], (*path, 0)):
            yield kind, where, [bad, *value[1:]]
