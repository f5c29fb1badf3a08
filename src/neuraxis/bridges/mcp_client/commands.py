"""Commands that ask an MCP server: its tools, resources and prompts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from mcp import Client

from neuraxis.bridges.mcp_client import content
from neuraxis.bridges.mcp_client.background import BackgroundLoop
from neuraxis.bridges.mcp_client.connection import Connection
from neuraxis.bridges.mcp_client.questions import RunningCall
from neuraxis.bridges.mcp_client.tools import Imported
from neuraxis.bridges.untrusted_text import hides_something, one_line
from neuraxis.execution.nested import ParentRun
from neuraxis.parsing.json_access import as_map
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.policy.secrets import SCHEME
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

CONTEXT = "the context"
"""The keyword of the `Context`; no parameter of a tool has a name with a space."""
MOST_PROGRESS = 500
"""Progress messages of one call that are shown."""
PROGRESS_SECONDS = 0.1
"""Seconds between two of them."""
_READS = Effects(kind="read", destructive=False, open_world=True, declared=True)
_OBJECT = "object"


def plugin_commands(
    plugin: PluginSpec,
    imported: Imported,
    connection: Connection,
    loop: BackgroundLoop,
) -> dict[str, Command]:
    """Return the commands of a plugin by name, its tools first."""
    own = {tool.spec.name: tool.name for tool in imported.tools}
    found: dict[str, Command] = {}
    for spec in plugin.commands:
        if spec.name in own:
            run = _tool_runner(own[spec.name], connection, loop)
        else:
            name = spec.name  # `mcp_` stands before it where a tool has the name
            method = name if name in _METHODS else name.removeprefix("mcp_")
            run = _runner(_METHODS[method], connection, loop)
        found[spec.name] = Command(
            plugin=plugin, spec=spec, run=run, is_async=True, context_name=CONTEXT
        )
    return found


def extra_specs(plugin: str, capabilities: Any, taken: set[str]) -> list[CommandSpec]:
    """Return the specs of the commands for resources and prompts.

    Args:
        plugin: its name.
        capabilities: the server's.
        taken: the names of its tools, which come first.
    """
    wanted: list[str] = []
    if capabilities.resources is not None:
        wanted += ["list_resources", "read_resource"]
    if capabilities.prompts is not None:
        wanted += ["list_prompts", "get_prompt"]
    specs: list[CommandSpec] = []
    for method in wanted:
        name = method if method not in taken else f"mcp_{method}"
        described, properties, required = _DESCRIBED[method]
        specs.append(
            CommandSpec(
                name=name,
                description=described,
                parameters={
                    "type": _OBJECT,
                    "properties": properties,
                    "required": required,
                    "additionalProperties": False,
                },
                effects=_READS,
                tool_name=f"{plugin}.{name}",
            )
        )
    return specs


# --- running -----------------------------------------------------------------------


def _tool_runner(
    name: str, connection: Connection, loop: BackgroundLoop
) -> Callable[..., Awaitable[Any]]:
    async def work(
        client: Client, arguments: dict[str, Json], progress: Any
    ) -> Mapping[str, Json]:
        result = await client.call_tool(name, arguments, progress_callback=progress)
        return result.model_dump(by_alias=True, mode="json", exclude_unset=True)

    async def run(**given: Any) -> Any:
        context: Context = given.pop(CONTEXT)
        answer = await _asked(work, given, context, connection, loop, tool=name)
        if connection.refused.get(name):
            context.warn("the server changed this command while it ran")
        return _checked(content.result_value(answer), context)

    return run


_Work = Callable[[Client, dict[str, Json], Any], Awaitable[Mapping[str, Json]]]


async def _asked(
    work: _Work,
    arguments: dict[str, Json],
    context: Context,
    connection: Connection,
    loop: BackgroundLoop,
    *,
    tool: str = "",
) -> Mapping[str, Json]:
    """What the server answers; it is asked in the background loop."""
    _scrub_later(context, connection)
    call = RunningCall(connection.config.name, context.outer)
    progress = _progress(context)
    updated: set[str] = set()

    async def there() -> Mapping[str, Json]:
        connection.running.append(call)
        if work is _read_resource:
            connection.watch(arguments["uri"])
        try:
            return await connection.ask(
                lambda client: work(client, arguments, progress), tool=tool
            )
        finally:
            connection.running.remove(call)
            updated.update(connection.updated)
            connection.updated.clear()

    try:
        answer = await asyncio.wrap_future(loop.submit(there()))
    finally:
        if call.refused:
            context.warn(
                f"the server asked {call.asked} questions; {call.refused} were refused"
            )
    for uri in sorted(updated):
        context.warn(f"the resource {uri} changed since it was read; read it again")
    return answer


def _scrub_later(context: Context, connection: Connection) -> None:
    """Register the server's secrets, so that answers are scrubbed of them."""
    config, outer = connection.config, context.outer
    named = [*config.env.values(), *config.headers.values()]
    if isinstance(outer, ParentRun) and any(SCHEME in text for text in named):
        for text in named:
            _, found, rest = text.partition(SCHEME)
            if found:
                outer.runtime.secrets.value(rest.split()[0])


def _progress(context: Context) -> Callable[..., Awaitable[None]]:
    """What passes progress on to the person: a bounded number of messages."""
    loop = asyncio.get_running_loop()
    state = {"shown": 0, "at": 0.0}

    async def hear(done: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if state["shown"] >= MOST_PROGRESS or now - state["at"] < PROGRESS_SECONDS:
            return
        state["shown"] += 1
        state["at"] = now
        part = min(max(done / total, 0.0), 1.0) if total else None
        text = one_line(message or f"{done:g}", 200)
        try:
            loop.call_soon_threadsafe(context.progress, text, part)
        except RuntimeError:
            return  # the run has ended

    return hear


def _checked(value: Any, context: Context) -> Any:
    """Return the value; warn the model of invisible characters in it."""
    waiting: list[Any] = [value]
    seen = 0
    while waiting and seen < 1_000:
        seen += 1
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)
        elif isinstance(item, str) and hides_something(item[:100_000]):
            context.warn("the answer holds escape codes or invisible characters")
            break
    return value


# --- resources and prompts ----------------------------------------------------------


def _runner(
    method: tuple[_Work, Callable[[Mapping[str, Json]], Any]],
    connection: Connection,
    loop: BackgroundLoop,
) -> Callable[..., Awaitable[Any]]:
    work, value_of = method

    async def run(**given: Any) -> Any:
        context: Context = given.pop(CONTEXT)
        answer = await _asked(work, given, context, connection, loop)
        return _checked(value_of(answer), context)

    return run


def _dumped(result: Any) -> dict[str, Json]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def _list_resources(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    cursor = arguments.get("cursor")
    listed = _dumped(await client.list_resources(cursor=cursor))
    if cursor is None:
        templates = _dumped(await client.list_resource_templates())
        listed["resourceTemplates"] = templates.get("resourceTemplates", [])
    return listed


async def _read_resource(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    return _dumped(await client.read_resource(arguments["uri"]))


async def _list_prompts(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    return _dumped(await client.list_prompts(cursor=arguments.get("cursor")))


async def _get_prompt(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    given = {str(k): str(v) for k, v in as_map(arguments.get("arguments")).items()}
    return _dumped(await client.get_prompt(arguments["name"], given))


def _listing(result: Mapping[str, Json]) -> Json:
    kept = ("resources", "resourceTemplates", "prompts", "nextCursor")
    return {key: result[key] for key in kept if result.get(key)}


_METHODS: Mapping[str, tuple[_Work, Callable[[Mapping[str, Json]], Any]]] = {
    "list_resources": (_list_resources, _listing),
    "read_resource": (_read_resource, content.resource_value),
    "list_prompts": (_list_prompts, _listing),
    "get_prompt": (_get_prompt, content.prompt_value),
}
_CURSOR: dict[str, Json] = {
    "cursor": {
        "type": "string",
        "description": "The nextCursor of the page before.",
    }
}
_DESCRIBED: Mapping[str, tuple[str, dict[str, Json], list[str]]] = {
    "list_resources": ("List the documents that the server offers.", _CURSOR, []),
    "read_resource": (
        "Read one document of the server: text, or an object for other commands.",
        {
            "uri": {
                "type": "string",
                "description": "As it is listed, or as a link in an answer names it.",
                "x-sends-out": True,
            }
        },
        ["uri"],
    ),
    "list_prompts": ("List the prepared prompts of the server.", _CURSOR, []),
    "get_prompt": (
        "Fill in one prepared prompt of the server.",
        {
            "name": {"type": "string", "description": "As it is listed."},
            "arguments": {
                "type": "object",
                "description": "Its arguments, each a text.",
                "additionalProperties": {"type": "string"},
                "x-sends-out": True,
            },
        },
        ["name"],
    ),
}
