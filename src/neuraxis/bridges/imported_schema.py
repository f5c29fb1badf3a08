"""JSON Schemas of other programs, of any draft, enforced as written.

The schema is enforced as it is. What is changed says nothing of values: our own `x-`
words, which would give a server rights, and the draft, where the author left it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from neuraxis.bridges.untrusted_text import hides_something, visible
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
)
"""Tried in this order where a schema names no draft, or one that nobody knows."""
DEEPEST = 64
"""Levels of a schema, at most: deeper ones are refused."""
NODES = 20_000
"""Parts of a schema, at most."""
_TEXT_KEYS = ("description", "title", "$comment")
_NAMED = (
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas",
    "dependencies",
)  # fmt: skip
"""Keys that hold schemas by names of the author's: an `x-` name is no word there."""
_DATA = ("default", "const", "enum", "examples", "example", "required")


class SchemaRefused(Exception):
    """The schema cannot be enforced; the text says why."""


def import_schema(
    given: Json, *, parameters: bool = True
) -> tuple[dict[str, Json], str]:
    """Return a schema enforced as written, and what was wrong with it.

    The second text is empty where the schema is valid as it stands.

    Args:
        given: the schema, of any draft.
        parameters: it is for a call's arguments, so that it must be for an object.

    Raises:
        SchemaRefused: it is no schema, or not one for an object.
    """
    if not isinstance(given, Mapping):
        raise SchemaRefused("expected a JSON Schema, an object")
    schema = cast("dict[str, Json]", _cleaned(cast("Json", given), 0, [0]))
    if hidden := hiding_name(schema):
        raise SchemaRefused(hidden)
    if parameters:
        kind = schema.get("type", "object")
        if kind != "object":
            raise SchemaRefused(f'expected "type": "object", got {kind!r}')
        schema["type"] = "object"
    # formats are remarks to most authors: a model's value is not refused for them
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


def hiding_name(schema: Json) -> str:
    """Report a name that forges lines or hides; empty: there is none."""
    waiting: list[Json] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += cast("list[Json]", node)
        if not isinstance(node, Mapping):
            continue
        for key, value in cast("Mapping[str, Json]", node).items():
            names: list[Json] = []
            if key == "required" and isinstance(value, list):
                names = cast("list[Json]", value)
            elif key in _NAMED and isinstance(value, Mapping):
                named = cast("Mapping[str, Json]", value)
                names, value = [*named], [*named.values()]
            for name in names:
                if isinstance(name, str) and not name.isprintable():
                    return f"control or invisible characters in the name {name!a}"
            if key not in _DATA:
                waiting.append(value)
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
    made: dict[str, Json] = {}
    for key, value in cast("Mapping[str, Json]", node).items():
        if key.startswith("x-") or (key == "$schema" and depth):
            continue  # the words that give rights are a person's to write
        if key in _TEXT_KEYS and isinstance(value, str):
            made[key] = visible(value, 4_000) if hides_something(value) else value
        elif key in _NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, Json]", value)
            made[key] = {
                name: _cleaned(part, depth + 2, count) for name, part in named.items()
            }
        elif key in _DATA:
            made[key] = value
        else:
            made[key] = _cleaned(value, depth + 1, count)
    return made
