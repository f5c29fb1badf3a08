"""One connection to an MCP server; it is reopened when it breaks.

Everything here runs in the source's background loop. The server's tools are compared
with the accepted ones: a changed command is refused, a new one is only reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp import Client, MCPError
from pydantic import BaseModel

from neuraxis import __version__, call_errors
from neuraxis.bridges.mcp_client import auth, questions
from neuraxis.bridges.mcp_client.config import ServerConfig
from neuraxis.bridges.mcp_client.guarded_http import advice, http, with_status
from neuraxis.bridges.mcp_client.tools import definition_digest
from neuraxis.bridges.mcp_client.transport import Inbox, is_named, stdio, watched
from neuraxis.bridges.untrusted_text import one_line
from neuraxis.errors import CommandError, NeuraxisError
from neuraxis.formatting import in_seconds
from neuraxis.messages import Message, Prompt
from neuraxis.models import Model, complete
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.policy.secrets import SECRET, Secrets

T = TypeVar("T")
MOST_PAGES = 100
"""Maximum pages of a server's list."""
MOST_WATCHED = 100
"""Maximum resources whose changes a server is asked to report."""
SIGN_IN_SECONDS = 300.0
RETRY_SECONDS = (0.0, 1.0, 5.0, 30.0)
"""Seconds before the next attempt to connect, by previous failures."""
_log = logging.getLogger(__name__)


class ServerFailed(NeuraxisError):
    """Error: the server could not be reached; says why."""


class Asking:
    """Functions that answer a server's requests."""

    def __init__(
        self,
        answer: questions.AnswerQuestion | None = None,
        sampling: Model | None = None,
        on_sign_in: auth.SignIn | None = None,
    ) -> None:
        self.answer = answer
        self.sampling = sampling
        self.on_sign_in = on_sign_in


class Connection:
    """Connection to a server, open or not."""

    def __init__(self, config: ServerConfig, workspace: Path, asking: Asking) -> None:
        self.config = config
        self.definitions: list[Any] = []
        """The tools as first listed."""
        self.refused: dict[str, str] = {}
        """Differences of tools that changed since, by the server's tool name."""
        self.running: list[questions.RunningCall] = []
        self.updated: set[str] = set()
        """Resources that the server reported as changed since they were read."""
        self._workspace = workspace
        self._asking = asking
        self._client: Client | None = None
        self._inbox = Inbox()
        self._holder: asyncio.Task[None] | None = None
        self._close: asyncio.Event | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._failures = 0
        self._tried_at = 0.0
        self._reason = ""
        self._relisting: asyncio.Task[bool] | None = None
        self._watched: dict[str, asyncio.Task[None]] = {}

    @property
    def _seconds(self) -> float:
        """Seconds to connect; a user who signs in needs more."""
        by_person = self.config.oauth is not None and self._asking.on_sign_in
        return max(self.config.seconds, SIGN_IN_SECONDS if by_person else 0.0)

    # --- opening and closing -----------------------------------------------------

    async def client(self) -> Client:
        """Return the connected client.

        Raises:
            ServerFailed: it cannot be reached, or failed a moment ago.
        """
        async with self._opening:
            if self._closed:
                raise ServerFailed(f"{self.config.name}: closed with its session")
            if self._client is not None:
                return self._client
            wait = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
            if time.monotonic() - self._tried_at < wait:
                raise ServerFailed(self._reason)
            self._tried_at = time.monotonic()
            opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
            self._close = asyncio.Event()
            self._holder = asyncio.create_task(self._hold(opened, self._close))
            try:
                async with asyncio.timeout(self._seconds):
                    client = await asyncio.shield(opened)
            except asyncio.CancelledError:
                self._close.set()
                self._holder.cancel()
                raise
            except TimeoutError:
                self._close.set()
                self._holder.cancel()
                reason = f"no answer within {in_seconds(self._seconds)}"
                raise self._failed(reason) from None
            except Exception as error:  # noqa: BLE001 - a server may cause any
                raise self._failed(reason_of(error)) from None
            self._failures = 0
            # perhaps from another process
            self._inbox.changes += bool(self.definitions)
            return client

    def _failed(self, reason: str) -> ServerFailed:
        self._failures += 1
        words = self._inbox.fault or self._inbox.last_words
        message = (
            f"{reason}; it said: {words}" if words and words not in reason else reason
        )
        has_key = bool(self.config.headers or self.config.oauth)
        message = with_status(message, self._inbox) + advice(
            self._inbox, has_key=has_key
        )
        self._reason = f"{self.config.name} ({self.config.place}): {message}"
        return ServerFailed(self._reason)

    async def _hold(self, opened: asyncio.Future[Client], close: asyncio.Event) -> None:
        """Hold the connection open in one task, as its cancel scopes need."""
        inbox = self._inbox = Inbox()
        try:
            async with self._new_client(inbox) as client:
                if opened.done():
                    return
                self._client = client
                opened.set_result(client)
                watching = asyncio.create_task(self._listen(client))
                waiters: set[asyncio.Task[Any]] = {
                    asyncio.create_task(close.wait()),
                    asyncio.create_task(inbox.ended.wait()),
                }
                try:
                    await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._client = None
                    tasks = (*waiters, watching, *self._watched.values())
                    self._watched.clear()
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - a server may cause any
            if opened.done():
                _log.debug("%s: %s", self.config.name, reason_of(error))
            else:
                opened.set_exception(ServerFailed(reason_of(error)))
                opened.exception()  # nobody may be waiting for it any more
        finally:
            if not opened.done():
                opened.cancel()
            if self._inbox is inbox:
                self._client = None

    def _new_client(self, inbox: Inbox) -> Client:
        config, secrets = self.config, Secrets()

        def filled(text: str) -> str:
            return SECRET.sub(lambda found: secrets.value(found[1]), text)

        if config.url:
            inner = watched(
                http(
                    config.url,
                    {name: filled(value) for name, value in config.headers.items()},
                    auth.oauth(config, filled, self._asking.on_sign_in),
                    inbox,
                ),
                inbox,
            )
        else:
            inner = stdio(
                config.command,
                inbox,
                env={name: filled(value) for name, value in config.env.items()},
                cwd=config.cwd,
            )
        return Client(
            inner,
            client_info=types.Implementation(name="neuraxis", version=__version__),
            elicitation_callback=self._elicitation,
            sampling_callback=None if self._asking.sampling is None else self._sampling,
            list_roots_callback=self._roots,
            message_handler=self._message,
            cache=None,
        )

    async def close(self) -> None:
        """Close the connection; the server's process ends."""
        self._closed = True
        if self._close is not None:
            self._close.set()
        if self._holder is not None:
            _, late = await asyncio.wait({self._holder}, timeout=10)
            for task in late:
                task.cancel()

    # --- asking the server -------------------------------------------------------

    async def ask(self, work: Callable[[Client], Awaitable[T]], *, tool: str = "") -> T:
        """Return the server's answer.

        Args:
            work: sends the request.
            tool: the called tool, which must be unchanged since it was accepted.

        Raises:
            CommandError: it refused, or the connection broke; the text is for the
                model.
        """
        try:
            client = await self.client()
        except ServerFailed as error:
            raise CommandError(f"the MCP server cannot be reached: {error}") from None
        if tool:
            await self._check(tool)
        inbox = self._inbox
        try:
            return await work(client)
        except MCPError as error:
            if inbox.ended.is_set():
                reason = inbox.fault or "the connection was lost"
                raise CommandError(
                    f"the MCP server {self.config.name} broke off: {reason}; it is not "
                    "known whether the command did anything"
                ) from None
            message = one_line(error.error.message, 2_000)
            raise CommandError(with_status(message, inbox)) from None
        except (OSError, RuntimeError, ValueError, TimeoutError) as error:
            raise CommandError(
                f"the MCP server {self.config.name} gave no valid answer: "
                f"{reason_of(error)}"
            ) from None

    async def list_tools(self) -> list[Any]:
        """Return the definitions of all tools, as the server wrote them.

        Raises:
            ServerFailed: it cannot be reached.
        """
        client = await self.client()
        if client.server_capabilities.tools is None:
            return []
        try:
            async with asyncio.timeout(self.config.seconds):
                tools = await self._list(client)
        except TimeoutError:
            raise self._failed("its tools were not listed in time") from None
        self.definitions = self.definitions or tools
        return tools

    async def _check(self, tool: str) -> None:
        """Refuse a changed tool; read a changed list first.

        Raises:
            CommandError: the tool changed, or the list cannot be read.
        """
        full_name = f"{self.config.name}.{one_line(tool, 80)}"
        inbox = self._inbox
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.seconds):
                while inbox.changes_read < inbox.changes:
                    if not await asyncio.shield(self._relist()):
                        break
        if inbox.changes_read < inbox.changes:
            raise CommandError(call_errors.definitions_unread(full_name))
        if how := self.refused.get(tool):
            raise CommandError(call_errors.definition_changed(full_name, how))

    async def _list(self, client: Client) -> list[Any]:
        definitions: list[Any] = []
        inbox, changes = self._inbox, self._inbox.changes
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page: list[Any] = []
            inbox.listing = page
            try:
                result = await client.list_tools(cursor=cursor)
            except (MCPError, RuntimeError, ValueError) as error:
                reason = f"its tools cannot be listed: {reason_of(error)}"
                raise self._failed(reason) from None
            finally:
                inbox.listing = None
            names = {tool.name for tool in result.tools}
            definitions += [
                tool for tool in page if not is_named(tool) or tool["name"] in names
            ]
            cursor = result.next_cursor
            if not cursor:
                break
        inbox.changes_read = changes
        return definitions

    async def _listen(self, client: Client) -> None:
        """Listen for changed lists, if the protocol has a stream for them."""
        tools = client.server_capabilities.tools
        if client.protocol_version < "2026" or not (tools and tools.list_changed):
            return
        with contextlib.suppress(Exception):
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._relist()

    async def _message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist()
        elif isinstance(message, types.ResourceUpdatedNotification):
            self._changed(message.params.uri)

    def watch(self, uri: str) -> None:
        """Subscribe to changes of a resource that is read."""
        self.updated.discard(uri)
        client = self._client
        resources = client and client.server_capabilities.resources
        if client is None or not (resources and resources.subscribe):
            return
        if uri not in self._watched and len(self._watched) < MOST_WATCHED:
            self._watched[uri] = asyncio.create_task(self._watch(client, uri))

    async def _watch(self, client: Client, uri: str) -> None:
        with contextlib.suppress(Exception):
            if client.protocol_version < "2026":
                params = types.SubscribeRequestParams(uri=uri)
                request = types.SubscribeRequest(params=params)
                await client.session.send_request(request, types.EmptyResult)
                return
            async with client.listen(resource_subscriptions=[uri]) as events:
                async for _ in events:
                    self._changed(uri)

    def _changed(self, uri: str) -> None:
        if uri in self._watched:  # other URIs from the server are not repeated
            self.updated.add(uri)

    def _relist(self) -> asyncio.Task[bool]:
        if self._relisting is None or self._relisting.done():
            self._relisting = asyncio.create_task(self._relisted())
        return self._relisting

    async def _relisted(self) -> bool:
        """List and compare the tools again; return whether it worked."""
        await asyncio.sleep(0.05)  # servers announce many changes one by one
        try:
            async with asyncio.timeout(self.config.seconds):
                await self._compare()
        except Exception:  # noqa: BLE001 - a server may cause any
            return False
        return True

    async def _compare(self) -> None:
        """Refuse tools that differ from the accepted ones."""
        if not self.definitions:
            return
        if self._client is None:
            raise ServerFailed(f"{self.config.name}: not connected")
        before = {_name(tool): tool for tool in self.definitions}
        current = {_name(tool): tool for tool in await self._list(self._client)}
        self.refused = {
            name: how
            for name, tool in before.items()
            if (how := _difference(tool, current.get(name)))
        }
        for name, how in self.refused.items():
            tool_name = one_line(name, 80)
            _log.warning("%s.%s: %s; it is refused", self.config.name, tool_name, how)
        for name in sorted({*current} - {*before}):
            tool_name = one_line(name, 80)
            _log.warning("%s.%s: new; it is not offered", self.config.name, tool_name)

    # --- the server's requests ---------------------------------------------------

    async def _roots(self, context: Any) -> types.ListRootsResult:
        uri: Any = self._workspace.as_uri()
        root = types.Root(uri=uri, name="workspace")
        return types.ListRootsResult(roots=[root])

    async def _elicitation(self, context: Any, params: Any) -> types.ElicitResult:
        is_url = isinstance(params, types.ElicitRequestURLParams)
        schema = {} if is_url else _plain(params.requested_schema)
        answer = await self._put(
            questions.Question(
                server=self.config.name,
                kind="url" if is_url else "form",
                message=questions.message_text(params.message),
                schema=schema,
                url=one_line(params.url, 2_000) if is_url else "",
            )
        )
        if answer is None:
            return types.ElicitResult(action="decline")
        if is_url:
            return types.ElicitResult(action="accept")
        content = questions.form_content(answer, schema)
        if content is None:
            return types.ElicitResult(action="cancel")
        return types.ElicitResult(action="accept", content=content)

    async def _sampling(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        model, messages = self._asking.sampling, _sampling_messages(params)
        text = "\n".join(message.content for message in messages)
        answer = None
        if model is not None and not params.tools:
            answer = await self._put(
                questions.Question(
                    server=self.config.name,
                    kind="sampling",
                    message=questions.message_text(text),
                )
            )
        if answer is None or model is None:
            return types.ErrorData(code=-1, message="the user refused")
        done = await complete(model, Prompt(messages=tuple(messages)))
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=done.text),
            model=model.name,
            stop_reason="endTurn",
        )

    async def _put(self, question: questions.Question) -> Any:
        if not self.running:
            return None  # a server may ask only while one of its commands runs
        return await self.running[-1].allowed(question, self._asking.answer)


def _plain(schema: Any) -> dict[str, Any]:
    if isinstance(schema, BaseModel):
        return schema.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return dict(schema)


def _sampling_messages(params: types.CreateMessageRequestParams) -> list[Message]:
    messages: list[Message] = []
    if params.system_prompt:
        messages.append(Message(role="system", content=params.system_prompt))
    for message in params.messages:
        content: Any = message.content
        blocks: list[Any] = as_list(content) or [content]
        texts = [str(getattr(block, "text", "")) for block in blocks]
        role = "user" if message.role == "user" else "assistant"
        messages.append(Message(role=role, content="\n".join(texts)))
    return messages


def _name(tool: Any) -> str:
    return str(as_map(tool).get("name", ""))


def _difference(before: Any, current: Any) -> str:
    """Return how a definition differs from the accepted one; empty: not."""
    if current is None:
        return "the server no longer offers it"
    if definition_digest(before) == definition_digest(current):
        return ""
    keys = [key for key in {**before, **current} if before.get(key) != current.get(key)]
    keys_text = one_line(", ".join(sorted(keys)), 200)
    return f"its {keys_text} changed since it was accepted"


def reason_of(error: BaseException) -> str:
    """Return the first cause of a failure, on one line."""
    group: Any = error
    while isinstance(group, BaseExceptionGroup):
        group = cast("Any", group).exceptions[0]
    error = cast("BaseException", group)
    if isinstance(error, FileNotFoundError):
        return f"there is no program {error.filename!r}"
    if isinstance(error, MCPError):
        return one_line(error.error.message) or "the server refused"
    return one_line(str(error)) or type(error).__name__
