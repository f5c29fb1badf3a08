"""Translate nodes of the YAML notation to JSON Schema (B28-B40, K1-K3).

Mistakes of a `parameter:`, `parameters:` or `response:` tree are appended to
`problems`, each with its path in the tree; nothing is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from neuraxis.formatting import nearest, yaml_type
from neuraxis.messages import Path
from neuraxis.schema.annotations import (
    FILE_KEY,
    FILE_USES,
    FILE_WORD,
    FLAGS,
    RAW_KEY,
    RAW_WORD,
    TRUSTED_KEY,
    TRUSTED_WORD,
    no_file_use,
)
from neuraxis.schema.builders import nullable, or_reference
from neuraxis.schema.describe import LIMITS
from neuraxis.schema.navigate import place_below
from neuraxis.schema.notation.types import (
    DEEPEST,
    NotationProblem,
    Reading,
    TypeTable,
    named_type,
    parse_type,
)
from neuraxis.schema.notation.values import (
    SNAKE,
    check_value,
    json_value,
    with_enums,
    with_limits,
)
from neuraxis.specs import Json

_MOST_LEVELS = 200
"""Maximum levels of a file's containers; types have fewer (`DEEPEST`)."""

_NODE_KEYS = frozenset(
    {"type", "description", "enum", "required", "optional", "asset_ref_acceptable"}
    | {"example", "examples", "default", "nullable", "items", "item_enum", "format"}
    | {"title", "deprecated", *LIMITS, *SNAKE, *FLAGS, FILE_WORD, TRUSTED_WORD}
    | {RAW_WORD}
)


def parameter_schema(
    node: Json,
    types: TypeTable | None = None,
    *,
    problems: list[NotationProblem] | None = None,
) -> dict[str, Json]:
    """Return the schema of a v2 `parameter:` node (rules B28, B37, B38).

    None, and a node whose type is null, mean "no parameters". `x-optional` marks a
    node with `required: false`: the whole `param` may then be missing.
    """
    reading = _reading(types, problems)
    if node is None or _too_deep(node, reading):
        return _no_fields()
    fields = _mapping(node, (), reading)
    if fields is None:
        return _no_fields()
    if "type" in fields and fields["type"] is None:
        return _no_fields()
    schema = _node(fields, (), reading, 0)
    if schema.get("type") == "null":
        return _no_fields()
    if fields.get("required") is False or fields.get("optional") is True:
        schema["x-optional"] = True
    else:
        _warn_of_default(fields, (), reading)
    return _with_definitions(schema, reading)


def parameters_schema(
    nodes: Json,
    types: TypeTable | None = None,
    *,
    problems: list[NotationProblem] | None = None,
) -> dict[str, Json]:
    """Return the schema of a v1 `parameters:` list of fields (rule K1)."""
    reading = _reading(types, problems)
    if nodes is None or _too_deep(nodes, reading):
        return _no_fields()
    return _with_definitions(_field_list(nodes, reading), reading)


def response_schema(
    node: Json,
    types: TypeTable | None = None,
    *,
    problems: list[NotationProblem] | None = None,
) -> dict[str, Json] | None:
    """Return the schema of a `response:` (v1 or v2); None if undeclared."""
    reading = _reading(types, problems, response=True)
    if node is None or _too_deep(node, reading):
        return None
    if isinstance(node, list):
        return _with_definitions(_field_list(cast("Json", node), reading), reading)
    fields = _mapping(node, (), reading)
    if fields is None:
        return None
    if fields.get("type") is None:
        if fields and "type" not in fields:
            reading.warn((), "the response has no type, so it is not checked")
        return None
    return _with_definitions(_node(fields, (), reading, 0), reading)


def _field_list(nodes: Json, reading: Reading) -> dict[str, Json]:
    """Return the schema of a v1 list of fields."""
    if not isinstance(nodes, list):
        reading.error((), f"expected a list of fields, got {yaml_type(nodes)}")
        return _no_fields()
    items = cast("list[Json]", nodes)
    return _object(_named_fields(items, (), reading), reading, 0)


def _with_definitions(schema: dict[str, Json], reading: Reading) -> dict[str, Json]:
    """Add the `$defs` that the schema uses, directly or indirectly."""
    definitions: dict[str, Json] = {}
    # mistakes in a definition are reported at its own place
    quiet = Reading(
        types=reading.types, problems=[], response=reading.response, used=reading.used
    )
    while pending := [name for name in reading.used if name not in definitions]:
        for name in pending:
            body: Json = reading.types.definitions[name]
            definitions[name] = _type(body, (), quiet, 0, define=False)
    if not definitions:
        return schema
    if "$ref" in schema:  # the node is only a named type: its fields belong at the root
        name = str(schema.pop("$ref")).rsplit("/", 1)[-1]
        schema = {**definitions[name], **schema}
    if "$ref" not in repr(schema):
        return schema
    return {**schema, "$defs": definitions}


def _reading(
    types: TypeTable | None,
    problems: list[NotationProblem] | None,
    response: bool = False,
) -> Reading:
    return Reading(
        types=types or TypeTable(),
        problems=[] if problems is None else problems,
        response=response,
    )


# --- nodes ---------------------------------------------------------------------


def _too_deep(tree: Json, reading: Reading) -> bool:
    """Return whether a tree is too deep to read, reporting it."""
    place = place_below(tree, _MOST_LEVELS)
    if place is not None:
        reading.error(place, f"nested deeper than {_MOST_LEVELS} levels")
    return place is not None


def _no_fields() -> dict[str, Json]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _mapping(node: Json, path: Path, reading: Reading) -> Mapping[str, Json] | None:
    if isinstance(node, Mapping):
        return cast("Mapping[str, Json]", node)
    hint = f"; write {{type: {node}}}" if isinstance(node, str) else ""
    reading.error(path, f"expected a mapping with a type, got {yaml_type(node)}{hint}")
    return None


def _node(
    node: Mapping[str, Json], path: Path, reading: Reading, depth: int
) -> dict[str, Json]:
    """Translate one node: its type, then the keys beside the type."""
    _check_keys(node, path, reading)
    if "type" in node:
        schema = _type(node["type"], (*path, "type"), reading, depth)
    else:
        fields = [
            key
            for key, value in node.items()
            if key not in _NODE_KEYS and isinstance(value, Mapping)
        ]
        hint = f"; write the fields ({', '.join(fields)}) below type" if fields else ""
        reading.warn(path, f"no type is given, so any value is taken{hint}")
        schema = {}
    items: Json = node.get("items")
    if isinstance(items, Mapping) and "type" in items and schema == {"type": "array"}:
        inner = cast("Mapping[str, Json]", items)
        schema["items"] = _node(inner, (*path, "items"), reading, depth + 1)
        node = {key: value for key, value in node.items() if key != "items"}
    schema = with_enums(node, schema, path, reading)
    schema = with_limits(node, schema, path, reading)
    wants_null = _flag(node, "nullable", path, reading) is True
    if wants_null or ("default" in node and node["default"] is None):
        schema = nullable(schema)
    if isinstance(node.get("description"), str):
        schema["description"] = node["description"]
    elif node.get("description") is not None:
        schema["description"] = str(node["description"])
    for key, target in (("example", "examples"), ("default", "default")):
        if key in node:
            value = json_value(node[key], (*path, key), reading)
            schema[target] = [value] if key == "example" else value
            check_value(key, value, schema, (*path, key), reading)
    return _marked(node, schema, path, reading)


def _marked(
    node: Mapping[str, Json], schema: dict[str, Json], path: Path, reading: Reading
) -> dict[str, Json]:
    """Add the node's annotations on references, trust and files."""
    if _flag(node, "asset_ref_acceptable", path, reading) is True:
        schema["x-asset-ref"] = True
    for word, mark in FLAGS.items():
        if _flag(node, word, path, reading) is True:
            schema[mark] = True
    if reading.response and _flag(node, TRUSTED_WORD, path, reading) is True:
        schema[TRUSTED_KEY] = True
    use = node.get(FILE_WORD)
    if use in FILE_USES:
        schema[FILE_KEY] = use
    elif use is not None:
        reading.error((*path, FILE_WORD), f"{FILE_WORD}: {no_file_use(use)}")
    if _flag(node, RAW_WORD, path, reading) is False:
        if schema.get("x-asset-ref") is True:
            return or_reference(schema, RAW_KEY)
        reading.error(
            (*path, RAW_WORD),
            f"{RAW_WORD}: false needs asset_ref_acceptable: true beside it",
        )
    return schema


def _check_keys(node: Mapping[str, Json], path: Path, reading: Reading) -> None:
    for key in node:
        if key not in _NODE_KEYS and not (key == "name" and path):
            close = nearest(str(key), sorted(_NODE_KEYS))
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            reading.warn((*path, str(key)), f"unknown key {key!r} is not used{hint}")


def _flag(
    node: Mapping[str, Json], key: str, path: Path, reading: Reading
) -> bool | None:
    value = node.get(key)
    if value is None or isinstance(value, bool):
        return value
    reading.error((*path, key), f"{key}: expected true or false, got {value!r}")
    return None


def _is_required(node: Mapping[str, Json], path: Path, reading: Reading) -> bool:
    """Return whether a field is required, by `required` or `optional` (B39, B40)."""
    required = _flag(node, "required", path, reading)
    optional = _flag(node, "optional", path, reading)
    wrong = "required" if reading.response else "optional"
    if node.get(wrong) is not None:
        right = "optional" if reading.response else "required"
        subject = "a response" if reading.response else "a parameter"
        reading.warn((*path, wrong), f"{wrong}: {subject} uses {right!r}; it is read")
    if required is not None and optional is not None and required is optional:
        reading.error(path, "required and optional contradict each other")
    if reading.response and optional is not None:
        return not optional
    if required is not None:
        return required
    return optional is not True


def _warn_of_default(
    required_node: Mapping[str, Json], path: Path, reading: Reading
) -> None:
    if "default" in required_node and not reading.response:
        text = "the default is never used: the parameter is required (B32); write "
        reading.warn((*path, "default"), f"{text}required: false beside it")


def _type(
    written: Json, path: Path, reading: Reading, depth: int, define: bool = True
) -> dict[str, Json]:
    """Translate the value of `type:`. `define`: a `_type_ref` becomes a `$ref`."""
    if depth > DEEPEST:
        reading.error(path, f"types are nested deeper than {DEEPEST} levels")
        return {}
    if written is None:
        reading.warn(path, 'the type is empty: read as "null"; write Any for anything')
        return {"type": "null"}
    if isinstance(written, str):
        return parse_type(written, path, reading)
    if isinstance(written, Mapping):
        fields = cast("Mapping[Any, Json]", written)
        nodes = [
            (_name(key, path, reading), value, (*path, str(key)))
            for key, value in fields.items()
            if key != "_type_ref"
        ]
        name: Json = fields.get("_type_ref")
        schema = _object(nodes, reading, depth)
    elif isinstance(written, list):
        items = cast("list[Json]", written)
        nodes = _named_fields(items, path, reading)
        refs = [
            cast("Mapping[str, Json]", item)["_type_ref"]
            for item in items
            if isinstance(item, Mapping) and "_type_ref" in item
        ]
        name = refs[0] if refs else None
        schema = {"type": "array", "items": _object(nodes, reading, depth)}
    else:
        reading.error(
            path, f"type: expected a type, got {yaml_type(written)} {written!r}"
        )
        return {}
    if (
        define
        and isinstance(name, str)
        and reading.types.definitions.get(name) == written
    ):
        return named_type(name, path, reading)
    return schema


_Fields = list[tuple[str, Json, Path]]


def _named_fields(items: list[Json], path: Path, reading: Reading) -> _Fields:
    """Return the fields of the list syntax (rule B34) by `name`."""
    fields: _Fields = []
    if not items:
        reading.warn(path, "the list names no field")
    for index, item in enumerate(items):
        at = (*path, index)
        if not isinstance(item, Mapping):
            hint = "; write Union[…] for one of several types"
            extra = hint if isinstance(item, str) else ""
            reading.error(
                at,
                f"expected a field with name and type, got {yaml_type(item)}{extra}",
            )
            continue
        field = cast("Mapping[str, Json]", item)
        if "name" not in field and "_type_ref" in field and "type" not in field:
            continue
        if field.get("name") in (None, ""):
            reading.error(at, "the field has no name")
            continue
        name = _name(field["name"], (*at, "name"), reading)
        if any(name == other for other, _, _ in fields):
            reading.error((*at, "name"), f"the field {name!r} is named twice")
            continue
        node = {key: value for key, value in field.items() if key != "_type_ref"}
        fields.append((name, node, at))
    return fields


def _name(key: Any, path: Path, reading: Reading) -> str:
    if not isinstance(key, str):
        reading.warn(path, f"the name {key!r} is no text in YAML; put it in quotes")
    return str(key)


def _object(fields: _Fields, reading: Reading, depth: int) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    required: list[str] = []
    for name, value, path in fields:
        node = _mapping(value, path, reading)
        if node is None:
            continue
        properties[name] = _node(node, path, reading, depth + 1)
        if _is_required(node, path, reading):
            required.append(name)
            _warn_of_default(node, path, reading)
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}
