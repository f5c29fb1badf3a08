"""Check native Python objects behind asset references (rules B41, B42).

A class is known by its qualified name; a module is never imported because a file names
it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, cast

from neuraxis.formatting import (
    FILE_MODULE,
    class_name,
    public_names,
    quote,
    type_name,
)
from neuraxis.messages import Path, Problem
from neuraxis.schema.annotations import (
    CLASS_KEY,
    FILE_KEY,
    FLAGS,
    KEYS_KEY,
    TRUSTED_KEY,
)
from neuraxis.schema.describe import LIMITS, key_text, type_text
from neuraxis.schema.navigate import Node, arms, as_node, child, kinds, resolved
from neuraxis.specs import Json

_FORMAT_CLASSES = {
    "date": ("datetime.date",),
    "date-time": ("datetime.datetime",),
    "time": ("datetime.time",),
    "duration": ("datetime.timedelta",),
    "uuid": ("uuid.UUID",),
    "byte": ("builtins.bytes", "builtins.bytearray"),
    "path": ("pathlib.PurePath",),
    "decimal": ("decimal.Decimal",),
    "zoneinfo": ("zoneinfo.ZoneInfo",),
    **{
        f"ipv{number}{ending.lower()}": (f"ipaddress.IPv{number}{ending or 'Address'}",)
        for number in (4, 6)
        for ending in ("", "Network", "Interface")
    },
}
_DEEPEST = 100


def is_instance(value: Any, name: str) -> bool:
    """Return whether the object's class, or a base, has that name."""
    mro: tuple[type, ...] = type(value).__mro__
    if any(class_name(cls) == name for cls in mro):
        return True
    return isinstance(value, imported_classes(name))


def imported_classes(name: str) -> tuple[type, ...]:
    """Return the classes of that name in modules that are already imported.

    There may be several, since files of several plugins may have one name.
    """
    parts = name.split(".")
    classes: list[type] = []
    for cut in range(len(parts) - 1, 0, -1):
        for module in _modules(".".join(parts[:cut])):
            value: Any = module
            for part in parts[cut:]:
                namespace: dict[str, Any] = getattr(value, "__dict__", {})
                value = namespace.get(part)
            if isinstance(value, type):
                classes.append(value)
    return tuple(classes)


def _modules(name: str) -> list[ModuleType]:
    modules = [
        module
        for key, module in list(sys.modules.items())
        if key.startswith(FILE_MODULE) and public_names(key) == name
    ]
    return [*modules, sys.modules[name]] if name in sys.modules else modules


def native_problem(
    node: Node,
    root: Node,
    value: Any,
    path: Path,
    fits: Callable[[Node, Any], bool],
    depth: int = 0,
) -> Problem | None:
    """Return an object's first problem at a node; `fits` checks JSON."""
    node = resolved(node, root)
    wrong = Problem(
        path=path, expected=type_text(node), got=type_name(value), keyword="type"
    )
    if depth > _DEEPEST:
        return wrong
    if "x-type" in node:
        return None if is_instance(value, str(node["x-type"])) else wrong
    if CLASS_KEY in node and is_instance(value, str(node[CLASS_KEY])):
        return None  # the JSON conversion would produce this
    if "anyOf" in node or "oneOf" in node:
        for arm in arms(node, root):
            if native_problem(arm, root, value, path, fits, depth + 1) is None:
                return None
        return wrong
    if _takes_all(node) or fits(node, value):
        return None
    allowed = kinds(node)
    if (
        isinstance(value, float)
        and "number" in allowed
        and node.keys().isdisjoint(LIMITS)
    ):
        return None  # NaN is not JSON, but a number
    classes = _FORMAT_CLASSES.get(str(node.get("format", "")), ())
    if "string" in allowed and any(is_instance(value, name) for name in classes):
        return None
    if isinstance(value, list | tuple) and (not allowed or "array" in allowed):
        parts: Any = enumerate(cast("list[Any]", value))
        count = {key: node[key] for key in ("minItems", "maxItems") if key in node}
        if count and not fits(count, [None] * len(cast("list[Any]", value))):
            return wrong
    elif isinstance(value, Mapping) and (not allowed or "object" in allowed):
        entries = cast("Mapping[Any, Any]", value)
        if (problem := _keys_problem(node, root, entries, path, fits)) is not None:
            return problem
        parts = entries.items()
    else:
        return wrong
    return _parts_problem(node, root, parts, path, fits, depth)


def _keys_problem(
    node: Node,
    root: Node,
    value: Mapping[Any, Any],
    path: Path,
    fits: Callable[[Node, Any], bool],
) -> Problem | None:
    for key in node.get("required", ()):
        if key not in value:
            expected = f"{type_text(child(node, key, root) or {})} (required)"
            return Problem(path=(*path, key), expected=expected, got="nothing")
    if KEYS_KEY not in node and not all(isinstance(key, str) for key in value):
        return Problem(path=path, expected="keys that are text", got="other keys")
    names = as_node(node.get("propertyNames"))
    for key in value if names else ():
        # other keys are already converted
        if names and isinstance(key, str) and not fits(names, key):
            expected = f"{key_text(names)} as the key"
            return Problem(path=(*path, key), expected=expected, got=quote(key))
    return None


def _parts_problem(
    node: Node,
    root: Node,
    parts: Iterable[tuple[str | int, Any]],
    path: Path,
    fits: Callable[[Node, Any], bool],
    depth: int,
) -> Problem | None:
    for part, inner in parts:
        at = (*path, part)
        subschema = child(node, str(part) if KEYS_KEY in node else part, root)
        if subschema is None:
            return Problem(path=at, expected="nothing here", got=type_name(inner))
        problem = native_problem(subschema, root, inner, at, fits, depth + 1)
        if problem is not None:
            return problem
    return None


def _takes_all(node: Node) -> bool:
    """Return whether the node accepts any object."""
    silent = {"description", "title", "examples", "default", "x-asset-ref", "$defs"}
    silent |= {*FLAGS.values(), FILE_KEY, TRUSTED_KEY}
    return as_node(cast("Json", node)) is not None and set(node) <= silent
