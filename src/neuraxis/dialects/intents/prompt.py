"""Build the instruction text of the intent dialect.

The words are in `prompts/intents.md`. A tool's section has the shape of rule C6; in
strict form it is the document's own, without types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from neuraxis.dialects.instruction_template import instruction_text
from neuraxis.dialects.intents.calls import END, START, escape_key
from neuraxis.dialects.intents.signatures import (
    one_line,
    parameter_lines,
    properties,
    return_lines,
    type_lines,
)
from neuraxis.dialects.results import json_text
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec

_TOKEN = re.compile(r"\{(?:tools|examples)\}")
ToolNames = Mapping[str, tuple[str, str]]


def prompt_text(
    plugins: Sequence[PluginSpec],
    tool_names: ToolNames,
    *,
    strict: bool = False,
    goes_on: bool = False,
) -> str:
    """Return the whole instruction text for these plugins."""
    names = {where: tool for tool, where in tool_names.items()}
    sections: list[str] = []
    chains: list[Example] = []
    for plugin in plugins:
        if plugin.prompt:
            sections.append(f"About {plugin.name}:\n{plugin.prompt.strip()}")
        described: set[str] = set()
        for command in plugin.commands:
            tool = names.get((plugin.name, command.name))
            tool = tool or f"{plugin.name}.{command.name}"
            if strict:
                sections.append(strict_section(tool, command))
            else:
                sections.append(tool_section(tool, command, described))
        chains += plugin.examples
    filled = {
        "{tools}": "\n\n".join(sections) or "There are no tools. Answer in plain text.",
        "{examples}": "".join(f"\n{_example(item)}\n" for item in chains),
    }
    text = instruction_text("intents.md", goes_on=goes_on)
    return _TOKEN.sub(lambda match: filled[match[0]], text).strip() + "\n"


def tool_section(tool: str, command: CommandSpec, described: set[str]) -> str:
    """Describe one tool: purpose, parameters and response, with examples.

    Named types in `described` are not repeated; new ones are added to it.
    """
    lines = [f"## {tool}"]
    if command.description:
        lines.append(one_line(command.description))
    lines += parameter_lines(command)
    lines += return_lines(command)
    lines += type_lines(described, command.parameters, command.response)
    for example in command.examples:
        lines += ["", _example(example)]
    if command.example_output is not None:
        lines += ["", f"It returns, for example: {json_text(command.example_output)}"]
    return "\n".join(lines)


def strict_section(tool: str, command: CommandSpec) -> str:
    """Describe one tool in the document's own shape (C6, C7, C22)."""
    parameters = ", ".join(f"`{name}`" for name in command.parameter_names)
    lines = [
        f"## {tool}",
        f"tool_name: `{tool}`",
        f"description: {one_line(command.description)}",
        f"parameters: {parameters}",
        "returns:",
    ]
    for name, node in properties(command.response):
        lines.append(f"  - `{name}`, {one_line(node.get('description', ''))}")
    if command.examples:
        lines += ["", "### Examples"]
        lines.append("\n\n".join(_example(item) for item in command.examples))
    if command.example_output is not None:
        lines += ["", "### Example Tool Output", "```"]
        lines += [_python_literal(command.example_output), "```"]
    return "\n".join(lines)


def _python_literal(value: Json) -> str:
    if not isinstance(value, dict):
        return repr(value)
    entries = cast("dict[str, Json]", value)
    body = ",\n".join(f"  {key!r}: {item!r}" for key, item in entries.items())
    return f"{{\n{body}\n}}"


def _example(example: Example) -> str:
    steps = [
        {"tool": call.tool}
        | {escape_key(key): value for key, value in call.arguments.items()}
        for call in example.calls
    ]
    question = example.question.strip()
    return f"q: {question}\na:\n{START}\n{json_text(steps, indent=2)}\n{END}"
