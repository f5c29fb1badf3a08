"""Make a plugin of tools that another framework describes by JSON Schema."""

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
    """Takes the arguments by name; None: there is a description but no code."""
    is_async: bool = False


def listed(
    tools: Any, by: Callable[..., Plugin], kind: str, has: tuple[str, ...]
) -> list[Any]:
    """Return the tools of a framework that somebody gave.

    Args:
        tools: what was given.
        by: the function that makes a plugin of them.
        kind: what they are called.
        has: the attributes of each of them.

    Raises:
        ConfigError: it is no list, or there is something else in it.
    """
    name = by.__name__

    def is_tool(value: Any) -> bool:
        return all(hasattr(value, key) for key in has)

    def error(value: Any) -> ConfigError:
        message = f"{name}: expected a list of {kind}, got "
        if is_tool(value):
            return ConfigError(f"{message}one; write {name}([…])")
        if isroutine(value):
            own = value.__name__
            message += (
                f"the function {own}. A function needs no bridge: plugins=[{own}]"
            )
            return ConfigError(message)
        return ConfigError(message + describe_given(value))

    if is_tool(tools) or isinstance(tools, str) or not isinstance(tools, Iterable):
        raise error(tools)
    found = list(cast("Iterable[Any]", tools))
    for tool in found:
        if not is_tool(tool):
            raise error(tool)
    return found


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
        ConfigError: there is no tool, two have one name, or `effects` says nothing.
    """
    parsed = parse_effects(
        effects if isinstance(effects, str | Effects) else dict(effects)
    )
    if isinstance(parsed, str):
        raise ConfigError(parsed)
    notes = list(problems)
    found: dict[str, Tool] = {}
    for tool in tools:
        own = _UNSAFE.sub("_", tool.name).strip("_")
        if not own or own in found:
            raise ConfigError(
                f"{source}: expected tools with names of their own, got "
                f"{tool.name!r}{' twice' if own else ''}"
            )
        found[own] = tool
    if not found:
        why = f": {'; '.join(notes)}" if notes else ""
        raise ConfigError(f"{source}: expected at least one tool{why}")
    specs = tuple(_spec(own, tool, parsed, notes) for own, tool in found.items())
    spec = PluginSpec(
        name=name, title=name, generation="python", commands=specs, source=source
    )
    return Plugin(
        spec=spec,
        commands={
            item.name: Command(
                plugin=spec,
                spec=item,
                run=found[item.name].run,
                is_async=found[item.name].is_async,
            )
            for item in specs
        },
        problems=warnings_in(source, notes),
    )


def _spec(name: str, tool: Tool, effects: Effects, notes: list[str]) -> CommandSpec:
    given: dict[str, Json] = {**tool.parameters, "type": "object"}
    properties = as_map(given.get("properties"))
    given["properties"] = dict(properties)
    given.setdefault("additionalProperties", False)
    given["x-formats"] = "annotation"
    if (defect := Schema(given).defect) is not None:
        notes.append(f"{name}: its parameters are not checked, since {defect}")
        given = {"type": "object", "properties": {key: {} for key in properties}}
    return CommandSpec(
        name=name,
        description=" ".join(tool.description.split()),
        parameters=given,
        effects=effects,
    )
