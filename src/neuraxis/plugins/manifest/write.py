"""Write any plugin's spec as a manifest of protocol v2.

The text loads again to the same schemas. A comment at the top names what a manifest
cannot express of a Python plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import yaml

from neuraxis.schema.notation.nodes import parameter_schema, response_schema
from neuraxis.schema.notation.type_refs import collect_types
from neuraxis.schema.notation.types import NotationProblem
from neuraxis.schema.notation.write import node_from_schema
from neuraxis.specs import CommandSpec, Effects, Example, Json, PluginSpec


def to_yaml(spec: PluginSpec) -> str:
    """Return the manifest of a plugin as text."""
    loss: list[str] = []
    tree = manifest_tree(spec, loss)
    text = yaml.dump(
        _plain(tree, {}),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=True,
        width=88,
    )
    return "".join(f"# not said here: {line}\n" for line in loss) + str(text)


def manifest_tree(spec: PluginSpec, loss: list[str] | None = None) -> dict[str, Json]:
    """Return the manifest of a plugin as data.

    `loss` collects the features that a manifest cannot express.
    """
    losses = [] if loss is None else loss
    info: dict[str, Json] = {
        "title": spec.title or spec.name,
        "description": spec.description or None,
        "description_for_human": spec.description_for_human,
        "description_for_model": spec.description_for_model,
        "summary": spec.summary,
        "prompt": spec.prompt,
    }
    tree: dict[str, Json] = {"name": spec.name}
    if spec.id:
        tree["id"] = spec.id
    if not spec.listed:
        tree["as_plugin"] = False
    tree["info"] = {key: value for key, value in info.items() if value is not None}
    tree["commands"] = [command_tree(command, losses) for command in spec.commands]
    if spec.examples:
        tree["examples"] = _examples(spec.examples)
    if spec.config:
        tree["config"] = dict(spec.config)
    return tree


def command_tree(spec: CommandSpec, loss: list[str] | None = None) -> dict[str, Json]:
    """Return one command in the form of protocol v2."""
    losses: list[str] = []
    tree: dict[str, Json] = {
        "command_name": spec.name,
        "description": spec.description,
        "parameter": _parameter(spec, losses),
    }
    if spec.response is not None:
        response = _raw(spec, "response")
        tree["response"] = (
            _node(spec.response, losses, "optional") if response is None else response
        )
    if spec.effects != Effects() or spec.effects.declared:
        tree["effects"] = _effects(spec.effects)
    if spec.tool_name:
        tree["tool_name"] = spec.tool_name
    if spec.time_limit is not None:
        tree["time_limit"] = spec.time_limit
    if not spec.blocking:
        tree["blocking"] = False
    if spec.concurrency is not None:
        tree["concurrency"] = spec.concurrency
    if spec.failure_field:
        tree["failure_field"] = spec.failure_field
    if spec.examples:
        tree["examples"] = _examples(spec.examples)
    if spec.example_output is not None:
        tree["example_output"] = spec.example_output
    if loss is not None:
        loss += [f"{spec.name}: {item}" for item in losses]
    return tree


def _effects(effects: Effects) -> Json:
    written: dict[str, Json] = {"kind": effects.kind}
    if effects.declared:
        written["destructive"] = effects.destructive
        written["others_write"] = effects.open_world
        written["public"] = effects.public
    if effects.needs_approval:
        written["needs_approval"] = True
    return written if len(written) > 1 else effects.kind


def _parameter(spec: CommandSpec, losses: list[str]) -> Json:
    node = _raw(spec, "parameter")
    return _node(spec.parameters, losses, "required") if node is None else node


def _node(schema: Mapping[str, Json], losses: list[str], flag: str) -> Json:
    """Return the node of a schema, with types written inline.

    Only a recursive type needs its name, and a file can define it only where it is the
    whole type. Elsewhere it becomes any value.
    """
    definitions: Mapping[str, Json] = schema.get("$defs", {})
    named = {name for name in definitions if name in _reached(name, definitions)}
    flat = _flat(schema, definitions, named)
    if named:
        flat["$defs"] = {
            name: _flat(definitions[name], definitions, named) for name in named
        }
    inner_losses: list[str] = []
    node = node_from_schema(flat, loss=inner_losses, flag=flag)
    if named:
        problems: list[NotationProblem] = []
        key = "parameter" if flag == "required" else "response"
        types = collect_types({key: node}, problems=problems)
        read = parameter_schema if flag == "required" else response_schema
        read(node, types, problems=problems)
        if any("type" in problem.message for problem in problems):
            losses += [
                f"the type {name}, which contains itself" for name in sorted(named)
            ]
            cut: dict[str, Json] = {name: {} for name in named}
            inner_losses = []
            node = node_from_schema(
                _flat(schema, cut, set()), loss=inner_losses, flag=flag
            )
    losses += inner_losses
    return node


def _reached(name: str, definitions: Mapping[str, Json]) -> set[str]:
    """Return all definitions that a definition refers to."""
    reached: set[str] = set()
    ahead = _refs(definitions[name])
    while ahead:
        step = ahead.pop()
        if step not in reached and step in definitions:
            reached.add(step)
            ahead |= _refs(definitions[step])
    return reached


def _refs(value: Json) -> set[str]:
    if isinstance(value, list):
        return {ref for item in cast("list[Json]", value) for ref in _refs(item)}
    if not isinstance(value, Mapping):
        return set()
    entries = cast("Mapping[str, Json]", value)
    ref = entries.get("$ref")
    names = {ref.rpartition("/")[2]} if isinstance(ref, str) else set[str]()
    return names | {name for item in entries.values() for name in _refs(item)}


def _flat(value: Json, definitions: Mapping[str, Json], named: set[str]) -> Any:
    """Inline each reference of a schema, except those in `named`."""
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return [_flat(item, definitions, named) for item in items]
    if not isinstance(value, Mapping):
        return value
    entries = cast("Mapping[str, Json]", value)
    ref = entries.get("$ref")
    rest = {
        key: _flat(item, definitions, named)
        for key, item in entries.items()
        if key != "$defs"
    }
    name = ref.rpartition("/")[2] if isinstance(ref, str) else ""
    if not name or name in named or name not in definitions:
        return rest
    del rest["$ref"]
    return {**_flat(definitions[name], definitions, named), **rest}


def _plain(value: Any, copies: dict[int, Any]) -> Any:
    """Return YAML data; a value that occurs twice becomes an alias."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, Mapping):
        fields: dict[str, Any] = {}
        copies[id(cast("Any", value))] = fields
        for key, item in cast("Mapping[Any, Any]", value).items():
            fields[str(key)] = _plain(item, copies)
        return fields
    if isinstance(value, list | tuple):
        items: list[Any] = []
        copies[id(cast("Any", value))] = items
        items += [_plain(item, copies) for item in cast("list[Any]", value)]
        return items
    return str(value)


def _raw(spec: CommandSpec, key: str) -> Json:
    """Return the author's own v2 node; v1 has a field list."""
    node: Any = spec.raw.get(key)
    if isinstance(node, dict):
        return cast("dict[str, Json]", node)
    nodes: Any = spec.raw.get("parameters" if key == "parameter" else key)
    if not isinstance(nodes, list):
        return None
    return {"type": mapping_of(cast("list[Json]", nodes))}


def mapping_of(nodes: Json) -> dict[str, Json]:
    """Return protocol v1's list of fields as a mapping by name."""
    listed = cast("list[dict[str, Json]]", nodes or [])
    return {
        str(node["name"]): {key: part for key, part in node.items() if key != "name"}
        for node in listed
    }


def _examples(examples: tuple[Example, ...]) -> list[Json]:
    return [
        {
            "q": example.question,
            "a": [
                {"tool": call.tool, **dict(call.arguments)} for call in example.calls
            ],
        }
        for example in examples
    ]
