"""The instruction text of the intent dialect: plugins in, text for the model out.

The words are in `prompts/intents.md`. A tool's section has the shape of rule C6; in
strict form it is the document's own, without types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import cast

from neuraxis.dialects.intents_calls import escape_key
from neuraxis.dialects.intents_read import END, START
from neuraxis.dialects.saying import json_text
from neuraxis.notation import type_text
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec

_TOKEN = re.compile(r"\{(?:tools|examples)\}")
ToolNames = Mapping[str, tuple[str, str]]


def prompt_text(
    plugins: Sequence[PluginSpec], tool_names: ToolNames, *, strict: bool = False
) -> str:
    """The whole instruction text for these plugins."""
    names = {where: tool for tool, where in tool_names.items()}
    sections: list[str] = []
    chains: list[Example] = []
    for plugin in plugins:
        if plugin.prompt:
            sections.append(f"About {plugin.name}:\n{plugin.prompt.strip()}")
        for command in plugin.commands:
            tool = names.get((plugin.name, command.name))
            tool = tool or f"{plugin.name}.{command.name}"
            section = strict_section if strict else tool_section
            sections.append(section(tool, command))
        chains += plugin.examples
    filled = {
        "{tools}": "\n\n".join(sections) or "There are no tools. Answer in plain text.",
        "{examples}": "".join(f"\n{_example(item)}\n" for item in chains),
    }
    frame = files("neuraxis.dialects") / "prompts" / "intents.md"
    text = frame.read_text(encoding="utf-8")
    return _TOKEN.sub(lambda match: filled[match[0]], text).strip() + "\n"


def tool_section(tool: str, command: CommandSpec) -> str:
    """One tool: what it does, takes and returns, with examples."""
    lines = [f"## {tool}"]
    if command.description:
        lines.append(_one_line(command.description))
    lines += _parameters(command)
    lines += _returns(command)
    for example in command.examples:
        lines += ["", _example(example)]
    if command.example_output is not None:
        lines += ["", f"It returns, for example: {json_text(command.example_output)}"]
    return "\n".join(lines)


def strict_section(tool: str, command: CommandSpec) -> str:
    """One tool in the document's own shape (rules C6, C7, C22)."""
    parameters = ", ".join(f"`{name}`" for name in command.parameter_names)
    lines = [
        f"## {tool}",
        f"tool_name: `{tool}`",
        f"description: {_one_line(command.description)}",
        f"parameters: {parameters}",
        "returns:",
    ]
    for name, node in _properties(command.response):
        lines.append(f"  - `{name}`, {_one_line(node.get('description', ''))}")
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
    inside = ",\n".join(f"  {key!r}: {item!r}" for key, item in entries.items())
    return f"{{\n{inside}\n}}"


def _parameters(command: CommandSpec) -> list[str]:
    schema = command.parameters
    if schema.get("type") != "object" and "properties" not in schema:
        # A command whose parameter is one plain value (rule K3).
        return ["Parameters:", _node("$value", schema, needed=True)]
    required = command.required
    listed = [
        _node(escape_key(name) if name == "tool" else name, node, name in required)
        for name, node in _properties(schema)
    ]
    return ["Parameters:", *listed] if listed else ["Parameters: none"]


def _returns(command: CommandSpec) -> list[str]:
    schema = command.response
    if schema is None:
        return []
    fields = _properties(schema)
    if fields:
        must = cast("Sequence[str]", schema.get("required", ()))
        return ["Returns:", *(_node(name, node, name in must) for name, node in fields)]
    text = _one_line(schema.get("description", ""))
    return [f"Returns: {type_text(dict(schema))}{f', {text}' if text else ''}"]


def _node(name: str, node: Mapping[str, Json], needed: bool) -> str:
    words = [type_text(dict(node))]
    if not needed:
        words.append("optional")
    if node.get("x-asset-ref"):
        words.append("takes an asset")
    text = f"- `{name}` ({', '.join(word for word in words if word)})"
    if node.get("description"):
        text += f": {_one_line(node['description'])}"
    if "default" in node and node["default"] is not None:
        text += f" Default: {json.dumps(node['default'], ensure_ascii=False)}."
    examples = node.get("examples")
    if isinstance(examples, list) and examples:
        text += f" Example: {json_text(cast('list[Json]', examples)[0])}."
    return text


def _properties(
    schema: Mapping[str, Json] | None,
) -> list[tuple[str, Mapping[str, Json]]]:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return []
    return [
        (name, cast("Mapping[str, Json]", node) if isinstance(node, Mapping) else {})
        for name, node in cast("Mapping[str, Json]", properties).items()
    ]


def _example(example: Example) -> str:
    steps = [
        {"tool": call.tool}
        | {escape_key(key): value for key, value in call.arguments.items()}
        for call in example.calls
    ]
    question = example.question.strip()
    return f"q: {question}\na:\n{START}\n{json_text(steps, indent=2)}\n{END}"


def _one_line(text: Json) -> str:
    return " ".join(str(text).split())
