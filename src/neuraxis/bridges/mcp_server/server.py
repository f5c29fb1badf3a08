"""The MCP server: a session's commands as tools, its assets as resources.

Every call is handled like a model's: checked against its schema, authorised by the
policy, stored in the journal.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from msgspec.structs import replace

from neuraxis import __version__
from neuraxis.assets.store import ReferenceLost
from neuraxis.bridges.mcp_server import values
from neuraxis.bridges.mcp_server.approvals import NeedsYes, Waiting
from neuraxis.bridges.mcp_server.client import McpClient, OpenCalls
from neuraxis.bridges.mcp_server.notices import Logging, Progress
from neuraxis.bridges.mcp_server.offers import (
    Address,
    addresses,
    offered_prompts,
    prompt,
    prompt_result,
)
from neuraxis.bridges.mcp_server.tools import (
    BARE,
    PLAN_TOOL,
    Offered,
    offered_tools,
    plan_tool,
)
from neuraxis.errors import ConfigError
from neuraxis.messages import Call, Result
from neuraxis.planning.load import read_plan
from neuraxis.session.session import Session
from neuraxis.session.watch import Watch
from neuraxis.specs import Json

INSTRUCTIONS = (
    "Each tool is checked before it runs. Large answers are resources: hand their "
    'reference {"asset_id": "..."} to a tool that takes one, or read them. '
    f"{PLAN_TOOL} runs several tools at once, which pass results on by reference."
)
_COMPLETIONS = 100
"""Maximum completions of one answer (the protocol's limit)."""
_Context = ServerRequestContext[Any, Any]
_Answer = TypeVar("_Answer")


class McpService:
    """Answers the requests of MCP clients, with one session.

    Args:
        session: the session whose commands are offered.
        prompts: patterns of `plugin.command` that are prompts as well; they may read,
            and have no other effect.
        resources: URIs, or templates with `{parameter}`, and the `plugin.command` that
            reads each.
    """

    def __init__(
        self,
        session: Session,
        *,
        prompts: Collection[str] = (),
        resources: Mapping[str, str] | None = None,
    ) -> None:
        self._session = session
        self._offered = offered_tools(session.registry)
        self._prompts = offered_prompts(self._offered, prompts)
        self._addresses = addresses(self._offered, resources or {})
        self._waiting = Waiting()
        self._open = OpenCalls()
        self._logging = Logging()
        # calls with an effect run one at a time: the user is asked about one
        self._one_by_one = asyncio.Lock()

    def server(self) -> Server[Any]:
        """Return the SDK's server with our handlers."""
        server: Server[Any] = Server(
            "neuraxis",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._subscribe,
            on_completion=self._complete,
        )
        # passed as an argument, the SDK would warn that 2026-07-28 removed it
        server.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, self._set_level
        )
        return server

    async def _work(
        self,
        context: _Context,
        params: types.InputResponseRequestParams,
        work: Callable[[McpClient, Watch], Awaitable[_Answer]],
    ) -> _Answer | types.InputRequiredResult:
        """Answer a request with its calls' results, or with their questions."""
        token = params.request_state
        is_known = token is None or self._waiting.holds(token)
        if not is_known and not self._open.holds(context.method, token or ""):
            raise MCPError(
                types.INVALID_PARAMS,
                "The requestState belongs to no open request; call again without it",
            )

        async def begun(client: McpClient) -> _Answer | types.InputRequiredResult:
            digest, wider = self._waiting.answered(params, client)
            if digest:
                self._session.approvals.grant(digest)
            if wider:
                self._session.approvals.offered.add(wider)
            progress = Progress(client, self._logging)
            try:
                return await work(client, progress.hear)
            except NeedsYes as needs:
                return self._waiting.question(needs.asked)
            finally:
                if digest:  # the approval was for this call only
                    self._session.approvals.take(digest)
                await progress.close()

        return await self._open.run(context, params, begun)

    async def _list_tools(self, _: _Context, __: Any) -> types.ListToolsResult:
        tools = [offered.tool for offered in self._offered.values()]
        if tools:
            tools.append(plan_tool(list(self._offered)))
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        offered = self._offered.get(params.name)
        if offered is None and params.name != PLAN_TOOL:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        arguments = params.arguments or {}

        async def work(client: McpClient, watch: Watch) -> types.CallToolResult:
            if offered is None:
                client.runs_plan = True
                return await self._plan(arguments, watch)
            result = await self._run(offered, arguments, watch, client)
            return values.call_result(result, structured=offered.structured)

        return await self._work(context, params, work)

    async def _run(
        self,
        offered: Offered,
        arguments: Mapping[str, Json],
        watch: Watch,
        client: McpClient,
    ) -> Result:
        command = offered.command
        read = values.with_references(dict(arguments), self._session.assets)
        arguments = cast("dict[str, Json]", read)
        call = Call(
            id=self._session.ids.new(),
            plugin=command.plugin.name,
            command=command.spec.name,
            arguments=arguments.get(BARE) if command.bare else dict(arguments),
        )
        if command.spec.effects.readonly:
            result = await self._session.call(call, watch)
        else:
            async with self._one_by_one:
                result = await self._session.call(call, watch)
        self._session.origins.shown([call.id])  # the client's model is shown it
        if result.error is not None and client.is_modern:
            if client.missing is not None:
                raise client.missing
            if client.waiting is not None:
                raise NeedsYes(client.waiting)
        return result

    async def _plan(
        self, arguments: Mapping[str, Json], watch: Watch
    ) -> types.CallToolResult:
        try:
            written = {"version": 1, **arguments}
            plan = read_plan(json.dumps(written), "the plan")
        except ConfigError as error:
            return _failed(str(error))
        calls: list[Call] = []
        for call in plan.calls:
            call = replace(call, id=self._session.ids.new())
            if (offered := self._offered.get(call.command)) is not None:
                plugin, spec = offered.command.plugin, offered.command.spec
                call = replace(call, plugin=plugin.name, command=spec.name)
            calls.append(call)
        async with self._one_by_one:
            results = await self._session.call_all(calls, watch, on_error=plan.on_error)
        self._session.origins.shown([call.id for call in calls])
        content: list[types.ContentBlock] = []
        entries: list[Json] = []
        for call, result in zip(plan.calls, results, strict=True):
            step = values.call_result(result, structured=False)
            content.append(types.TextContent(text=f"{call.command}: {result.status}"))
            content += step.content
            entries.append(
                {
                    "tool": call.command,
                    "status": result.status,
                    "result": step.structured_content
                    if result.stored
                    else values.as_json(result),
                    "resource": values.asset_uri(result.call.id)
                    if result.stored
                    else None,
                }
            )
        return types.CallToolResult(
            content=content,
            structured_content={"steps": entries},
            is_error=any(result.status != "done" for result in results),
        )

    # --- prompts and resources -----------------------------------------------------

    async def _list_prompts(self, _: _Context, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[prompt(name, offered) for name, offered in self._prompts.items()]
        )

    async def _get_prompt(
        self, context: _Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        offered = self._prompts.get(params.name)
        if offered is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        arguments = params.arguments or {}

        async def work(client: McpClient, watch: Watch) -> types.GetPromptResult:
            result = await self._run(offered, arguments, watch, client)
            return prompt_result(offered, _value(result))

        return await self._work(context, params, work)

    async def _list_resources(self, _: _Context, __: Any) -> types.ListResourcesResult:
        assets = [
            types.Resource(
                uri=values.asset_uri(str(each["asset_id"])),
                name=str(each["asset_id"]),
                description=f"{each['is']}, from {each['from']}, {each['size']}",
            )
            for each in self._session.assets.listing()
        ]
        return types.ListResourcesResult(
            resources=assets
            + [
                types.Resource(
                    uri=one.uri,
                    name=one.name,
                    description=one.offered.command.spec.description,
                )
                for one in self._addresses
                if not one.is_template
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
        return types.ListResourceTemplatesResult(
            resource_templates=[template]
            + [
                types.ResourceTemplate(
                    uri_template=one.uri,
                    name=one.name,
                    description=one.offered.command.spec.description,
                )
                for one in self._addresses
                if one.is_template
            ]
        )

    async def _subscribe(
        self,
        _: _Context,
        params: types.SubscribeRequestParams | types.UnsubscribeRequestParams,
    ) -> types.EmptyResult:
        # assets never change and commands do not report changes: nothing is sent
        if self._asset(params.uri) is None and self._address(params.uri) is None:
            raise _no_resource(params.uri)
        return types.EmptyResult()

    async def _set_level(
        self, context: _Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._logging.set_level(context, params.level)
        return types.EmptyResult()

    async def _complete(
        self, _: _Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        prefix = params.argument.value
        ids = [one for one in self._session.assets.ids if one.startswith(prefix)]
        is_asset = getattr(params.ref, "uri", "").startswith(values.SCHEME)
        found = ids if is_asset else []
        return types.CompleteResult(
            completion=types.Completion(
                values=found[:_COMPLETIONS],
                total=len(found),
                has_more=len(found) > _COMPLETIONS,
            )
        )

    async def _read_resource(
        self, context: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        uri = params.uri
        found = self._address(uri)
        if found is not None:
            address, arguments = found

            async def work(client: McpClient, watch: Watch) -> types.ReadResourceResult:
                result = await self._run(address.offered, arguments, watch, client)
                return _contents(uri, _value(result))

            return await self._work(context, params, work)
        asset = self._asset(uri)
        if asset is None:
            raise _no_resource(uri)
        try:
            content: Any = self._session.assets.root(asset)["content"]
        except ReferenceLost as error:
            raise MCPError(types.INVALID_PARAMS, f"{uri}: {error}") from None
        if values.is_answer(content):
            content = content["response"]
        return _contents(uri, content)

    def _asset(self, uri: str) -> str | None:
        asset = values.asset_id(uri)
        return asset if asset in self._session.assets.ids else None

    def _address(self, uri: str) -> tuple[Address, dict[str, str]] | None:
        for one in self._addresses:
            arguments = one.arguments(uri)
            if arguments is not None:
                return one, arguments
        return None


def _contents(uri: str, value: Any) -> types.ReadResourceResult:
    try:
        return types.ReadResourceResult(contents=[values.resource_contents(uri, value)])
    except values.CannotBeRead as error:
        raise MCPError(types.INVALID_PARAMS, f"{uri}: {error}") from None


def _no_resource(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})


def _value(result: Result) -> Any:
    """Return the answer of a call that is not a tool call."""
    if result.error is not None:
        raise MCPError(types.INVALID_PARAMS, result.error.message)
    return result.value


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
