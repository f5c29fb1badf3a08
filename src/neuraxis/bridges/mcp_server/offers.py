"""Offer commands also as MCP prompts and as resources."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

import mcp_types as types
import msgspec

from neuraxis.bridges.mcp_server.tools import Offered
from neuraxis.bridges.mcp_server.values import blocks
from neuraxis.errors import ConfigError
from neuraxis.parsing.json_access import as_list, as_map

_PARAMETER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def offered_prompts(
    tools: Mapping[str, Offered], patterns: Collection[str]
) -> dict[str, Offered]:
    """Return the commands whose tool name or `plugin.command` fits a pattern."""
    prompts: dict[str, Offered] = {}
    for pattern in patterns:
        fits = {
            name: one
            for name, one in tools.items()
            if fnmatchcase(name, pattern) or fnmatchcase(_name(one), pattern)
        }
        _check(pattern, fits.values(), "a prompt")
        prompts |= fits
    return prompts


def _name(offered: Offered) -> str:
    return f"{offered.command.plugin.name}.{offered.command.spec.name}"


def _check(name: str, commands: Iterable[Offered], kind: str) -> None:
    candidates = list(commands)
    if not candidates:
        raise ConfigError(f"{kind} of MCP: there is no command {name!r}")
    for one in candidates:
        if not one.command.spec.effects.readonly or one.command.bare:
            raise ConfigError(
                f"{kind} of MCP: {_name(one)} has effects, or takes no named "
                "parameters; expected a command with effects 'none' or 'read'"
            )


def prompt(name: str, offered: Offered) -> types.Prompt:
    """Return the command as a prompt, whose parameters are texts."""
    spec = offered.command.spec
    required = as_list(spec.parameters.get("required"))
    arguments = [
        types.PromptArgument(
            name=each,
            description=str(as_map(node).get("description", "")) or None,
            required=each in required,
        )
        for each, node in as_map(spec.parameters.get("properties")).items()
    ]
    return types.Prompt(name=name, description=spec.description, arguments=arguments)


def prompt_result(offered: Offered, value: Any) -> types.GetPromptResult:
    """Return a command's answer as messages of the user."""
    return types.GetPromptResult(
        description=offered.command.spec.description,
        messages=[
            types.PromptMessage(role="user", content=block)
            for block in cast("Sequence[Any]", blocks(value))
        ],
    )


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Resource, or template of resources, that a command reads."""

    uri: str
    """URI, with `{parameter}` in place of arguments."""
    name: str
    offered: Offered

    @property
    def is_template(self) -> bool:
        """Whether it has parameters."""
        return "{" in self.uri

    def arguments(self, uri: str) -> dict[str, str] | None:
        """Return the arguments in a URI; None: it does not match."""
        parts = _PARAMETER.split(self.uri)  # text, name, text, name, …, text
        # an argument ends where the next text begins: linear on any URI
        pattern = "".join(
            f"([^/?#{re.escape(parts[index + 1][:1])}]++)"
            if index % 2
            else re.escape(part)
            for index, part in enumerate(parts)
        )
        match = re.fullmatch(pattern, uri)
        return dict(zip(parts[1::2], match.groups(), strict=True)) if match else None


def addresses(
    tools: Mapping[str, Offered], resources: Mapping[str, str]
) -> list[Address]:
    """Return the resources that commands read, by their URIs."""
    resources_: list[Address] = []
    for uri, name in resources.items():
        command = [one for tool, one in tools.items() if name in (tool, _name(one))]
        _check(name, command, "a resource")
        resources_.append(Address(uri=uri, name=name, offered=command[0]))
    return resources_
