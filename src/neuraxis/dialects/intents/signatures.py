"""Format a tool's parameters and response as lines of the prompt.

Everything that is enforced is written: the fields of objects inside lists, the values
of an enum, limits, and the named types. A field without more than its name and type
stays on the line of the parameter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from neuraxis.dialects.intents.calls import escape_key
from neuraxis.dialects.results import json_text
from neuraxis.schema.annotations import RAW_KEY
from neuraxis.schema.builders import without_reference
from neuraxis.schema.describe import FULL, LIMIT_TEXT, limit_text, type_text
from neuraxis.specs import CommandSpec, Json

_SCALARS = ("string", "integer", "number", "boolean")
_DEEPEST = 6
"""Maximum levels of nested fields with lines of their own."""

_LIMITING = frozenset({*LIMIT_TEXT, "multipleOf", "pattern", "items"})
_SAID = ("description", "default", "examples", "x-asset-ref")
Node = Mapping[str, Json]


def parameter_lines(command: CommandSpec) -> list[str]:
    """Return the parameters, each with its type and its author's description."""
    schema = command.parameters
    if schema.get("type") != "object" and "properties" not in schema:
        # a command whose parameter is one plain value (rule K3)
        return ["Parameters:", *_field("$value", schema, needed=True)]
    listed = [
        line
        for name, node in properties(schema)
        for line in _field(
            escape_key(name) if name == "tool" else name,
            node,
            needed=name in command.required,
        )
    ]
    extra: Json = schema.get("additionalProperties")
    if extra is True or (isinstance(extra, dict) and extra):
        kind = "" if extra is True else f" ({type_text(extra, FULL)})"
        listed.append(f"- any other name{kind}")
    return ["Parameters:", *listed] if listed else ["Parameters: none"]


def return_lines(command: CommandSpec) -> list[str]:
    """Return the lines of the declared response, if there is one."""
    schema = command.response
    if schema is None:
        return []
    fields = _fields(schema)
    if fields:
        return ["Returns:", *fields]
    text = one_line(schema.get("description", ""))
    return [f"Returns: {type_text(dict(schema), FULL)}{f', {text}' if text else ''}"]


def form_text(schema: Node) -> str:
    """Return the fields of an object, and the types that they name."""
    lines = [*_fields(schema), *type_lines(set(), schema)]
    return "\n".join(lines) or "- any fields"


def type_lines(described: set[str], *schemas: Node | None) -> list[str]:
    """Return the types that schemas name.

    Those in `described` were written for another command; new ones are added to it.
    """
    types: dict[str, Json] = {}
    for schema in filter(None, schemas):
        for name, node in cast("Node", schema.get("$defs") or {}).items():
            types.setdefault(name, node)
    lines: list[str] = []
    for name, node in types.items():
        if isinstance(node, dict):
            text = "\n".join(_field(name, cast("Node", node), needed=True, whole=True))
            if text not in described:
                described.add(text)
                lines.append(text)
    return ["Types:", *lines] if lines else []


def properties(schema: Node | None) -> list[tuple[str, Node]]:
    """Return the fields of an object's schema, also those of its `allOf`."""
    if not schema or ("properties" not in schema and "allOf" not in schema):
        return []
    found: dict[str, Json] = {}
    for part in _joined(schema):
        fields = part.get("properties")
        if isinstance(fields, dict):
            for name, node in cast("dict[str, Json]", fields).items():
                # a type's own words come before those of its parents
                found.setdefault(name, node)
    return [
        (name, cast("Node", node) if isinstance(node, dict) else {})
        for name, node in found.items()
    ]


def _joined(schema: Node) -> Sequence[Node]:
    """Return the schema and the parts of its `allOf`, recursively."""
    arms = schema.get("allOf")
    if not isinstance(arms, list):
        return (schema,)
    parts = [schema]
    for arm in cast("list[Json]", arms):
        if isinstance(arm, dict):
            parts += _joined(cast("Node", arm))
    return parts


def _parents(node: Node) -> str:
    """Return the names of the types that an `allOf` refers to."""
    if "allOf" not in node:
        return ""
    parts = _joined(node)[1:]
    names = [str(part["$ref"]).rsplit("/", 1)[-1] for part in parts if "$ref" in part]
    return " and ".join(names)


def one_line(text: Json) -> str:
    """Return a text without its line breaks."""
    return " ".join(str(text).split())


def _fields(schema: Node, level: int = 0) -> list[str]:
    must = {
        name
        for part in _joined(schema)
        for name in cast("Sequence[str]", part.get("required", ()))
    }
    return [
        line
        for name, node in properties(schema)
        for line in _field(name, node, needed=name in must, level=level)
    ]


def _field(
    name: str, node: Node, *, needed: bool, level: int = 0, whole: bool = False
) -> list[str]:
    """Return a field's line, and its nested fields' where needed (or `whole`)."""
    is_raw = node.get(RAW_KEY) is True
    if is_raw:
        node = without_reference(node, RAW_KEY)
    word, inner = _nested_type(node)
    is_opened = level < _DEEPEST and (whole or _has_details(inner))
    inside = _fields(inner, level + 1) if is_opened else []
    words = [word if inside else type_text(node, FULL)]
    if parents := _parents(node):
        words = [f"{word} with the fields of {parents}" if inside else parents]
    words += _limits(node)
    if not needed:
        words.append("optional")
    if is_raw or node.get("x-asset-ref"):
        words.append("takes an asset")
    text = f"{'  ' * level}- `{name}` ({', '.join(filter(None, words))})"
    if node.get("description"):
        text += f": {one_line(node['description'])}"
    if "default" in node and node["default"] is not None:
        text += f" Default: {json.dumps(node['default'], ensure_ascii=False)}."
    examples = node.get("examples")
    if isinstance(examples, list) and examples:
        text += f" Example: {json_text(cast('list[Json]', examples)[0])}."
    return [text, *inside]


def _nested_type(node: Node) -> tuple[str, Node]:
    """Return the type's name, and the schema of the object or items."""
    if node.get("type") in _SCALARS and "allOf" not in node:
        return "", {}
    null = ""
    arms = node.get("anyOf")
    if isinstance(arms, list) and {"type": "null"} in arms:
        non_null = [arm for arm in cast("list[Json]", arms) if arm != {"type": "null"}]
        if len(non_null) == 1 and isinstance(non_null[0], dict):
            node, null = cast("Node", non_null[0]), " or null"
    kinds = node.get("type")
    if isinstance(kinds, list) and "null" in kinds:
        null = " or null"
    if properties(node):
        return f"object{null}", node
    items = node.get("items")
    if isinstance(items, dict) and properties(cast("Node", items)):
        return f"list of objects{null}", cast("Node", items)
    return "", {}


def _has_details(schema: Node, level: int = 0) -> bool:
    """Return whether a field has more to describe than its type."""
    for _, node in properties(schema):
        if any(node.get(key) is not None for key in _SAID) or _limits(node):
            return True
        if level < _DEEPEST and _has_details(_nested_type(node)[1], level + 1):
            return True
    return False


def _limits(node: Node) -> list[str]:
    return [] if _LIMITING.isdisjoint(node) else list(_limits_of(node))


def _limits_of(node: Node) -> Iterator[str]:
    for key in LIMIT_TEXT:
        if key in node and not ("prefixItems" in node and key.endswith("Items")):
            yield limit_text(key, node[key])
    if "multipleOf" in node:
        yield f"a multiple of {node['multipleOf']}"
    if "pattern" in node:
        yield f"matching {node['pattern']}"
    items = node.get("items")
    if isinstance(items, dict):
        yield from (f"each {text}" for text in _limits_of(cast("Node", items)))
