"""Let other frameworks call plugins; every call goes through a session.

A call is checked, authorised by the policy, and recorded like a model's call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from neuraxis.call_errors import to_json
from neuraxis.dialects.native.dialect import Native
from neuraxis.dialects.results import json_text, outcome
from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session.event_loop import SyncLoop
from neuraxis.session.session import Session
from neuraxis.specs import Json


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Command as shown to another framework's model."""

    name: str
    """Name that is legal for every model server."""
    tool: str
    description: str
    parameters: dict[str, Json]


class Offered:
    """Commands of a session, for callers from other frameworks."""

    def __init__(self, plugins: Iterable[Any], options: Mapping[str, Any]) -> None:
        settings: dict[str, Any] = {"model": ScriptedModel([]), **options}
        self.session = Session(plugins=plugins, **settings)
        self._loop = SyncLoop()

    def offers(self) -> list[Offer]:
        """Return every command, with a schema that model servers accept."""
        registry = self.session.registry
        tools = {target: tool for tool, target in registry.tool_names.items()}
        keys = [
            (plugin.name, command.name)
            for plugin in registry.specs
            for command in plugin.commands
        ]
        definitions = Native().native_tools(registry.specs, registry.tool_names)
        found: list[Offer] = []
        for key, definition in zip(keys, definitions, strict=True):
            function = cast("dict[str, Any]", definition["function"])
            found.append(
                Offer(
                    name=function["name"],
                    tool=tools.get(key) or ".".join(key),
                    description=function.get("description", ""),
                    parameters=function["parameters"],
                )
            )
        return found

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> Result:
        """Run one call; a failure is in its result."""
        target = self.session.registry.tool_names.get(offer.tool)
        plugin, command = target or (None, offer.tool)
        value: Any = dict(arguments)
        properties = cast("dict[str, Json]", offer.parameters.get("properties", {}))
        spec = self.session.registry.find(plugin, command)
        bare = getattr(spec, "bare", False)
        if bare and len(properties) == 1:  # a command of one value, wrapped for servers
            value = value.get(next(iter(properties)))
        call = Call(
            id=self.session.ids.new(),
            plugin=plugin,
            command=command,
            arguments=value,
        )
        result = await self.session.call(call)
        self.session.origins.shown([call.id])  # the framework's model is shown it
        return result

    def call_sync(self, offer: Offer, arguments: Mapping[str, Any]) -> Result:
        """Run one call from code that is not async."""
        return self._loop.run(self.call(offer, arguments))


def result_text(result: Result) -> str:
    """Return a result as a model sees it: value or asset address."""
    fields = outcome(result, 1)
    if result.error is not None:
        return json_text({"error": to_json(result.error)})
    value = fields.get("response")
    text = value if isinstance(value, str) else json_text(value)
    if warnings := fields.get("warnings"):
        text += "\n" + "\n".join(str(item) for item in warnings)
    return text
