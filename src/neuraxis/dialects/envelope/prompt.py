"""Build the instruction text of the envelope dialects.

The words are in `prompts/envelope_v1.md` and `envelope_v2.md`. A plugin is shown as
YAML made from its data (rules A2, A5, B2): comments and paths never reach the model.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import yaml

from neuraxis.dialects.instruction_template import PLUGINS, Template, instruction_text
from neuraxis.schema.notation.write import node_from_schema
from neuraxis.specs import CommandSpec, Json, PluginSpec

Generation = Literal["v1", "v2"]

_SPECIAL = re.compile(r"[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe]|\\[bfrtu]")
"""Unprintable characters in JSON, and those beyond the first plane (emojis)."""

_BACKTICKS = re.compile(r"`++")
_COMMAND_KEYS = (
    "command_name",
    "description",
    "parameter",
    "parameters",
    "response",
)


def prompt_frame(generation: Generation, *, goes_on: bool = False) -> Template:
    """Return our own instruction text, with a place for the plugins."""
    text = instruction_text(f"envelope_{generation}.md", goes_on=goes_on)
    before, _, after = text.partition(PLUGINS)
    return Template(before=before, after=after)


def plugins_text(
    plugins: Sequence[PluginSpec], *, generation: Generation, strict: bool = False
) -> str:
    """Return the text of all plugins, described as the protocol requires."""
    sections: list[str] = []
    for plugin in plugins:
        detail = fenced(_yaml(plugin_tree(plugin, generation, strict=strict)))
        if generation == "v1":
            detail = f"Summary:\n\n{summary(plugin)}\n\nDetail:\n\n{detail}"
        sections.append(detail)
    between = "\n\n---\n\n" if generation == "v1" else "\n\n"
    return between.join(sections) or "There are none."


def summary(plugin: PluginSpec) -> str:
    """Summarize the plugin and each of its commands (rules A2, A3)."""
    lines = [" ".join((plugin.summary or plugin.description_model).split())]
    missing = [
        command
        for command in plugin.commands
        if not plugin.summary or command.name not in plugin.summary
    ]
    lines += [
        f"- {command.name}: {' '.join(command.description.split())}".rstrip(": ")
        for command in missing
    ]
    return "\n".join(line for line in lines if line) or plugin.name


def plugin_tree(
    plugin: PluginSpec, generation: Generation, *, strict: bool
) -> dict[str, Json]:
    """Return the plugin as data for YAML, limited to what models see."""
    tree: dict[str, Json] = {}
    if plugin.id:
        tree["id"] = plugin.id
    tree["name"] = plugin.name
    info: dict[str, Json] = {
        "title": plugin.title,
        "description": plugin.description or plugin.description_model,
    }
    if strict:
        info["description_for_human"] = plugin.description_for_human
    info["description_for_model"] = plugin.description_for_model
    info["prompt"] = plugin.prompt
    tree["info"] = {key: value for key, value in info.items() if value is not None}
    tree["commands"] = [_command(command) for command in plugin.commands]
    if strict and generation == "v1":
        tree["config"] = {"id": plugin.id, "name": plugin.name}
        if not plugin.id:
            del tree["config"]["id"]
    return tree


def _command(command: CommandSpec) -> dict[str, Json]:
    if command.raw:
        fields = {key: command.raw[key] for key in _COMMAND_KEYS if key in command.raw}
        return {"command_name": command.name, **fields} | {"command_name": command.name}
    tree: dict[str, Json] = {"command_name": command.name}
    if command.description:
        tree["description"] = command.description
    tree["parameter"] = node_from_schema(dict(command.parameters))
    if command.response is not None:
        tree["response"] = node_from_schema(dict(command.response), flag="optional")
    return tree


def node_text(schema: Mapping[str, Json]) -> str:
    """Return a schema as a node of the notation, in YAML."""
    return fenced(_yaml(node_from_schema(dict(schema))))


def fenced(text: str) -> str:
    """Return the text in a fence longer than any inside it."""
    fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(text))])
    return f"{fence}yaml\n{text.rstrip()}\n{fence}"


def _yaml(tree: Mapping[str, Json]) -> str:
    stream = io.StringIO()
    # libyaml is eight times as fast, and escapes a few characters that a model
    # reads better as they are
    plain = _SPECIAL.search(json.dumps(tree, ensure_ascii=False, default=str)) is None
    # typed stubs of PyYAML do not know that these are plain attributes
    fast: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # PyYAML may lack it
    dumper: Any = (fast if plain else yaml.SafeDumper)(
        stream, sort_keys=False, allow_unicode=True, width=10**6
    )
    dumper.ignore_aliases = _never_alias
    dumper.yaml_representers = {**dumper.yaml_representers, str: _text}
    dumper.open()
    dumper.represent(dict(tree))
    dumper.close()
    # libyaml marks the end of a document whose last text ends in an empty line
    return stream.getvalue().removesuffix("...\n")


def _never_alias(data: Json) -> bool:
    return True


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
