"""Plugins as tools of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from neuraxis.bridges.frameworks.outgoing import Offer, Offered, result_text
from neuraxis.errors import needed


def to_openai_agents(plugins: Iterable[Any], **options: Any) -> list[Any]:
    """Return OpenAI Agents tools for every command of the plugins.

    Args:
        plugins: as `Session(plugins=...)` takes them.
        **options: of the `Session` that checks and runs the calls.

    Raises:
        MissingExtra: openai-agents is not installed.
    """
    module: Any = needed("agents", "openai-agents", "Offering tools to OpenAI Agents")
    offered = Offered(plugins, options)

    def tool(offer: Offer) -> Any:
        async def invoke(_context: Any, text: str) -> str:
            try:
                given: Any = json.loads(text or "{}")
            except (ValueError, RecursionError) as error:
                return json.dumps({"error": f"the arguments are no JSON: {error}"})
            arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
            return result_text(await offered.call(offer, arguments))

        return module.FunctionTool(
            name=offer.name,
            description=offer.description,
            params_json_schema=offer.parameters,
            on_invoke_tool=invoke,
            strict_json_schema=False,  # it would make every parameter required
        )

    return [tool(offer) for offer in offered.offers()]
