"""Pydantic AI tools as a plugin, and plugins as Pydantic AI tools."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
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

_EXTRA, _PURPOSE = "pydantic-ai", "Using Pydantic AI tools"


def from_pydantic_ai(
    tools: Any, *, name: str = "pydantic_ai", effects: EffectsOf = "once"
) -> Plugin:
    """Return the plugin of Pydantic AI tools, or of a `FunctionToolset`.

    A tool that takes a `RunContext` is skipped: there is none outside a Pydantic AI
    run.

    Raises:
        MissingExtra: pydantic-ai is not installed.
        ConfigError: it is not a list of such tools, none of them can be used, or two
            have one name.
    """
    module: Any = needed("pydantic_ai", _EXTRA, _PURPOSE)
    inner: Any = getattr(tools, "tools", tools)
    if isinstance(inner, Mapping):
        inner = cast("Mapping[str, Any]", inner).values()
    has = ("takes_ctx", "function_schema")
    imported: list[Tool] = []
    notes: list[str] = []
    for tool in checked_list(inner, from_pydantic_ai, "Pydantic AI tools", has):
        if tool.takes_ctx:
            notes.append(f"{tool.name} is left out: it takes a RunContext")
            continue
        schema: Any = tool.function_schema
        imported.append(
            Tool(
                name=tool.name,
                description=str(tool.description or ""),
                parameters=schema.json_schema,
                run=partial(_run, tool, module.ModelRetry),
                is_async=True,
            )
        )
    return plugin_of(
        name, imported, source="pydantic-ai", effects=effects, problems=notes
    )


async def _run(tool: Any, retry: type[Exception], /, **arguments: Any) -> Any:
    schema: Any = tool.function_schema
    try:
        validated = schema.validator.validate_python(arguments)
        result = schema.call(validated, None)
        return await result if inspect.isawaitable(result) else result
    except retry as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        if type(error).__name__ != "ValidationError":
            raise
        raise CommandError(str(error)) from None


def to_pydantic_ai(plugins: Iterable[Any], **options: Any) -> list[Any]:
    """Return Pydantic AI tools for every command of the plugins.

    Args:
        plugins: as `Session(plugins=...)` takes them.
        **options: of the `Session` that checks and runs the calls.

    Raises:
        MissingExtra: pydantic-ai is not installed.
    """
    module: Any = needed("pydantic_ai", _EXTRA, _PURPOSE)
    offered = Offered(plugins, options)

    def tool(offer: Offer) -> Any:
        async def call(**arguments: Any) -> str:
            result = await offered.call(offer, arguments)
            if result.error is not None and result.error.fixable_by == "model":
                raise module.ModelRetry(result_text(result))
            return result_text(result)

        return module.Tool.from_schema(
            call,
            name=offer.name,
            description=offer.description,
            json_schema=offer.parameters,
        )

    return [tool(offer) for offer in offered.offers()]
