"""Lossless coercions (rule D4): `"5"` to 5, JSON text to a list.

Each change has a note. Nothing is guessed: if two readings are possible, or a reading
would lose something, the value stays unchanged and validation reports it. The value is
never mutated.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from neuraxis.formatting import path_text, quote
from neuraxis.messages import Path
from neuraxis.parsing import strict_json
from neuraxis.schema.describe import SECONDS
from neuraxis.schema.navigate import Node, as_node, child, kinds, resolved
from neuraxis.specs import Json

Fits = Callable[[Mapping[str, Json], Any], bool]

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,399})", re.ASCII)
_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]{0,399})(?:\.[0-9]{1,100})?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII
)
_LONGEST_JSON = 1_000_000
_DEEPEST = 100
_STEPS = 200_000
"""Maximum places examined: nested unions could take exponential time."""
_EXACT = 15
"""Digits that every fraction keeps."""
_NOTHING = object()


def has_whole_float(value: Any, depth: int = 0) -> bool:
    """Return whether a float such as 2.0, valid as integer, is present."""
    if isinstance(value, float):
        return value.is_integer()
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).values()
        return any(has_whole_float(item, depth + 1) for item in items)
    if isinstance(value, list | tuple):
        values = cast("list[Any]", value)
        return any(has_whole_float(item, depth + 1) for item in values)
    return False


def coerce(
    schema: Mapping[str, Json], value: Any, fits: Fits
) -> tuple[Any, tuple[str, ...]]:
    """Return the coerced value with notes; `fits` checks values against nodes."""
    notes: list[str] = []
    walker = _Coercion(schema, fits)
    result = walker.value(schema, value, (), notes, 0)
    return result, tuple(notes)


class _Coercion:
    """Coerces one value: holds the root schema and the validator."""

    __slots__ = ("fits", "left", "root")

    def __init__(self, root: Node, fits: Fits) -> None:
        self.root = root
        self.fits = fits
        self.left = _STEPS

    def value(
        self, node: Node, value: Any, path: Path, notes: list[str], depth: int
    ) -> Any:
        self.left -= 1
        if depth > _DEEPEST or self.left < 0:
            return value
        node = resolved(node, self.root)
        for key in ("anyOf", "oneOf"):
            arms_: Json = node.get(key)
            if isinstance(arms_, list):
                nodes = [as_node(arm) for arm in cast("list[Json]", arms_)]
                union = [arm for arm in nodes if arm is not None]
                return self.union(node, union, value, path, notes, depth)
        allowed = kinds(node)
        if isinstance(value, str):
            value = self.text(node, allowed, value, path, notes)
        elif (
            isinstance(value, float)
            and "integer" in allowed
            and "number" not in allowed
            and value.is_integer()
        ):
            value = _noted(path, value, _whole(value), notes)
        elif type(value) in (int, float) and _is_decimal(node, allowed):
            written = decimal.Decimal(value if isinstance(value, int) else repr(value))
            # a fraction of more digits was rounded when it was read
            if isinstance(value, int) or len(written.as_tuple().digits) <= _EXACT:
                value = _noted(path, value, str(written), notes)
        if isinstance(value, dict):
            return self.object(node, cast("dict[str, Any]", value), path, notes, depth)
        if isinstance(value, list):
            return self.list(node, cast("list[Any]", value), path, notes, depth)
        return value

    def object(
        self,
        node: Node,
        value: dict[str, Any],
        path: Path,
        notes: list[str],
        depth: int,
    ) -> dict[str, Any]:
        required: Any = node.get("required") or ()
        properties: Node = as_node(node.get("properties")) or {}
        changed: dict[str, Any] = {}
        different = False
        for key, item in value.items():
            subschema = child(node, key, self.root) if isinstance(key, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]  # any object may come
            if subschema is None:
                changed[key] = item
                continue
            is_optional = item is None and key in properties and key not in required
            if is_optional and not self.fits(subschema, None):
                notes.append(f"{path_text((*path, key))}: null -> left out")
                different = True
                continue
            inner = self.value(subschema, item, (*path, key), notes, depth + 1)
            different = different or inner is not item
            changed[key] = inner
        return changed if different else value

    def list(
        self,
        node: Node,
        value: list[Any],
        path: Path,
        notes: list[str],
        depth: int,
    ) -> list[Any]:
        changed: list[Any] = []
        different = False
        for index, item in enumerate(value):
            subschema = child(node, index, self.root)
            inner = item
            if subschema:
                inner = self.value(subschema, item, (*path, index), notes, depth + 1)
            different = different or inner is not item
            changed.append(inner)
        if node.get("uniqueItems") is True:
            # keyed by text: 1, 1.0 and True are equal but three values
            unique = list({repr(item): item for item in changed}.values())
            if len(unique) < len(changed):
                notes.append(f"{path_text(path)}: repeated items -> left out")
                return unique
        return changed if different else value

    def union(
        self,
        node: Node,
        union: list[Node],
        value: Any,
        path: Path,
        notes: list[str],
        depth: int,
    ) -> Any:
        """Return the only reading that an arm accepts; else the value itself."""
        non_null = [arm for arm in union if kinds(arm) != ("null",)]
        if len(non_null) == 1 and value is not None:
            return self.value(non_null[0], value, path, notes, depth + 1)
        fits = self.fits(node, value)
        if fits and not has_whole_float(value):
            return value
        readings: dict[str, tuple[Any, list[str]]] = {}
        for arm in non_null:
            tried: list[str] = []
            reading = self.value(arm, value, path, tried, depth + 1)
            if self.fits(arm, reading) and (not fits or reading == value):
                # keyed by text: 1, 1.0 and True are equal but three readings
                readings.setdefault(repr(reading), (reading, tried))
        if fits and any(not tried for _, tried in readings.values()):
            return value  # an arm accepts it unchanged: 2.0 for a number
        if len(readings) != 1:
            return value
        reading, tried = next(iter(readings.values()))
        notes += tried
        return reading

    def text(
        self,
        node: Node,
        allowed: tuple[str, ...],
        value: str,
        path: Path,
        notes: list[str],
    ) -> Any:
        """Coerce a text if another type, or another text, is expected."""
        members: Json = node.get("enum", [node["const"]] if "const" in node else None)
        if isinstance(members, list):
            choices = cast("list[Json]", members)
            if value in choices:
                return value
            folded = value.strip().casefold()
            matches = [
                m for m in choices if isinstance(m, str) and m.casefold() == folded
            ]
            if len(matches) == 1:
                return _noted(path, value, matches[0], notes)
            if not allowed:
                allowed = _member_kinds(choices)
        if "string" in allowed or not allowed:
            return value
        if node.get("format") == SECONDS:
            from neuraxis.schema.formats import duration_seconds  # few schemas need it

            if (seconds := duration_seconds(value)) is not None:
                return _noted(path, value, seconds, notes)
        readings = {
            repr(reading): reading
            for kind in allowed
            if (reading := _read(kind, value)) is not _NOTHING
        }
        if len(readings) != 1:
            return value
        reading = next(iter(readings.values()))
        if isinstance(members, list) and not any(
            reading == member and type(reading) is type(member)
            for member in cast("list[Json]", members)
        ):
            return value
        return _noted(path, value, reading, notes)


def _whole(value: float) -> int:
    """Return the exact integer as written: 1e23 is 10**23."""
    return int(decimal.Decimal(repr(value)))


def _is_decimal(node: Node, allowed: tuple[str, ...]) -> bool:
    is_text = "string" in allowed and {"integer", "number"}.isdisjoint(allowed)
    return is_text and node.get("format") == "decimal"


def _member_kinds(members: list[Json]) -> tuple[str, ...]:
    names: dict[Any, str] = {bool: "boolean", int: "integer", float: "number"}
    return tuple(dict.fromkeys(names.get(type(m), "string") for m in members))


def _read(kind: str, text: str) -> Any:
    """Return a text's lossless value of a JSON type, or `_NOTHING`."""
    stripped = text.strip()
    match kind:
        case "integer" if _INTEGER.fullmatch(stripped) and stripped != "-0":
            return int(stripped)
        case "number" if _NUMBER.fullmatch(stripped):
            return _number(stripped)
        case "boolean" if stripped.casefold() in ("true", "false"):
            return stripped.casefold() == "true"
        case "null" if stripped == "null":
            return None
        case "array" if stripped.startswith("["):
            return _json(stripped, list)
        case "object" if stripped.startswith("{"):
            return _json(stripped, dict)
        case _:
            return _NOTHING


def _number(text: str) -> Any:
    if _INTEGER.fullmatch(text) and text != "-0":
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return _NOTHING
    exact = decimal.Decimal(repr(number)) == decimal.Decimal(text)
    return number if exact else _NOTHING


def _json(text: str, wanted: type) -> Any:
    """Read JSON text as a list or object, strictly (D4, D5)."""
    if len(text) > _LONGEST_JSON:
        return _NOTHING
    try:
        value: Any = strict_json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING
    return value if isinstance(value, wanted) else _NOTHING


def _noted(path: Path, before: Any, after: Any, notes: list[str]) -> Any:
    place = path_text(path) or "the arguments"
    notes.append(f"{place}: {quote(before)} -> {quote(after)}")
    return after
