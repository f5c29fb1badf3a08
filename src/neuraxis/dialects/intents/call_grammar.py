"""Schemas of calls, for models that are constrained by a grammar.

They keep only what a grammar can enforce: types, names, choices. Lengths, patterns and
ranges are checked after decoding, as always. A value may also be a reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from neuraxis.dialects.intents.calls import escape_key
from neuraxis.messages import CallForm
from neuraxis.schema.builders import REFERENCE
from neuraxis.specs import CommandSpec, Json, PluginSpec

EXPRESSION: dict[str, Json] = {"type": "string", "pattern": r"^\{\{[^\x22\\]*\}\}$"}
"""An expression in place of a value."""
ADDRESS: dict[str, Json] = {"type": "string", "pattern": r"^asset://[^\x22\\]*$"}
"""The address of an asset, where a parameter takes one."""
_NAME: dict[str, Json] = {"type": "string", "pattern": r"^[a-zA-Z_]\w*$"}
"""The name of a step."""
_POSITIVE: dict[str, Json] = {"type": "integer", "minimum": 1}


def call_form(
    plugins: Sequence[PluginSpec],
    tool_names: Mapping[str, tuple[str, str]],
    start: str,
    end: str,
    *,
    single: bool = False,
) -> CallForm:
    """Return the form of a block with the tools' schemas.

    Args:
        plugins: those with the commands.
        tool_names: the tools to include.
        start: text that begins a block.
        end: text that ends it.
        single: a block has one call, so nothing names, repeats or refers to a step.
    """
    commands = {
        (plugin.name, command.name): command
        for plugin in plugins
        for command in plugin.commands
    }
    definitions: dict[str, Json] = {}
    calls: dict[str, Mapping[str, Json]] = {}
    for tool, names in tool_names.items():
        if names in commands:
            calls[tool] = _call(tool, commands[names], definitions, single)
    return CallForm(
        start=start, end=end, calls=calls, definitions=definitions, single=single
    )


def _call(
    tool: str, command: CommandSpec, definitions: dict[str, Json], single: bool
) -> dict[str, Json]:
    parameters = command.parameters
    for name, node in parameters.get("$defs", {}).items():
        definitions[f"{tool}.{name}"] = _enforceable(node, tool, single)
    properties: dict[str, Json] = {"tool": {"enum": [tool]}}
    required = ["tool"]
    own = parameters.get("properties")
    if parameters.get("type") == "object" and own is not None:
        for name, node in own.items():
            key = name if name == "as" else escape_key(name)
            properties[key] = _value(node, tool, single)
            if name in parameters.get("required", ()):
                required.append(key)
    else:
        properties["$value"] = _value(parameters, tool, single)
        required.append("$value")
    if not single:
        properties["$as" if "as" in properties else "as"] = _NAME
        each: list[Json] = [EXPRESSION, {"type": "array", "items": {}}]
        properties |= {"$for_each": {"anyOf": each}, "$max_items": _POSITIVE}
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _value(node: Json, tool: str, single: bool) -> Json:
    """Return the schema of a value, or of an expression instead."""
    form = _enforceable(node, tool, single)
    if not form or form.get("type") == "string":  # accepts an expression already
        return form
    arms: list[Json] = [*form.get("anyOf", (form,))]
    if not single:
        arms.append(EXPRESSION)
    if isinstance(node, Mapping) and cast("dict[str, Json]", node).get("x-asset-ref"):
        arms += [ADDRESS, REFERENCE]
    return {"anyOf": arms} if len(arms) > 1 else form


def _enforceable(node: Json, tool: str, single: bool) -> dict[str, Json]:
    """Return what a grammar can enforce of a schema; empty: any value."""
    if not isinstance(node, Mapping):
        return {}
    schema = cast("Mapping[str, Json]", node)
    if "x-type" in schema:
        return {"anyOf": [ADDRESS, REFERENCE]}
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{tool}.{str(schema['$ref']).rpartition('/')[2]}"}
    if "enum" in schema or "const" in schema:
        return {"enum": list(schema.get("enum") or [schema["const"]])}
    if arms := schema.get("anyOf") or schema.get("oneOf"):
        return {"anyOf": [_enforceable(arm, tool, single) for arm in arms]}
    kind = schema.get("type")
    if isinstance(kind, list):
        arms = [{**schema, "type": one} for one in cast("list[Json]", kind)]
        return {"anyOf": [_enforceable(arm, tool, single) for arm in arms]}
    if kind == "array":
        return {"type": kind, "items": _value(schema.get("items"), tool, single)}
    if kind == "object":
        extra = schema.get("additionalProperties", True)
        members = cast("Mapping[str, Json]", schema.get("properties") or {})
        return {
            "type": kind,
            "properties": {
                name: _value(node, tool, single) for name, node in members.items()
            },
            "required": list(schema.get("required", ())),
            "additionalProperties": extra
            if isinstance(extra, bool)
            else _value(extra, tool, single),
        }
    return {"type": kind} if kind else {}
