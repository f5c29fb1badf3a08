"""Explain a validator's error, so that a model can correct it (D7).

A `Problem` has the path, what was expected, what was given and the nearest names. If no
arm of a union accepts a value, there is one problem, or the problems of the arm that
was clearly intended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.formatting import nearest, quote, type_name
from neuraxis.messages import Path, Problem
from neuraxis.parsing.json_access import as_list
from neuraxis.schema.describe import (
    LIMIT_TEXT,
    key_text,
    limit_text,
    members_of,
    type_text,
)
from neuraxis.schema.navigate import (
    Node,
    arms,
    as_node,
    kinds,
    pointed,
    referred,
    resolved,
)
from neuraxis.specs import Json

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_KEYS_SHOWN = 12
_PAIRED = ("required", "additionalProperties")
_FORMAT_TEXT = {
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T09:30:00Z",
    "time": "a time such as 09:30:00Z",
    "duration": "a duration such as PT1H30M",
    "uuid": "a UUID",
    "byte": "base64 text",
    "decimal": 'a decimal number in quotes, such as "1.1"',
    "uri": "a URL",
    "ipv4": "an IPv4 address such as 192.0.2.1",
    "ipv6": "an IPv6 address such as 2001:db8::1",
    "email": "an e-mail address",
}


def explain(error: ValidationError, root: Node, value: Any) -> list[Problem]:
    """Return the problems behind one error of the validated `value`."""
    return _explain(error, root, value, 0)


def _explain(
    error: ValidationError, root: Node, value: Any, depth: int
) -> list[Problem]:
    path: Path = tuple(error.instance_path)
    keyword = error.kind.name
    # the sub-schema whose keyword failed
    node = as_node(pointed(root, error.schema_path[:-1])) or {}
    part = _value_at(value, path)
    match keyword:
        case "required":
            return [_missing(str(cast("Any", error.kind).property), path, node, root)]
        case "additionalProperties" | "unevaluatedProperties":
            unexpected: list[str] = cast("Any", error.kind).unexpected
            keys = _keys(node, root)
            return [_unknown_key(key, path, keys, part) for key in unexpected]
        case "anyOf" | "oneOf":
            tag = _tag(node, root, part)
            meant = _meant_arm(error, path, tag) if depth < 8 else None
            if tag is not None and not tag.arms:
                return [_wrong_tag(tag, path, cast("dict[str, Any]", part))]
            if meant is not None:
                problems = [
                    problem
                    for inner in meant
                    for problem in _explain(inner, root, value, depth + 1)
                ]
                return [_with_tag(one, tag, path, part) for one in problems]
        case "propertyNames":
            return [_wrong_key(error, path, node)]
        case "falseSchema":
            expected = "nothing here"
            return [_problem(path, expected, part, keyword)]
        case _:
            pass
    problem = _problem(path, _expected(error, keyword, node), part, keyword)
    if keyword in ("enum", "const") and isinstance(part, str):
        members: list[Json] = node.get("enum") or [node.get("const")]
        texts = [member for member in members if isinstance(member, str)]
        return [_problem(path, problem.expected, part, keyword, nearest(part, texts))]
    return [problem]


def _value_at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _problem(
    path: Path, expected: str, value: Any, keyword: str, close: tuple[str, ...] = ()
) -> Problem:
    got = type_name(value) if isinstance(value, dict | list) else quote(value)
    return Problem(
        path=path, expected=expected, got=got, candidates=close, keyword=keyword
    )


def _missing(name: str, path: Path, node: Node, root: Node) -> Problem:
    properties: Node = as_node(node.get("properties")) or {}
    field = as_node(properties.get(name)) or {}
    text = type_text(field) if "x-type" not in resolved(field, root) else _opaque(field)
    return Problem(
        path=(*path, name),
        expected=f"{text} (required)",
        got="nothing",
        keyword="required",
    )


def _keys(node: Node, root: Node) -> list[str]:
    """Return the keys of a node and its joined types."""
    properties = dict.fromkeys(as_node(node.get("properties")) or {})
    if "unevaluatedProperties" not in node:
        return list(properties)  # other keywords see these only
    pending: list[Node] = [node]
    seen: set[int] = set()
    while pending:
        inner = pending.pop()
        if id(inner) in seen:
            continue
        seen.add(id(inner))
        properties |= dict.fromkeys(as_node(inner.get("properties")) or {})
        parts = [referred(inner, root)]
        for key in ("allOf", "anyOf", "oneOf"):
            parts += as_list(inner.get(key))
        pending += [part for part in map(as_node, parts) if part is not None]
    return list(properties)


def only_causes(problems: list[Problem]) -> list[Problem]:
    """Leave out unknown keys that are unknown because of another problem.

    The validator knows the keys of a type only if the value fits that type.
    """
    if all(one.keyword != "unevaluatedProperties" for one in problems):
        return problems
    places = {
        one.path[:end]
        for one in problems
        if one.keyword != "unevaluatedProperties"
        for end in range(len(one.path) + 1)
    }
    return [
        one
        for one in problems
        if one.keyword != "unevaluatedProperties" or one.path[:-1] not in places
    ]


def _unknown_key(key: str, path: Path, properties: list[str], value: Any) -> Problem:
    if key in properties:  # of one of the types that are joined
        return Problem(
            path=(*path, key),
            expected="only keys of the types that the value fits",
            got="a key of another type",
            keyword="unevaluatedProperties",
        )
    entries: Mapping[str, Any] = (
        cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    )
    free = [name for name in properties if name not in entries]
    shown = ", ".join(properties[:_KEYS_SHOWN]) + (
        ", …" * (len(properties) > _KEYS_SHOWN)
    )
    return Problem(
        path=(*path, key),
        expected=f"only these keys: {shown}" if properties else "no keys",
        got="an unknown key",
        candidates=nearest(key, free),
        keyword="additionalProperties",
    )


def _wrong_key(error: ValidationError, path: Path, names: Node) -> Problem:
    key = str(cast("Any", error.kind).error.instance)
    return Problem(
        path=(*path, key),
        expected=f"{key_text(names)} as the key",
        got=quote(key),
        candidates=nearest(key, [str(member) for member in names.get("enum") or ()]),
        keyword="propertyNames",
    )


def _opaque(node: Node) -> str:
    return f"a reference to an asset of the class {node.get('x-type')}"


class _Tag(Struct, frozen=True):
    """Property that tells a union's objects apart: `kind` of `{"kind": "cat"}`."""

    name: str
    members: list[Json]
    arms: list[int]
    """Indices of the arms that the given value selects: none or one."""


def _tag(node: Node, root: Node, value: Any) -> _Tag | None:
    """Return the fixed-value property that a union's objects share."""
    if not isinstance(value, dict):
        return None
    entries = cast("dict[str, Any]", value)
    objects = {
        index: arm
        for index, arm in enumerate(arms(node, root))
        if not kinds(arm) or "object" in kinds(arm)
    }
    fields = [as_node(arm.get("properties")) or {} for arm in objects.values()]
    for name in fields[0] if len(fields) > 1 else ():
        tags = [resolved(as_node(one.get(name)) or {}, root) for one in fields]
        if not all("enum" in tag or "const" in tag for tag in tags):
            continue
        allowed = dict(zip(objects, map(members_of, tags), strict=True))
        if name in entries:
            chosen = [i for i in allowed if _holds(allowed[i], entries[name])]
        else:  # an object that may omit it could be meant
            chosen = [i for i in objects if name not in objects[i].get("required", ())]
        if len(chosen) < 2:
            members = [one for inner in allowed.values() for one in inner]
            return _Tag(name=name, members=members, arms=chosen)
    return None


def _holds(members: list[Json], value: Any) -> bool:
    return any(value == one and type(value) is type(one) for one in members)


def _wrong_tag(tag: _Tag, path: Path, value: dict[str, Any]) -> Problem:
    members = [m for i, m in enumerate(tag.members) if m not in tag.members[:i]]
    node: dict[str, Json] = {"enum": members}
    if tag.name not in value:
        return _missing(tag.name, path, {"properties": {tag.name: node}}, {})
    given, texts = value[tag.name], [m for m in members if isinstance(m, str)]
    close = nearest(given, texts) if isinstance(given, str) else ()
    return _problem((*path, tag.name), type_text(node), given, "enum", close)


def _with_tag(problem: Problem, tag: _Tag | None, path: Path, value: Any) -> Problem:
    """Return a missing or unknown field's problem with its arm's tag.

    The value may be meant for another arm: then the tag is the mistake.
    """
    is_field = problem.path[:-1] == path and problem.keyword in _PAIRED
    if tag is None or tag.name not in value or not is_field:
        return problem
    chosen = f"{problem.expected}, since {tag.name} is {quote(value[tag.name])}"
    return replace(problem, expected=chosen)


def _meant_arm(
    error: ValidationError, path: Path, tag: _Tag | None
) -> list[ValidationError] | None:
    """Return the errors of the intended arm; None if unclear.

    It is the arm that a tag selects, the only arm whose type fits, or the one of those
    with the fewest errors.
    """
    context: Any = getattr(error.kind, "context", None)
    groups = cast("list[list[ValidationError]]", context or [])
    if tag is not None and len(tag.arms) == 1 and tag.arms[0] < len(groups):
        return groups[tag.arms[0]]
    fitting = [arm for arm in groups if arm and not any(_other(e, path) for e in arm)]
    if len(fitting) > 1:
        # a tag such as `kind: circle` selects the intended arm
        tagged = [
            arm
            for arm in fitting
            if not any(
                e.kind.name in ("const", "enum")
                and len(e.instance_path) == len(path) + 1
                for e in arm
            )
        ]
        fitting = tagged or fitting
    counts = sorted(len(arm) for arm in fitting)
    if not counts or (len(counts) > 1 and counts[0] == counts[1]):
        return None
    return min(fitting, key=len)


def _other(error: ValidationError, path: Path) -> bool:
    """Return whether the error is a wrong type."""
    names = ("type", "not", "const", "enum", "falseSchema")
    return tuple(error.instance_path) == path and error.kind.name in names


def _expected(error: ValidationError, keyword: str, node: Node) -> str:
    kind: Any = error.kind
    if keyword in LIMIT_TEXT:
        return limit_text(keyword, kind.limit)
    match keyword:
        case "not" if "x-type" in node:
            return _opaque(node)
        case "oneOf" if type(kind).__name__ == "OneOfMultipleValid":
            return f"exactly one of the types of {type_text(node)}"
        case "multipleOf":
            return f"a multiple of {kind.multiple_of}"
        case "uniqueItems":
            return "items that all differ (one is there twice)"
        case "pattern":
            return f"text that matches {kind.pattern}"
        case "format":
            other = f"text of the format {kind.format}"
            return _FORMAT_TEXT.get(str(kind.format), other)
        case "type" if node.get("format") == "decimal":
            return _FORMAT_TEXT["decimal"]  # the type's name does not say "in quotes"
        case "type" | "enum" | "const" | "anyOf" | "oneOf" | "not":
            return type_text(node)
        case _:
            return error.message[:200]
