"""Arguments for a command, made from its JSON Schema alone."""

import re
import re._parser as _parser
from collections.abc import Mapping
from typing import Any

from neuraxis.schema.schema import Schema

_FORMATS = {
    "date": "2024-03-01",
    "date-time": "2024-03-01T10:20:30Z",
    "time": "10:20:30Z",
    "uuid": "3f1b6c1e-58a1-4c7e-9d38-0a0b0c0d0e0f",
    "email": "ada@example.org",
    "uri": "https://example.org/a",
    "url": "https://example.org/a",
    "ipv4": "192.0.2.1",
    "byte": "aGVsbG8=",
    "hostname": "example.org",
}
_TEXTS = ("a b&c", "abc", "a", "12", "1", "ABC-123", "a" * 40, "0" * 10, "x1", "US")


class NoSample(Exception):
    """No value that fits was found."""


def arguments(schema: Mapping[str, Any], *, full: bool) -> dict[str, Any]:
    """A call's arguments; `full`: with what may be left out, two levels deep."""
    made = _object(schema, schema, 0, full)
    if not Schema(schema).valid(made):
        raise NoSample(Schema(schema).problems(made)[:2])
    return made


def _object(node: Mapping[str, Any], root: Mapping[str, Any], depth: int, full: bool):
    wanted = list(node.get("required", ()))
    if full and depth < 3:
        wanted += [name for name in node.get("properties", {}) if name not in wanted]
    made: dict[str, Any] = {}
    for name in wanted:
        part = node.get("properties", {}).get(name, {})
        try:
            made[name] = value(part, root, depth + 1, full)
        except NoSample:
            if name in node.get("required", ()):
                raise
    for key in range(node.get("minProperties", 0) - len(made)):
        made[f"key{key}"] = "v"
    return made


def value(node: Any, root: Mapping[str, Any], depth: int, full: bool) -> Any:
    """A value that fits a node of the schema."""
    if not isinstance(node, Mapping):
        return "text"
    for _ in range(8):
        if "$ref" not in node:
            break
        found = root["$defs"][node["$ref"].rpartition("/")[2]]
        node = {**found, **{key: node[key] for key in node if key != "$ref"}}
    if depth > 12:
        raise NoSample("nested too deep")
    if node.get("x-asset-ref"):
        return b"\x89bytes\r\n--"
    fits = Schema({**node, "$defs": root.get("$defs", {}), "x-formats": "annotation"})
    for made in _candidates(node, root, depth, full):
        if fits.valid(made):
            return made
    raise NoSample(repr(node)[:200])


def _candidates(
    node: Mapping[str, Any], root: Mapping[str, Any], depth: int, full: bool
):
    if "const" in node:
        yield node["const"]
    yield from sorted(node.get("enum", ()), key=lambda item: item == "")
    for key in ("oneOf", "anyOf"):
        for arm in node.get(key, ()):
            try:
                inner = value(arm, root, depth, full)
            except NoSample:
                continue
            if isinstance(inner, dict) and "properties" in node:
                yield {**_object(node, root, depth, full), **inner}
            yield inner
    if "allOf" in node:
        yield _merged(node, root, depth, full)
    kinds = node.get("type")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds or ())
    if not kinds:
        kinds = ["object"] if "properties" in node else ["string", "object", "array"]
    for kind in kinds:
        yield from _of_kind(kind, node, root, depth, full)


def _merged(node: Mapping[str, Any], root: Mapping[str, Any], depth: int, full: bool):
    made: dict[str, Any] = {}
    if "properties" in node:
        made.update(_object(node, root, depth, full))
    for arm in node["allOf"]:
        try:
            inner = value(arm, root, depth, full)
        except NoSample:
            continue
        if not isinstance(inner, dict):
            return inner
        made.update(inner)
    return made


def _of_kind(kind: str, node: Mapping[str, Any], root: Any, depth: int, full: bool):
    if kind == "object":
        yield _object(node, root, depth, full)
        yield _object(node, root, depth, False)
    elif kind == "array":
        count = max(node.get("minItems", 1), 1)
        item = value(node.get("items", {"type": "string"}), root, depth + 1, full)
        if isinstance(item, int) and not isinstance(item, bool):
            yield [item + at for at in range(count + 1)]
        yield [item] * count
        yield []
    elif kind == "boolean":
        yield True
    elif kind in ("integer", "number"):
        low = node.get("minimum", node.get("exclusiveMinimum", 0) + 1)
        yield from (3, low, low + 1, node.get("maximum", 0), 1, 0, 10, 100, 1000)
        step = node.get("multipleOf")
        if step:
            yield from (step, step * 10)
    elif kind == "null":
        yield None
    else:
        yield from (_FORMATS[f] for f in [node.get("format")] if f in _FORMATS)
        least = node.get("minLength", 0)
        yield from (text for text in _TEXTS if len(text) >= least)
        yield from node.get("examples", ())
        yield "a" * max(least, 1)
        yield from _like(node.get("pattern", ""))


def _like(pattern: str):
    """Texts that a pattern describes, as far as a small sampler can make them."""
    try:
        tree = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return
    for letters in ("aA0-", "0aA-", "A0a-"):
        yield _text(tree, letters)


def _text(tree: Any, letters: str) -> str:
    made = ""
    for kind, given in tree:
        name = str(kind)
        if name == "LITERAL":
            made += chr(given)
        elif name in ("ANY", "NOT_LITERAL"):
            made += letters[0]
        elif name == "IN":
            made += _member(given, letters)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = given
            made += _text(inner, letters) * max(least, min(most, 1))
        elif name == "SUBPATTERN":
            made += _text(given[-1], letters)
        elif name == "BRANCH":
            made += _text(given[1][0], letters)
    return made


def _member(given: Any, letters: str) -> str:
    """One character of a class."""
    first = str(given[0][0])
    if first == "LITERAL":
        return chr(given[0][1])
    if first == "RANGE":
        return chr(given[0][1][0])
    if first == "CATEGORY":
        return {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " "}.get(
            str(given[0][1]), letters[0]
        )
    return letters[0]
