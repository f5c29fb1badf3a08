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
    listed,
    plugin_of,
)
from neuraxis.bridges.frameworks.outgoing import Offer, Offered, result_text
from neuraxis.errors import CommandError, needed
from neuraxis.plugins.registry import Plugin
from neuraxis.specs import Json

_EXTRA, _PURPOSE = "smolagents", "Using smolagents tools"
_OBJECTS = ("image", "audio")
"""Types whose values are objects and no JSON."""
_PLAIN = ("string", "boolean", "integer", "number", "array", "object", "null")


def from_smolagents(
    tools: Iterable[Any], *, name: str = "smolagents", effects: EffectsOf = "once"
) -> Plugin:
    """Return the plugin of smolagents tools.

    Raises:
        ConfigError: it is no list of such tools, or two have one name.
    """
    found = [
        Tool(
            name=tool.name,
            description=str(tool.description),
            parameters=_parameters(tool.inputs),
            run=partial(_run, tool),
        )
        for tool in listed(
            tools, from_smolagents, "smolagents tools", ("name", "inputs")
        )
    ]
    return plugin_of(name, found, source="smolagents", effects=effects)


def _run(tool: Any, /, **arguments: Any) -> Any:
    return tool(**arguments)


def _parameters(inputs: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for name, given in inputs.items():
        kinds = given.get("type", "any")
        listed = cast("list[str]", kinds) if isinstance(kinds, list) else [str(kinds)]
        made = {key: part for key, part in given.items() if key in ("enum", "items")}
        if not {"any", *_OBJECTS} & {*listed}:
            made["type"] = [*listed, "null"] if given.get("nullable") else listed
        if {*_OBJECTS} & {*listed}:
            made["x-asset-ref"] = True
        properties[name] = {**made, "description": str(given.get("description", ""))}
        if not given.get("nullable"):
            required.append(name)
    whole: dict[str, Json] = {"type": "object", "properties": properties}
    return {**whole, "required": required} if required else whole


def to_smolagents(plugins: Iterable[Any], **options: Any) -> list[Any]:
    """Return smolagents tools for every command of the plugins.

    They return the native value, so that a code agent can go on with it.

    Args:
        plugins: as `Session(plugins=...)` takes them.
        **options: of the `Session` that checks and runs the calls.

    Raises:
        MissingExtra: smolagents is not installed.
    """
    module: Any = needed("smolagents", _EXTRA, _PURPOSE)
    offered = Offered(plugins, options)

    def tool(offer: Offer) -> Any:
        def forward(_self: Any, *given: Any, **arguments: Any) -> Any:
            named = {**dict(zip(inputs, given, strict=False)), **arguments}
            present = {key: value for key, value in named.items() if value is not None}
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
        # their tools are classes; nothing of ours is inherited
        made = types.new_class(
            offer.name, (module.Tool,), {}, lambda ns: ns.update(fields)
        )
        return made()

    return [tool(offer) for offer in offered.offers()]


def _identifier(name: str) -> str:
    made = name.replace("-", "_").replace(".", "_")
    return f"{made}_" if iskeyword(made) or not made.isidentifier() else made


def _inputs(offer: Offer) -> dict[str, dict[str, Json]]:
    properties = cast("Mapping[str, Json]", offer.parameters.get("properties", {}))
    required = cast("list[str]", offer.parameters.get("required", []))
    found: dict[str, dict[str, Json]] = {}
    for name, part in properties.items():
        node = cast("dict[str, Json]", part) if isinstance(part, dict) else {}
        kinds = node.get("type", "any")
        listed = cast("list[str]", kinds) if isinstance(kinds, list) else [str(kinds)]
        known = [kind for kind in listed if kind in _PLAIN and kind != "null"]
        made: dict[str, Json] = {
            key: node[key] for key in ("enum", "items", "properties") if key in node
        }
        made["type"] = known[0] if len(known) == 1 else known or "any"
        made["description"] = str(node.get("description") or name)
        if name not in required:
            made["nullable"] = True
        found[name] = made
    return found
