"""Collect the `_type_ref` types of one file (rule B36).

It is read from a whole file, a command or a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from neuraxis.messages import Path
from neuraxis.schema.notation.types import DEEPEST, NotationProblem, TypeTable, builtin
from neuraxis.specs import Json

_Place = tuple[Json, Path]
_NAME = re.compile(r"[^\W\d][\w.\-]*")


def collect_types(
    tree: Json, *, problems: list[NotationProblem] | None = None
) -> TypeTable:
    """Return every `_type_ref` type of a file (rule B36).

    `tree` is the whole file, one command, or one node. A name that is defined twice,
    or that is a builtin type's, is an error; the first definition holds.
    """
    types: dict[str, Json] = {}
    problems_: list[NotationProblem] = [] if problems is None else problems
    for name, body, path in _definitions(tree):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            message = "_type_ref: expected a name of letters, digits, _ - and ."
        elif builtin(name) is not None:
            message = f"_type_ref {name!r}: this is the name of a builtin type"
        elif name in types and types[name] is not body:
            message = f"_type_ref {name!r}: defined twice in this file"
        else:
            types[name] = body
            continue
        problems_.append(NotationProblem(path=path, message=message))
    return TypeTable(types)


def _definitions(tree: Json) -> Iterator[tuple[Any, Json, Path]]:
    """Yield name, body and place of each definition, in file order."""
    for node, path in _top_nodes(tree):
        yield from _inside(node, path, 0)


def _top_nodes(tree: Json) -> Iterator[_Place]:
    """Yield the parameter and response nodes of a file or its commands."""
    for holder, path in _commands(tree):
        if not isinstance(holder, Mapping):
            continue
        entries = cast("Mapping[str, Json]", holder)
        keys = [
            key for key in ("parameter", "parameters", "response") if key in entries
        ]
        for key in keys:
            part: Json = entries[key]
            if isinstance(part, list):
                items = cast("list[Json]", part)
                yield from ((item, (*path, key, i)) for i, item in enumerate(items))
            else:
                yield part, (*path, key)
        if not keys and "type" in entries:
            yield entries, path


def _commands(tree: Json) -> Iterator[_Place]:
    if isinstance(tree, Mapping):
        entries = cast("Mapping[str, Json]", tree)
        commands: Json = entries.get("commands")
        if isinstance(commands, list):
            items = cast("list[Json]", commands)
            yield from ((item, ("commands", i)) for i, item in enumerate(items))
        else:
            yield entries, ()
    elif isinstance(tree, list):
        items = cast("list[Json]", tree)
        yield from ((item, (i,)) for i, item in enumerate(items))


def _inside(node: Json, path: Path, depth: int) -> Iterator[tuple[Any, Json, Path]]:
    if not isinstance(node, Mapping) or depth > DEEPEST:
        return
    body: Json = cast("Mapping[str, Json]", node).get("type")
    at = (*path, "type")
    parts: list[tuple[str | int, Json]] = []
    if isinstance(body, Mapping):
        fields = cast("Mapping[str, Json]", body)
        if "_type_ref" in fields:
            yield fields["_type_ref"], fields, (*at, "_type_ref")
        parts = list(fields.items())
    elif isinstance(body, list):
        for index, item in enumerate(cast("list[Json]", body)):
            if isinstance(item, Mapping) and "_type_ref" in item:
                name = cast("Mapping[str, Json]", item)["_type_ref"]
                yield name, cast("Json", body), (*at, index, "_type_ref")
            parts.append((index, cast("Json", item)))
    for part, value in parts:
        yield from _inside(value, (*at, part), depth + 1)
