"""Translate the keys beside a type: enum, limits, example, default.

Rules B31, A15 and A26. YAML values that are not JSON become text, with a warning.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any, cast

from neuraxis.formatting import type_name, yaml_type
from neuraxis.messages import Path
from neuraxis.schema.builders import nullable
from neuraxis.schema.describe import LIMITS, type_text
from neuraxis.schema.navigate import kinds
from neuraxis.schema.notation.types import Reading
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

SNAKE = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "unique_items": "uniqueItems",
}
_WANTED: dict[str, tuple[str, tuple[type, ...]]] = {
    **dict.fromkeys(("pattern", "format"), ("a string", (str,))),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems"), ("a whole number", (int,))
    ),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        ("a number", (int, float)),
    ),
}
_LIMITED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern"), ("string",)),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems"), ("array",)),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        ("number", "integer"),
    ),
}
"""The types that a limit applies to; other values are not limited."""
_BOUNDS = (
    ("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"),
)  # fmt: skip
"""Pairs of limits: the first must not exceed the second."""


def with_enums(
    node: Mapping[str, Json], schema: dict[str, Json], path: Path, reading: Reading
) -> dict[str, Json]:
    """Add `enum` of the node and of a list's elements (B31)."""
    items: Json = node.get("items")
    extra: dict[str, Json] = {}
    if isinstance(items, Mapping):
        extra = dict(cast("Mapping[str, Json]", items))
    elif items is not None:
        reading.error((*path, "items"), f"expected a mapping, got {yaml_type(items)}")
    if "item_enum" in node:
        extra["enum"] = node["item_enum"]
    if node.get("enum") is not None:
        members = node["enum"]
        if _is_list(schema) and not _all_lists(members):
            reading.warn(
                (*path, "enum"),
                "enum at a list is that of its elements; write items: {enum: …}",
            )
            extra.setdefault("enum", members)
        else:
            schema = _with_enum(schema, members, (*path, "enum"), reading)
    if not extra:
        return schema
    if not _is_list(schema):
        reading.error((*path, "items"), "items: the type is no list")
        return schema
    inner: Json = schema.get("items", {})
    changed = dict(cast("Mapping[str, Json]", inner)) if inner else {}
    if extra.get("enum") is not None:
        at = (*path, "items", "enum")
        changed = _with_enum(changed, extra["enum"], at, reading)
    changed = with_limits(extra, changed, (*path, "items"), reading)
    return {**schema, "items": changed}


def _is_list(schema: Mapping[str, Json]) -> bool:
    kinds: Json = schema.get("type")
    return kinds == "array" or kinds == ["array", "null"]


def _all_lists(members: Json) -> bool:
    return isinstance(members, list) and all(
        isinstance(member, list) for member in cast("list[Json]", members)
    )


def _with_enum(
    schema: dict[str, Json], members: Json, path: Path, reading: Reading
) -> dict[str, Json]:
    if not isinstance(members, list) or not members:
        reading.error(path, "enum: expected a list of the possible values")
        return schema
    if None in members:
        schema = nullable(schema)
    allowed = set(kinds(schema)) - {"null"}
    checker = Schema(_bare(schema))
    values: dict[str, Json] = {}
    for index, member in enumerate(cast("list[Json]", members)):
        at = (*path, index)
        value = json_value(member, at, reading)
        if allowed == {"string"} and value is not None and not isinstance(value, str):
            # YAML read a word as a number or boolean (rule A15)
            value = str(value).lower() if isinstance(value, bool) else str(value)
            reading.warn(at, f"enum: {member!r} is no text in YAML; put it in quotes")
        elif not checker.valid(value):
            coerced, _ = checker.coerce(value)
            if not checker.valid(coerced):
                expected = type_text(schema)
                reading.drop(at, f"enum: {member!r} is not of the type {expected}")
                continue
            reading.warn(at, f"enum: {member!r} is read as {coerced!r}")
            value = coerced
        # keyed by JSON: Python considers 1, 1.0 and true equal
        values.setdefault(json.dumps(value, sort_keys=True), value)
    return {**schema, "enum": list(values.values())} if values else schema


def _bare(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Remove references, which only the whole file can resolve."""
    return {} if "$ref" in str(schema) else dict(schema)


def with_limits(
    node: Mapping[str, Json], schema: dict[str, Json], path: Path, reading: Reading
) -> dict[str, Json]:
    """Add `minimum`, `pattern` and similar keywords to the schema (ours)."""
    limits: dict[str, Json] = {}
    for key in (*LIMITS, "format", *SNAKE):
        if node.get(key) is None:
            continue
        value = node[key]
        name = SNAKE.get(key, key)
        wanted, classes = _WANTED.get(name, ("true or false", (bool,)))
        is_right = isinstance(value, classes)
        if isinstance(value, bool) is not (classes == (bool,)):
            is_right = False
        if not is_right:
            reading.error((*path, key), f"{key}: expected {wanted}, got {value!r}")
        elif (defect := Schema({name: value}).defect) is not None:
            if name == "pattern":
                wanted, defect = "a regular expression", "it cannot be read as one"
            message = f"{key}: expected {wanted}, got {value!r}: {defect}"
            reading.error((*path, key), message)
        else:
            limits[name] = value
            kind = schema.get("type")
            limited = _LIMITED.get(name, (kind,))
            if isinstance(kind, str) and kind not in limited:
                message = f"{key} is not used: it limits the type {limited[0]}, "
                message += f"got {kind}"
                reading.warn((*path, key), message)
    for least, most in _BOUNDS:
        low, high = limits.get(least), limits.get(most)
        if low is not None and high is not None and low > high:
            message = f"{least} {low} is above {most} {high}: no value fits"
            reading.error(path, message)
    return {**schema, **limits} if limits else schema


def json_value(value: Any, path: Path, reading: Reading) -> Json:
    """Convert a YAML value to JSON: dates to text, NaN refused (A15)."""
    if isinstance(value, datetime.date | datetime.time):
        reading.warn(path, f"{value} is a date in YAML; put it in quotes")
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        reading.error(path, f"{value} is no JSON value")
        return None
    if isinstance(value, list | tuple):
        return [
            json_value(item, (*path, index), reading)
            for index, item in enumerate(cast("list[Json]", value))
        ]
    if isinstance(value, Mapping):
        return {
            str(key): json_value(item, (*path, str(key)), reading)
            for key, item in cast("Mapping[Any, Json]", value).items()
        }
    if isinstance(value, str):
        return str(value)  # a plain str: the validator refuses subclasses
    if value is None or isinstance(value, int | float):
        return value
    reading.error(path, f"{type_name(value)} is no JSON value")
    return None


def check_value(
    key: str, value: Json, schema: dict[str, Json], path: Path, reading: Reading
) -> None:
    """Warn if an example or default does not fit its type (A26)."""
    body = _bare(schema)
    if not body or "x-type" in str(body):
        return
    checker = Schema(body)
    if checker.defect is not None or checker.valid(value):
        return
    if key == "example" and checker.valid(checker.coerce(value)[0]):
        return  # the protocol documents write every example as text
    problems = checker.problems(value)
    expected = problems[0].expected if problems else type_text(schema)
    reading.warn(path, f"{key}: expected {expected}, got {value!r}")
