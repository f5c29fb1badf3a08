"""A plugin's description in; the same plugin in another notation out.

`to_v2` keeps everything that a manifest of protocol v1 says, also what Neuraxis does
not read. `to_json_schema` gives the schemas that are enforced. `to_yaml`, of
`yaml_text`, writes what Neuraxis understood of any plugin, also of a Python one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import yaml

from neuraxis.plugins.manifest.write import to_yaml
from neuraxis.specs import Json, PluginSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_IGNORED_BY_V1 = "prompt_file_path"
"""v1 says to ignore this key of `info`, v2 reads the file (rule K5)."""


def to_v2(spec: PluginSpec) -> str:
    """The plugin's manifest in protocol v2 (rules K1, K2, D2).

    What a v1 file holds beside its commands stays as it is; comments are lost.
    """
    if spec.generation == "python":
        return to_yaml(spec)
    tree = dict(spec.raw)
    info: Json = tree.get("info")
    if spec.generation == "v1" and isinstance(info, Mapping):
        fields = cast("Mapping[str, Json]", info)
        tree["info"] = {
            key: value for key, value in fields.items() if key != _IGNORED_BY_V1
        }
    commands: Json = tree.get("commands")
    if isinstance(commands, list):
        items = cast("list[Mapping[str, Json]]", commands)
        tree["commands"] = [_command(item) for item in items]
    return str(
        yaml.dump(
            tree,
            Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
            sort_keys=False,
            allow_unicode=True,
            width=88,
        )
    )


def _command(command: Mapping[str, Json]) -> dict[str, Json]:
    """One command, its lists of named fields written as mappings, in their place."""
    made: dict[str, Json] = {}
    for key, value in command.items():
        if key == "parameters":
            made["parameter"] = {"type": _fields(value)}
        elif key == "response" and isinstance(value, list):
            made[key] = {"type": _fields(cast("list[Json]", value))}
        else:
            made[key] = value
    return made


def _fields(nodes: Json) -> dict[str, Json]:
    listed = cast("list[dict[str, Json]]", nodes or [])
    return {
        str(node["name"]): {key: part for key, part in node.items() if key != "name"}
        for node in listed
    }


def to_json_schema(spec: PluginSpec) -> dict[str, Json]:
    """The plugin as data: each command with its schemas, as they are enforced.

    `x-asset-ref` marks a value for which an asset reference may stand, `x-type` a
    class that only such a reference supplies.
    """
    return {
        "name": spec.name,
        "description": spec.description_model,
        "commands": [
            {
                "name": command.name,
                "description": command.description,
                "parameters": _schema(command.parameters),
                "response": _schema(command.response),
            }
            for command in spec.commands
        ],
    }


def _schema(schema: Mapping[str, Json] | None) -> Any:
    return None if schema is None else {"$schema": DIALECT, **schema}
