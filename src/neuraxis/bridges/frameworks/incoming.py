"""Make a plugin from another framework's tools with JSON Schemas."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import isroutine
from typing import Any, cast

import msgspec

from neuraxis.errors import ConfigError, warnings_in
from neuraxis.formatting import describe_given
from neuraxis.parsing.json_access import as_map
from neuraxis.plugins.effects_and_examples import parse_effects
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

EffectsOf = str | Mapping[str, Json] | Effects
"""What tools may change, as `@command(effects=...)` takes it."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of another framework."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    run: Callable[..., Any] | None = None
    """Function that runs it with named arguments; None: it has no code."""
    is_async: bool = False


def checked_list(
    tools: Any, by: Callable[..., Plugin], kind: str, has: tuple[str, ...]
) -> list[Any]:
    """Check and return a list of a framework's tools.

    Args:
        tools: the caller's argument.
        by: the function that makes a plugin of them, for errors.
        kind: the name of such tools, for errors.
        has: the attributes that each must have.

    Raises:
        ConfigError: it is not a list, or has something else in it.
    """
    name = by.__name__

    def is_tool(value: Any) -> bool:
        return all(hasattr(value, key) for key in has)

    def error(value: Any) -> ConfigError:
        message = f"{name}: expected a list of {kind}, got "
        if is_tool(value):
            return ConfigError(f"{message}one; write {name}([…])")
        if isroutine(value):
            function = value.__name__
            message += f"the function {function}. A function needs no bridge: "
            message += f"plugins=[{function}]"
            return ConfigError(message)
        return ConfigError(message + describe_given(value))

    if is_tool(tools) or isinstance(tools, str) or not isinstance(tools, Iterable):
        raise error(tools)
    items = list(cast("Iterable[Any]", tools))
    for tool in items:
        if not is_tool(tool):
            raise error(tool)
    return items


def plugin_of(
    name: str,
    tools: Iterable[Tool],
    *,
    source: str,
    effects: EffectsOf,
    problems: Iterable[str] = (),
) -> Plugin:
    """Return a plugin with a checked command for each tool.

    Raises:
        ConfigError: there is no tool, two have one name, or `effects` is invalid.
    """
    parsed = parse_effects(
        effects if isinstance(effects, str | Effects) else dict(effects)
    )
    if isinstance(parsed, str):
        raise ConfigError(parsed)
    notes = list(problems)
    tools_by_name: dict[str, Tool] = {}
    for tool in tools:
        command_name = _UNSAFE.sub("_", tool.name).strip("_")
        if not command_name or command_name in tools_by_name:
            raise ConfigError(
                f"{source}: expected tools with names of their own, got "
                f"{tool.name!r}{' twice' if command_name else ''}"
            )
        tools_by_name[command_name] = tool
    if not tools_by_name:
        reasons = f": {'; '.join(notes)}" if notes else ""
        raise ConfigError(f"{source}: expected at least one tool{reasons}")
    specs = tuple(
        _spec(command_name, tool, parsed, notes)
        for command_name, tool in tools_by_name.items()
    )
    spec = PluginSpec(
        name=name, title=name, generation="python", commands=specs, source=source
    )
    return Plugin(
        spec=spec,
        commands={
            item.name: Command(
                plugin=spec,
                spec=item,
                run=tools_by_name[item.name].run,
                is_async=tools_by_name[item.name].is_async,
            )
            for item in specs
        },
        problems=warnings_in(source, notes),
    )


def _spec(name: str, tool: Tool, effects: Effects, notes: list[str]) -> CommandSpec:
    parameters: dict[str, Json] = {**tool.parameters, "type": "object"}
    properties = as_map(parameters.get("properties"))
    parameters["properties"] = dict(properties)
    parameters.setdefault("additionalProperties", False)
    parameters["x-formats"] = "annotation"
    if (defect := Schema(parameters).defect) is not None:
        notes.append(f"{name}: its parameters are not checked, since {defect}")
        parameters = {"type": "object", "properties": {key: {} for key in properties}}
    return CommandSpec(
        name=name,
        description=" ".join(tool.description.split()),
        parameters=parameters,
        effects=effects,
    )
