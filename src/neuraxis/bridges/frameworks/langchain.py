"""LangChain tools as a plugin, and plugins as LangChain tools."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from neuraxis.bridges.frameworks.incoming import (
    EffectsOf,
    Tool,
    checked_list,
    plugin_of,
)
from neuraxis.bridges.frameworks.outgoing import Offer, Offered, result_text
from neuraxis.errors import CommandError, needed
from neuraxis.messages import Result
from neuraxis.plugins.registry import Plugin

_EXTRA, _PURPOSE = "langchain", "Using LangChain tools"


def from_langchain(
    tools: Iterable[Any], *, name: str = "langchain", effects: EffectsOf = "once"
) -> Plugin:
    """Return the plugin of LangChain tools (`BaseTool`).

    Raises:
        MissingExtra: langchain-core is not installed.
        ConfigError: it is not a list of such tools, or two have one name.
    """
    convert: Any = needed(
        "langchain_core.utils.function_calling", _EXTRA, _PURPOSE
    ).convert_to_openai_tool
    raised: type[Exception] = needed(
        "langchain_core.tools", _EXTRA, _PURPOSE
    ).ToolException
    imported: list[Tool] = []
    for tool in checked_list(
        tools, from_langchain, "LangChain tools", ("name", "ainvoke")
    ):
        function: dict[str, Any] = convert(tool)["function"]
        imported.append(
            Tool(
                name=tool.name,
                description=str(tool.description or ""),
                parameters=function.get("parameters") or {},
                run=partial(_ainvoke, tool, raised),
                is_async=True,
            )
        )
    return plugin_of(name, imported, source="langchain", effects=effects)


async def _ainvoke(tool: Any, raised: type[Exception], /, **arguments: Any) -> Any:
    try:
        return await tool.ainvoke(arguments)
    except raised as error:
        raise CommandError(str(error)) from None


def to_langchain(plugins: Iterable[Any], **options: Any) -> list[Any]:
    """Return LangChain tools for every command of the plugins.

    Args:
        plugins: as `Session(plugins=...)` takes them.
        **options: of the `Session` that checks and runs the calls (`workspace`,
            `policy`, `approve` and so on).

    Raises:
        MissingExtra: langchain-core is not installed.
    """
    module: Any = needed("langchain_core.tools", _EXTRA, _PURPOSE)
    offered = Offered(plugins, options)

    def tool(offer: Offer) -> Any:
        def answered(result: Result) -> tuple[str, Any]:
            if result.error is not None:
                raise module.ToolException(result_text(result))
            return result_text(result), result.value

        async def acall(**arguments: Any) -> tuple[str, Any]:
            return answered(await offered.call(offer, arguments))

        def call(**arguments: Any) -> tuple[str, Any]:
            return answered(offered.call_sync(offer, arguments))

        return module.StructuredTool(
            name=offer.name,
            description=offer.description or offer.name,
            args_schema=offer.parameters,
            func=call,
            coroutine=acall,
            handle_tool_error=True,
            response_format="content_and_artifact",
        )

    return [tool(offer) for offer in offered.offers()]
