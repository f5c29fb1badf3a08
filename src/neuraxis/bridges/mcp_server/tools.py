"""Commands as MCP tools, and the tool that runs a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import mcp_types as types
import msgspec

from neuraxis.dialects.native.tool_schema import for_server
from neuraxis.plugins.registry import Command, Registry
from neuraxis.specs import Json

PLAN_TOOL = "run_plan"
BARE = "value"
"""The parameter of a command whose whole argument is one value."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_NO_JSON = ("'x-type'", "'x-class'")
"""Keywords of schemas whose values are not JSON."""


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """Command offered as a tool."""

    tool: types.Tool
    command: Command
    structured: bool
    """Whether its answers have a declared schema."""


def offered_tools(registry: Registry) -> dict[str, Offered]:
    """Return every listed command by its tool name."""
    offered: dict[str, Offered] = {}
    for plugin in registry.listed:
        for command in plugin.commands.values():
            name = _UNFIT.sub("_", registry.tool_name(command))[:128]
            while name in offered or name == PLAN_TOOL:
                name += "_"
            offered[name] = _offered(name, command)
    return offered


def _offered(name: str, command: Command) -> Offered:
    spec = command.spec
    plain, output = for_server(spec.parameters), _output_schema(spec.response)
    kind = spec.effects.kind
    tool = types.Tool(
        name=name,
        description=spec.description,
        input_schema=_wrapped(BARE, plain) if command.bare else plain,
        output_schema=output,
        annotations=types.ToolAnnotations(
            read_only_hint=kind in ("none", "read"),
            destructive_hint=spec.effects.destructive,
            idempotent_hint=kind != "once",
            open_world_hint=spec.effects.open_world,
        ),
    )
    return Offered(tool=tool, command=command, structured=output is not None)


def _wrapped(name: str, plain: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with one member."""
    definitions = {"$defs": plain.pop("$defs")} if "$defs" in plain else {}
    return {
        "type": "object",
        "properties": {name: plain},
        "required": [name],
        **definitions,
    }


def _output_schema(response: Mapping[str, Json] | None) -> dict[str, Any] | None:
    if response is None or not response.get("type"):
        return None  # any value, also one that is not JSON
    if any(word in repr(response) for word in _NO_JSON):
        return None
    plain = for_server(response)
    if plain.get("type") == "object":
        return plain
    return _wrapped("result", plain)


def plan_tool(names: list[str]) -> types.Tool:
    """Return the tool that runs a whole plan of other tools."""
    step: dict[str, Any] = {
        "type": "object",
        "properties": {
            "tool": {"type": "string", "enum": names},
            "arguments": {
                "type": "object",
                "description": "As the tool takes them; {{ name['field'] }} stands for "
                "the result of an earlier step, {{ previous_result }} for the last.",
            },
            "as": {"type": "string", "description": "A name for later steps."},
            "for_each": {"description": "A list, or a reference to one: {{ item }}."},
            "max_items": {"type": "integer", "minimum": 1},
        },
        "required": ["tool"],
        "additionalProperties": False,
    }
    return types.Tool(
        name=PLAN_TOOL,
        description="Run several tools as one plan. It is checked whole before its "
        "first step; steps may use the results of earlier ones by reference, also "
        "large ones and pictures, which need not be sent back and forth.",
        input_schema={
            "type": "object",
            "properties": {
                "steps": {"type": "array", "items": step, "minItems": 1},
                "on_error": {
                    "type": "string",
                    "enum": ["fail_fast", "continue", "retry"],
                },
            },
            "required": ["steps"],
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=True, open_world_hint=True
        ),
    )
