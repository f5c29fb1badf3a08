"""Commands of an MCP server: its tools, resources and prompts."""

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
from neuraxis.bridges.mcp_client.transport import LEFT_OUT, MOST_PARTS
from neuraxis.bridges.untrusted_text import hides_something, one_line
from neuraxis.execution.nested import ParentRun
from neuraxis.parsing.json_access import as_map
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.policy.secrets import SCHEME
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

CONTEXT = "the context"
"""Keyword of the `Context`; no tool parameter has a name with a space."""
MOST_PROGRESS = 500
"""Maximum progress messages shown per call."""
PROGRESS_SECONDS = 0.1
"""Minimum seconds between two progress messages."""
_READS = Effects(kind="read", destructive=False, open_world=True, declared=True)
_OBJECT = "object"


def plugin_commands(
    plugin: PluginSpec,
    imported: Imported,
    connection: Connection,
    loop: BackgroundLoop,
) -> dict[str, Command]:
    """Return the commands of a plugin by name, its tools first."""
    server_names = {tool.spec.name: tool.name for tool in imported.tools}
    commands: dict[str, Command] = {}
    for spec in plugin.commands:
        if spec.name in server_names:
            run = _tool_runner(server_names[spec.name], connection, loop)
        else:
            name = spec.name  # prefixed with `mcp_` if a tool has the name
            method = name if name in _METHODS else name.removeprefix("mcp_")
            run = _runner(_METHODS[method], connection, loop)
        commands[spec.name] = Command(
            plugin=plugin, spec=spec, run=run, is_async=True, context_name=CONTEXT
        )
    return commands


def extra_specs(plugin: str, capabilities: Any, taken: set[str]) -> list[CommandSpec]:
    """Return the specs of the commands for resources and prompts.

    Args:
        plugin: the plugin's name.
        capabilities: the server's capabilities.
        taken: the names of its tools, which have priority.
    """
    names: list[str] = []
    if capabilities.resources is not None:
        names += ["list_resources", "read_resource"]
    if capabilities.prompts is not None:
        names += ["list_prompts", "get_prompt"]
    specs: list[CommandSpec] = []
    for method in names:
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
        answer = await _call_server(work, given, context, connection, loop, tool=name)
        if connection.refused.get(name):
            context.warn("the server changed this command while it ran")
        return _checked(content.result_value(answer), context)

    return run


_Work = Callable[[Client, dict[str, Json], Any], Awaitable[Mapping[str, Json]]]


async def _call_server(
    work: _Work,
    arguments: dict[str, Json],
    context: Context,
    connection: Connection,
    loop: BackgroundLoop,
    *,
    tool: str = "",
) -> Mapping[str, Json]:
    """Return the server's answer to a request in the background loop."""
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
    left_out = as_map(answer.get("_meta")).get(LEFT_OUT)
    if isinstance(left_out, int):
        context.warn(
            f"the answer had too many parts: the first {MOST_PARTS:,} are here, "
            f"{left_out:,} were left out"
        )
    for uri in sorted(updated):
        context.warn(f"the resource {uri} changed since it was read; read it again")
    return answer


def _scrub_later(context: Context, connection: Connection) -> None:
    """Register the server's secrets, so that answers are scrubbed of them."""
    config, outer = connection.config, context.outer
    texts = [*config.env.values(), *config.headers.values()]
    if isinstance(outer, ParentRun) and any(SCHEME in text for text in texts):
        for text in texts:
            _, scheme, rest = text.partition(SCHEME)
            if scheme:
                outer.runtime.secrets.value(rest.split()[0])


def _progress(context: Context) -> Callable[..., Awaitable[None]]:
    """Return a function that reports progress: a bounded number of messages."""
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
    pending: list[Any] = [value]
    seen = 0
    while pending and seen < 1_000:
        seen += 1
        item = pending.pop()
        if isinstance(item, dict):
            pending += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            pending += cast("list[Any]", item)
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
        answer = await _call_server(work, given, context, connection, loop)
        return _checked(value_of(answer), context)

    return run


def _dumped(result: Any) -> dict[str, Json]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def _list_resources(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    cursor = arguments.get("cursor")
    page = _dumped(await client.list_resources(cursor=cursor))
    if cursor is None:
        templates = _dumped(await client.list_resource_templates())
        page["resourceTemplates"] = templates.get("resourceTemplates", [])
    return page


async def _read_resource(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    return _dumped(await client.read_resource(arguments["uri"]))


async def _list_prompts(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    return _dumped(await client.list_prompts(cursor=arguments.get("cursor")))


async def _get_prompt(client: Client, arguments: dict[str, Json], _: Any) -> Any:
    texts = {str(k): str(v) for k, v in as_map(arguments.get("arguments")).items()}
    return _dumped(await client.get_prompt(arguments["name"], texts))


def _listing(result: Mapping[str, Json]) -> Json:
    keys = ("resources", "resourceTemplates", "prompts", "nextCursor")
    return {key: result[key] for key in keys if result.get(key)}


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
