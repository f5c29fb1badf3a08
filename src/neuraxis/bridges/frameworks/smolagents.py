"""smolagents tools as a plugin, and plugins as smolagents tools."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from functools import partial
from keyword import iskeyword
from typing import Any, cast

from neuraxis.bridges.frameworks.incoming import (
    EffectsOf,
    Tool,
    checked_list,
    plugin_of,
)
from neuraxis.bridges.frameworks.outgoing import Offer, Offered, result_text
from neuraxis.errors import CommandError, needed
from neuraxis.plugins.registry import Plugin
from neuraxis.specs import Json

_EXTRA, _PURPOSE = "smolagents", "Using smolagents tools"
_OBJECTS = ("image", "audio")
"""Types whose values are objects, not JSON."""
_PLAIN = ("string", "boolean", "integer", "number", "array", "object", "null")


def from_smolagents(
    tools: Iterable[Any], *, name: str = "smolagents", effects: EffectsOf = "once"
) -> Plugin:
    """Return the plugin of smolagents tools.

    Raises:
        ConfigError: it is not a list of such tools, or two have one name.
    """
    imported = [
        Tool(
            name=tool.name,
            description=str(tool.description),
            parameters=_parameters(tool.inputs),
            run=partial(_run, tool),
        )
        for tool in checked_list(
            tools, from_smolagents, "smolagents tools", ("name", "inputs")
        )
    ]
    return plugin_of(name, imported, source="smolagents", effects=effects)


def _run(tool: Any, /, **arguments: Any) -> Any:
    return tool(**arguments)


def _parameters(inputs: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for name, field in inputs.items():
        kinds = field.get("type", "any")
        kind_names = (
            cast("list[str]", kinds) if isinstance(kinds, list) else [str(kinds)]
        )
        schema = {key: part for key, part in field.items() if key in ("enum", "items")}
        if not {"any", *_OBJECTS} & {*kind_names}:
            schema["type"] = (
                [*kind_names, "null"] if field.get("nullable") else kind_names
            )
        if {*_OBJECTS} & {*kind_names}:
            schema["x-asset-ref"] = True
        properties[name] = {**schema, "description": str(field.get("description", ""))}
        if not field.get("nullable"):
            required.append(name)
    parameters: dict[str, Json] = {"type": "object", "properties": properties}
    return {**parameters, "required": required} if required else parameters


def to_smolagents(plugins: Iterable[Any], **options: Any) -> list[Any]:
    """Return smolagents tools for every command of the plugins.

    They return the native value, so that a code agent can use it.

    Args:
        plugins: as `Session(plugins=...)` takes them.
        **options: of the `Session` that checks and runs the calls.

    Raises:
        MissingExtra: smolagents is not installed.
    """
    module: Any = needed("smolagents", _EXTRA, _PURPOSE)
    offered = Offered(plugins, options)

    def tool(offer: Offer) -> Any:
        def forward(_self: Any, *positional: Any, **arguments: Any) -> Any:
            values = {**dict(zip(inputs, positional, strict=False)), **arguments}
            present = {key: value for key, value in values.items() if value is not None}
            result = offered.call_sync(offer, present)
            if result.error is not None:
                raise CommandError(result_text(result))
            return result.value

        inputs = _inputs(offer)
        fields: dict[str, Any] = {
            "name": _identifier(offer.name),
            "description": offer.description or offer.name,
            "inputs": inputs,
            "output_type": "any",
            "forward": forward,
            "skip_forward_signature_validation": True,
        }
        # smolagents' tools are classes; nothing of ours is inherited
        tool_class = types.new_class(
            offer.name, (module.Tool,), {}, lambda ns: ns.update(fields)
        )
        return tool_class()

    return [tool(offer) for offer in offered.offers()]


def _identifier(name: str) -> str:
    identifier = name.replace("-", "_").replace(".", "_")
    return (
        f"{identifier}_"
        if iskeyword(identifier) or not identifier.isidentifier()
        else identifier
    )


def _inputs(offer: Offer) -> dict[str, dict[str, Json]]:
    properties = cast("Mapping[str, Json]", offer.parameters.get("properties", {}))
    required = cast("list[str]", offer.parameters.get("required", []))
    fields: dict[str, dict[str, Json]] = {}
    for name, part in properties.items():
        node = cast("dict[str, Json]", part) if isinstance(part, dict) else {}
        kinds = node.get("type", "any")
        kind_names = (
            cast("list[str]", kinds) if isinstance(kinds, list) else [str(kinds)]
        )
        plain_kinds = [kind for kind in kind_names if kind in _PLAIN and kind != "null"]
        field: dict[str, Json] = {
            key: node[key] for key in ("enum", "items", "properties") if key in node
        }
        field["type"] = (
            plain_kinds[0] if len(plain_kinds) == 1 else plain_kinds or "any"
        )
        field["description"] = str(node.get("description") or name)
        if name not in required:
            field["nullable"] = True
        fields[name] = field
    return fields
