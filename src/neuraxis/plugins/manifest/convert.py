"""Convert a plugin's description to another notation.

`to_v2` preserves everything in a manifest of protocol v1, even keys that Neuraxis
ignores. `to_json_schema` returns the enforced schemas. `to_yaml` (module `write`)
writes what Neuraxis understood of any plugin, Python plugins included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import yaml

from neuraxis.plugins.manifest.write import mapping_of, to_yaml
from neuraxis.specs import Json, PluginSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_IGNORED_BY_V1 = "prompt_file_path"
"""Key of `info` that v1 ignores; v2 reads the file (rule K5)."""


def to_v2(spec: PluginSpec) -> str:
    """Return the plugin's manifest in protocol v2 (rules K1, K2, D2).

    Other keys of a v1 file are preserved; comments are lost.
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
    """Return one command with its field lists as mappings."""
    converted: dict[str, Json] = {}
    for key, value in command.items():
        if key == "parameters":
            converted["parameter"] = {"type": mapping_of(value)}
        elif key == "response" and isinstance(value, list):
            converted[key] = {"type": mapping_of(cast("list[Json]", value))}
        else:
            converted[key] = value
    return converted


def to_json_schema(spec: PluginSpec) -> dict[str, Json]:
    """Return the plugin as data: each command with its enforced schemas.

    `x-asset-ref` marks a value that may be an asset reference, `x-type` a class that
    only such a reference supplies.
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
