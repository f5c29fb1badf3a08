"""Import other programs' JSON Schemas, of any draft, as written.

The schema is enforced unchanged, except for two things that do not affect values: our
own `x-` keywords, which would give a server rights, are removed, and a missing draft is
added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from neuraxis.bridges.untrusted_text import hides_something, visible
from neuraxis.schema.navigate import most_steps
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
)
"""Drafts, tried in this order if a schema names none or an unknown one."""
DEEPEST = 64
"""Maximum levels of a schema; deeper ones are refused."""
NODES = 20_000
"""Maximum nodes of a schema, also of its parts for one value, each path counted."""
_TEXT_KEYS = ("description", "title", "$comment")
_NAMED = (
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas",
    "dependencies",
)  # fmt: skip
"""Keys that map the author's names to schemas: `x-` has no meaning there."""
_DATA = ("default", "const", "enum", "examples", "example", "required")


class SchemaRefused(Exception):
    """The schema cannot be enforced; the text says why."""


def import_schema(
    given: Json, *, parameters: bool = True
) -> tuple[dict[str, Json], str]:
    """Return a schema that is enforced as written, and its problem.

    The problem is empty if the schema is valid as written.

    Args:
        given: the schema, of any draft.
        parameters: whether it is for a call's arguments, and so must be for an object.

    Raises:
        SchemaRefused: it is not a schema, or not one for an object.
    """
    if not isinstance(given, Mapping):
        raise SchemaRefused("expected a JSON Schema, an object")
    schema = cast("dict[str, Json]", _cleaned(cast("Json", given), 0, [0]))
    if hidden := hiding_name(schema):
        raise SchemaRefused(hidden)
    if unfolds_too_far(schema):
        raise SchemaRefused("its definitions refer to each other too often")
    if parameters:
        kind = schema.get("type", "object")
        if kind != "object":
            raise SchemaRefused(f'expected "type": "object", got {kind!r}')
        schema["type"] = "object"
    # most authors use formats as comments, so they do not refuse a model's value
    schema["x-formats"] = "annotation"
    defect = Schema(schema).defect
    if defect is None:
        return schema, ""
    for draft in DRAFTS if schema.get("$schema") not in DRAFTS else ():
        trial = {**schema, "$schema": draft}
        if Schema(trial).defect is None:
            wrong = f"the schema is invalid ({visible(defect, 200)})"
            return trial, f"{wrong}; it is read as {draft.partition('//')[2]}"
    raise SchemaRefused(visible(defect, 300))


def unfolds_too_far(schema: Mapping[str, Json]) -> bool:
    """Return whether the checks of a value would take very long.

    With 29 definitions, each `allOf` of the next one twice, they take seconds.
    """
    try:
        return most_steps(schema) > NODES
    except RecursionError:
        return True


def hiding_name(schema: Json) -> str:
    """Return a name that forges lines or hides text, or ""."""
    pending: list[Json] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += cast("list[Json]", node)
        if not isinstance(node, Mapping):
            continue
        for key, value in cast("Mapping[str, Json]", node).items():
            names: list[Json] = []
            if key == "required" and isinstance(value, list):
                names = cast("list[Json]", value)
            elif key in _NAMED and isinstance(value, Mapping):
                schemas = cast("Mapping[str, Json]", value)
                names, value = [*schemas], [*schemas.values()]
            for name in names:
                if isinstance(name, str) and not name.isprintable():
                    return f"control or invisible characters in the name {name!a}"
            if key not in _DATA:
                pending.append(value)
    return ""


def _cleaned(node: Json, depth: int, count: list[int]) -> Json:
    count[0] += 1
    if depth > DEEPEST or count[0] > NODES:
        raise SchemaRefused("the schema is too deep or too large")
    if isinstance(node, list):
        items = cast("list[Json]", node)
        return [_cleaned(item, depth + 1, count) for item in items]
    if not isinstance(node, Mapping):
        return node
    cleaned: dict[str, Json] = {}
    for key, value in cast("Mapping[str, Json]", node).items():
        if key.startswith("x-") or (key == "$schema" and depth):
            continue  # only the user may write the keywords that give rights
        if key in _TEXT_KEYS and isinstance(value, str):
            cleaned[key] = visible(value, 4_000) if hides_something(value) else value
        elif key in _NAMED and isinstance(value, Mapping):
            schemas = cast("Mapping[str, Json]", value)
            cleaned[key] = {
                name: _cleaned(part, depth + 2, count) for name, part in schemas.items()
            }
        elif key in _DATA:
            cleaned[key] = value
        else:
            cleaned[key] = _cleaned(value, depth + 1, count)
    return cleaned
