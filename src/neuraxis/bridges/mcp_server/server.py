"""The MCP server: a session's commands as tools, its assets as resources.

Every call goes the way of all calls: checked against its schema, decided by the policy,
stored in the journal. Both transports are served: stdio, and HTTP on loopback only.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, cast

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from neuraxis import __version__
from neuraxis.assets.store import ReferenceLost
from neuraxis.bridges.mcp_server import values
from neuraxis.bridges.mcp_server.approvals import CURRENT, Asker, Waiting
from neuraxis.bridges.mcp_server.tools import (
    BARE,
    PLAN_TOOL,
    Offered,
    offered_tools,
    plan_tool,
)
from neuraxis.errors import ConfigError
from neuraxis.events import CallProgress, Event
from neuraxis.messages import Call, Result
from neuraxis.planning.load import read_plan
from neuraxis.session.session import Session
from neuraxis.specs import Json

LOOPBACK = ("127.0.0.1", "::1", "localhost")
INSTRUCTIONS = (
    "Each tool is checked before it runs. Large answers are resources: hand their "
    'reference {"asset_id": "..."} to a tool that takes one, or read them. '
    f"{PLAN_TOOL} runs several tools at once, which pass results on by reference."
)
_Context = ServerRequestContext[Any, Any]


class McpService:
    """What answers the requests of MCP clients, on one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._offered = offered_tools(session.registry)
        self._numbers = count(1)
        self._waiting = Waiting()
        # calls with an effect, one at a time: a person is asked about one
        self._one_by_one = asyncio.Lock()

    def server(self) -> Server[Any]:
        """Return the SDK's server with our handlers."""
        return Server(
            "neuraxis",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_completion=self._complete,
        )

    async def _list_tools(self, _: _Context, __: Any) -> types.ListToolsResult:
        tools = [offered.tool for offered in self._offered.values()]
        if tools:
            tools.append(plan_tool(list(self._offered)))
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        asker = Asker(context)
        CURRENT.set(asker)
        digest = self._waiting.answered(params, asker)
        if digest:
            self._session.approvals.grant(digest)
        arguments = params.arguments or {}
        progress = _Progress(context)
        try:
            if params.name == PLAN_TOOL:
                return await self._plan(arguments, progress.hear)
            offered = self._offered.get(params.name)
            if offered is None:
                raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
            result = await self._run(offered, arguments, progress.hear)
        finally:
            if digest:  # the yes was for this call, and for none that comes later
                self._session.approvals.take(digest)
            await progress.close()
        if asker.waiting is not None and result.error is not None:
            return self._waiting.question(asker.waiting)
        return values.call_result(result, structured=offered.structured)

    async def _run(
        self, offered: Offered, arguments: Json, watch: Callable[[Event], None]
    ) -> Result:
        command = offered.command
        call = Call(
            id=f"r{next(self._numbers)}",
            plugin=command.plugin.name,
            command=command.spec.name,
            arguments=arguments.get(BARE) if command.bare else arguments,
        )
        if command.spec.effects.readonly:
            return await self._session.call(call, watch)
        async with self._one_by_one:
            return await self._session.call(call, watch)

    async def _plan(
        self, arguments: Mapping[str, Json], watch: Callable[[Event], None]
    ) -> types.CallToolResult:
        try:
            written = {"version": 1, **arguments}
            plan = read_plan(json.dumps(written), "the plan")
        except ConfigError as error:
            return _failed(str(error))
        number = next(self._numbers)
        names = {name: offered.command for name, offered in self._offered.items()}
        calls = [
            Call(
                id=f"r{number}.{index}",
                plugin=names[call.command].plugin.name
                if call.command in names
                else None,
                command=names[call.command].spec.name
                if call.command in names
                else call.command,
                arguments=call.arguments,
                name=call.name,
                for_each=call.for_each,
                max_items=call.max_items,
            )
            for index, call in enumerate(plan.calls, 1)
        ]
        async with self._one_by_one:
            results = await self._session.call_all(calls, watch, on_error=plan.on_error)
        content: list[types.ContentBlock] = []
        told: list[Json] = []
        for call, result in zip(plan.calls, results, strict=True):
            step = values.call_result(result, structured=False)
            content.append(types.TextContent(text=f"{call.command}: {result.status}"))
            content += step.content
            told.append(
                {
                    "tool": call.command,
                    "status": result.status,
                    "result": step.structured_content,
                    "resource": values.asset_uri(result.call.id)
                    if result.stored
                    else None,
                }
            )
        return types.CallToolResult(
            content=content,
            structured_content={"steps": told},
            is_error=any(result.status != "done" for result in results),
        )

    # --- resources ---------------------------------------------------------------

    async def _list_resources(self, _: _Context, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=values.asset_uri(str(each["asset_id"])),
                    name=str(each["asset_id"]),
                    description=f"{each['is']}, from {each['from']}, {each['size']}",
                )
                for each in self._session.assets.listing()
            ]
        )

    async def _list_templates(
        self, _: _Context, __: Any
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=values.SCHEME + "{asset_id}",
            name="asset",
            description="A large or complex answer of an earlier call.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _complete(
        self, _: _Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        begun = params.argument.value
        ids = [one for one in self._session.assets.ids if one.startswith(begun)]
        is_asset = getattr(params.ref, "uri", "").startswith(values.SCHEME)
        found = ids[:100] if is_asset else []
        return types.CompleteResult(
            completion=types.Completion(values=found, total=len(found), has_more=False)
        )

    async def _read_resource(
        self, _: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = params.uri
        asset = values.asset_id(uri)
        if asset is None or asset not in self._session.assets.ids:
            raise MCPError(
                types.INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri}
            )
        try:
            content: Any = self._session.assets.root(asset)["content"]
            if isinstance(content, dict) and set(cast("Any", content)) == {
                "command",
                "response",
            }:
                content = cast("Any", content)["response"]
            contents = values.resource_contents(uri, content)
        except (ReferenceLost, values.CannotBeRead) as error:
            raise MCPError(types.INVALID_PARAMS, f"{uri}: {error}") from None
        return types.ReadResourceResult(contents=[contents])


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


class _Progress:
    """Passes progress on to the client, in order."""

    def __init__(self, context: _Context) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[CallProgress | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def hear(self, event: Event) -> None:
        """Take an event of the session; it may come from another thread."""
        if isinstance(event, CallProgress):
            self._loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: CallProgress) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._send())
        self._queue.put_nowait(event)

    async def _send(self) -> None:
        number = 0
        while (event := await self._queue.get()) is not None:
            number += 1
            part = event.fraction
            done = float(number) if part is None else part * 100
            await self._context.session.report_progress(
                done, None if part is None else 100.0, event.message
            )

    async def close(self) -> None:
        """Send what is waiting."""
        await asyncio.sleep(0)  # what was heard in this loop is put by now
        if self._task is not None:
            self._queue.put_nowait(None)
            await asyncio.gather(self._task, return_exceptions=True)


async def serve_stdio(session: Session) -> None:
    """Serve one client over standard input and output, until it closes them."""
    server = McpService(session).server()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def http_app(session: Session, *, host: str = "127.0.0.1", token: str = "") -> Any:
    """Return an ASGI application that serves MCP at `/mcp`.

    Args:
        session: whose commands are offered.
        host: for the check of the Host header, against DNS rebinding.
        token: clients must send it as `Authorization: Bearer`; empty: none is asked.
    """
    app = McpService(session).server().streamable_http_app(host=host)
    if not token:
        return app
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, wanted):
                await send(
                    {"type": "http.response.start", "status": 401, "headers": []}
                )
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return guarded


async def serve_http(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve MCP over HTTP on loopback, until cancelled.

    Args:
        session: whose commands are offered.
        host: a loopback address.
        port: 0: a free one.
        token: as for `http_app`.
        started: is given the URL.

    Raises:
        ConfigError: the host is not loopback.
    """
    if host not in LOOPBACK:
        raise ConfigError(
            f"--host: expected one of {', '.join(LOOPBACK)}, got {host!r}"
        )
    import uvicorn  # the SDK's own server

    config = uvicorn.Config(
        http_app(session, host=host, token=token),
        host=host,
        port=port,
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        # uvicorn has no event for it
        while not server.started and not serving.done():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        if server.started:
            actual = server.servers[0].sockets[0].getsockname()[1]
            shown = f"[{host}]" if ":" in host else host
            started(f"http://{shown}:{actual}/mcp")
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
