"""Resolve a checked step's references, and return its arguments.

Every step of a chain runs this code, so a top-level argument that is one whole
`{{ … }}` has a fast path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, cast

from neuraxis import call_errors
from neuraxis.assets import frames
from neuraxis.assets.json_view import to_json_value
from neuraxis.assets.store import AssetStore, ReferenceLost
from neuraxis.assets.unfolding import PARTS, unfolds
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import Path
from neuraxis.planning.plan import ITEM, Step, resolver
from neuraxis.policy.decision import Refused
from neuraxis.references.asset_ref import AssetRef, format_url
from neuraxis.references.evaluate import evaluate
from neuraxis.references.path import RESPONSE, WalkError, fill, walk
from neuraxis.references.render import ReferenceFailure
from neuraxis.references.template import Binding, Template
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

_CONSTRAINING = frozenset({"$ref", "allOf", "anyOf", "oneOf", "x-type"})
"""Schema keys that constrain an entry beyond its `properties`."""
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "x-asset-ref"})
"""Schema keys that do not constrain a value."""
_OPEN_KEYS = frozenset({"type", "items", "additionalProperties"})
"""Schema keys that an unconstrained parameter may have."""
_NONE = object()


def resolve_arguments(step: Step, runtime: Runtime) -> Json:
    """Return the arguments with all references resolved (B42, C20).

    Raises:
        Refused: a reference leads nowhere, or to a value that the command rejects.
    """
    target, schema = step.call.target, step.command.parameters
    assets = runtime.assets
    replaced: dict[Path, Any] = {}
    resolve = resolver(step, assets)
    try:
        for binding in step.bindings:
            path, template = binding.path, binding.template
            value = _whole_response(template, assets) if len(path) == 1 else _NONE
            if value is _NONE:
                value = evaluate(template, resolve, False, path=path)
            if value.__class__ is not str and _wants_text(schema, path):
                value = _as_text(value, binding, schema, resolve)
            replaced[path] = value
        for path, ref in step.asset_refs:
            replaced[path] = assets.resolve(ref)
        _refuse_unfolding(target, replaced)
        if assets.holds_objects:
            replaced |= _objects_for_open_parameters(step, replaced, assets)
    except ReferenceLost as lost:
        raise Refused(lost.error) from None
    except ReferenceFailure as failure:
        raise Refused(
            call_errors.reference_not_found(target, failure.message)
        ) from None
    arguments = fill(step.arguments, replaced)
    if schema.valid(arguments):
        return arguments  # pure JSON that is valid already
    return _convert_to_accepted(step, arguments, replaced, assets)


def _refuse_unfolding(target: str, replaced: Mapping[Path, Any]) -> None:
    """Refuse values whose shared parts would be visited without end.

    Raises:
        Refused: one is far larger when it is written out.
    """
    for path, value in replaced.items():
        if unfolds(value):
            where = call_errors.path_text(path, target)
            raise Refused(call_errors.unfolding_asset(where, PARTS))


def _convert_to_accepted(
    step: Step, arguments: Json, replaced: Mapping[Path, Any], assets: AssetStore
) -> Json:
    """Return the arguments with each value converted to an accepted form."""
    command, target = step.command, step.call.target
    schema = command.parameters
    for path, value in replaced.items():
        problem = schema.accepts_native(path, value)
        if problem is not None:
            converted = _accepted_form(step, path, value, assets)
            if converted is not _NONE:
                arguments = fill(arguments, {path: converted})
                continue
            where = call_errors.path_text(path, target)
            got = problem.got + _suggest_answer(step, path, value)
            raise Refused(call_errors.invalid_asset_type(where, problem.expected, got))
    problems = schema.problems(arguments, holes=tuple(replaced))
    if problems:
        raise Refused(
            call_errors.invalid_param(target, problems, command.spec.parameter_names)
        )
    return arguments


def _whole_response(template: Template, assets: AssetStore) -> Any:
    """Return the response that the whole template refers to, else `_NONE`."""
    first = template.parts[0]
    if len(template.parts) > 1 or isinstance(first, str) or first.operations:
        return _NONE
    if first.step == ITEM:
        return _NONE
    content = assets.root(first.step).get("content")
    if type(content) is not dict:
        return _NONE
    return cast("dict[str, Any]", content).get("response", _NONE)


def _as_text(
    value: Any,
    binding: Binding,
    schema: Schema,
    resolve: Callable[[AssetRef], Any],
) -> Any:
    """Return a value's text, unless the parameter accepts its type."""
    if schema.accepts_native(binding.path, value) is None:
        return value
    if not isinstance(value, list | dict):  # lists and mappings become text once, below
        _, json_value = to_json_value(value)
        if isinstance(json_value, str):
            return json_value
    return evaluate(binding.template, resolve, True, path=binding.path)


def _accepted_form(step: Step, path: Path, value: Any, assets: AssetStore) -> Any:
    """Return the native object, or its JSON form, whichever the command accepts.

    The model sees an object's fields and refers to them, but a command may require the
    object itself. Or it may require an object's JSON form.
    """
    accepts = step.command.parameters.accepts_native
    forms = _objects(step, path, assets)
    for class_wanted in filter(
        frames.library_of, step.command.parameters.classes_at(path)
    ):
        for item in (*forms, value):
            with contextlib.suppress(LookupError, ValueError, ImportError):
                return frames.as_library(item, class_wanted)
    is_json, json_value = to_json_value(value)
    forms += [json_value] if is_json else []
    return next((form for form in forms if accepts(path, form) is None), _NONE)


def _objects_for_open_parameters(
    step: Step, replaced: Mapping[Path, Any], assets: AssetStore
) -> dict[Path, Any]:
    """Return native objects instead of JSON for unconstrained parameters."""
    objects: dict[Path, Any] = {}
    for path in replaced:
        schema = step.command.parameters
        node = schema.at(path)
        if node is not None and _is_open(node):
            for form in _objects(step, path, assets):
                if schema.accepts_native(path, form) is None:
                    objects[path] = form
    return objects


def _is_open(node: Mapping[str, Json]) -> bool:
    """Return whether a parameter is unconstrained: no hint, `list`, `dict`."""
    declared = node.keys() - _ANNOTATIONS
    if not declared <= _OPEN_KEYS or node.get("type", "array") not in (
        "array",
        "object",
    ):
        return False
    return all(node[key] in ({}, True) for key in declared - {"type"})


def _objects(step: Step, path: Path, assets: AssetStore) -> list[Any]:
    """Return the native values that the reference at a path leads to."""

    def native(ref: AssetRef) -> Any:
        return walk(assets.native(ref.asset_id), ref.field_path)

    values: list[Any] = []
    for place, ref in step.asset_refs:
        if place == path:
            with contextlib.suppress(WalkError):
                values.append(native(ref))
    for binding in step.bindings:
        if binding.path == path and binding.template.refs[0].asset_id != ITEM:
            with contextlib.suppress(ReferenceFailure):
                values.append(evaluate(binding.template, native, False, path=path))
    return values


def _wants_text(schema: Schema, path: Path) -> bool:
    """Return `schema.wants_text(path)`, decided here for plain schemas."""
    root = schema.json
    if len(path) == 1 and _CONSTRAINING.isdisjoint(root):
        properties: Any = root.get("properties") or {}
        node = properties.get(path[0])
        if type(node) is dict and "$ref" not in node and "allOf" not in node:
            kind: Any = cast("dict[str, Json]", node).get("type")
            if type(kind) is str:
                return kind == "string"
    return schema.wants_text(path)


def _suggest_answer(step: Step, path: Path, value: Any) -> str:
    """Suggest a reference to the asset's response, if that is accepted (B54)."""
    ref = next((ref for place, ref in step.asset_refs if place == path), None)
    for tail in (RESPONSE, RESPONSE[1:], RESPONSE[:1]):
        try:
            inside = walk(value, tail)
        except WalkError:
            continue
        if ref and step.command.parameters.accepts_native(path, inside) is None:
            suggestion = AssetRef(
                asset_id=ref.asset_id, field_path=ref.field_path + tail
            )
            return f" (did you mean {format_url(suggestion)}?)"
    return ""
