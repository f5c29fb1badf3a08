"""A checked step flows in; its arguments with the values its references lead to, out.

And what two calls with the same arguments have in common. A chain pays for this in
each of its links, so the common way stands first: a whole `{{ … }}` on the top level.
"""

from __future__ import annotations

import json
import time
from typing import Any, cast

from neuraxis import sentences
from neuraxis.assets.describe import size_of
from neuraxis.assets.store import AssetStore, ReferenceLost
from neuraxis.deciding import Refused
from neuraxis.messages import Path
from neuraxis.notation import Schema
from neuraxis.paths import RESPONSE
from neuraxis.plan import Step
from neuraxis.plan_references import ITEM
from neuraxis.references import (
    AssetRef,
    ReferenceFailure,
    Template,
    WalkError,
    evaluate,
    fill,
    format_url,
    walk,
)
from neuraxis.runtime import Runtime
from neuraxis.short import is_short
from neuraxis.specs import Json

_LARGE = 10_000
"""Bytes of arguments that are compared by their references, not written out."""
_UNCLEAR = frozenset({"$ref", "allOf", "anyOf", "oneOf", "x-type"})
"""Keys of a schema whose properties are not all that it says of an entry."""
_NOTHING = object()


def resolve_arguments(step: Step, runtime: Runtime) -> Json:
    """The arguments with the objects in the places of the references (B42, C20).

    Raises:
        Refused: a reference leads nowhere, or to what the command does not take.
    """
    command, target = step.command, step.call.target
    schema, assets = command.parameters, runtime.assets
    replaced: dict[Path, Any] = {}

    def resolve(ref: AssetRef) -> Any:
        if step.item is not None and ref.asset_id == ITEM:
            return step.item.value
        return assets.resolve(ref)

    try:
        for binding in step.bindings:
            path, template = binding.path, binding.template
            value = _plain_answer(template, assets) if len(path) == 1 else _NOTHING
            if value is _NOTHING or value.__class__ is not str:
                wants_text = _wants_text(schema, path)
                if value is _NOTHING or wants_text:
                    value = evaluate(template, resolve, wants_text, path=path)
            replaced[path] = value
        for path, ref in step.asset_refs:
            replaced[path] = assets.resolve(ref)
    except ReferenceLost as lost:
        raise Refused(lost.error) from None
    except ReferenceFailure as failure:
        raise Refused(sentences.reference_not_found(target, failure.message)) from None
    arguments = fill(step.arguments, replaced)
    if schema.valid(arguments):
        return arguments  # all of it JSON that fits
    for path, value in replaced.items():
        problem = schema.accepts_native(path, value)
        if problem is not None:
            where = sentences.path_text(path, target)
            got = problem.got + _that_fits(step, path, value)
            raise Refused(sentences.invalid_asset_type(where, problem.expected, got))
    problems = schema.problems(arguments, holes=tuple(replaced))
    if problems:
        raise Refused(
            sentences.invalid_param(target, problems, command.spec.parameter_names)
        )
    return arguments


def _plain_answer(template: Template, assets: AssetStore) -> Any:
    """The answer that a template is, whole and as it is; else `_NOTHING`."""
    first = template.parts[0]
    if len(template.parts) > 1 or isinstance(first, str) or first.operations:
        return _NOTHING
    if first.step == ITEM:
        return _NOTHING
    content = assets.root(first.step).get("content")
    if type(content) is not dict:
        return _NOTHING
    return cast("dict[str, Any]", content).get("response", _NOTHING)


def _wants_text(schema: Schema, path: Path) -> bool:
    """`schema.wants_text(path)`, at a glance where the schema says it plainly."""
    root = schema.json
    if len(path) == 1 and _UNCLEAR.isdisjoint(root):
        properties: Any = root.get("properties") or {}
        node = properties.get(path[0])
        if type(node) is dict and "$ref" not in node and "allOf" not in node:
            kind: Any = cast("dict[str, Json]", node).get("type")
            if type(kind) is str:
                return kind == "string"
    return schema.wants_text(path)


def _that_fits(step: Step, path: Path, value: Any) -> str:
    """For a reference to a whole asset: that to its answer, where it fits (B54)."""
    ref = next((ref for place, ref in step.asset_refs if place == path), None)
    for tail in (RESPONSE, RESPONSE[1:], RESPONSE[:1]):
        try:
            inside = walk(value, tail)
        except WalkError:
            continue
        if ref and step.command.parameters.accepts_native(path, inside) is None:
            longer = AssetRef(asset_id=ref.asset_id, field_path=ref.field_path + tail)
            return f" (did you mean {format_url(longer)}?)"
    return ""


def same_key(tool: str, arguments: Json, step: Step) -> str:
    """What two calls with the same resolved arguments have in common."""
    if is_short(arguments):
        return f"{tool} = {arguments!r}"
    if size_of(arguments) > _LARGE:
        # what is stored never changes, so the same references mean the same values
        refs = [binding.template.refs for binding in step.bindings]
        item = None if step.item is None else (step.item.part_of, step.item.index)
        return f"{tool} {step.arguments!r} {refs!r} {item}"
    try:
        return f"{tool} {json.dumps(arguments)}"
    except (TypeError, ValueError):
        # a native object: never the same as another
        return f"{tool} {id(arguments)} {time.perf_counter_ns()}"
