"""Transports to MCP servers: stdio, and limits on messages.

A message over `MOST_MESSAGE` bytes, or a flood of notifications, ends the connection:
waiting calls fail with that reason, and the next call reconnects.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

from neuraxis.bridges.mcp_client.lines import NoId, message_of
from neuraxis.bridges.untrusted_text import one_line
from neuraxis.parsing.json_access import as_list, as_map

MOST_MESSAGE = 64 * 1024 * 1024
"""Maximum bytes of a message; a larger one ends the connection."""
MOST_NOTIFICATIONS = 20_000
"""Maximum notifications between two answers; more end the connection."""
MOST_PARTS = 10_000
"""Maximum content parts of an answer; the rest is left out, and the model is warned."""
LEFT_OUT = "neuraxis/left-out"
"""Key in an answer's `_meta` with the number of parts that were left out."""
MOST_STDERR = 4_000
"""Maximum bytes stored of a server's standard error, the last ones."""
_GRACE_SECONDS = 2.0
_Streams = tuple[Any, Any]
"""Streams from which the SDK reads, and to which it writes, messages."""


class Inbox:
    """State of the messages of one connection."""

    def __init__(self) -> None:
        self.fault = ""
        """Why the connection was ended here."""
        self.stderr = b""
        self.status = 0
        """HTTP status of the last answer to a message, if it was an error."""
        self.listing: list[Any] | None = None
        """The tool definitions as the server wrote them, while they are requested."""
        self.changes = 0
        """Number of tool changes that the server announced."""
        self.changes_read = 0
        """Number of those that the last list of tools includes."""
        self.ended = anyio.Event()
        self._notifications = 0

    def look(self, message: SessionMessage) -> bool:
        """Check one message and collect tool definitions; False: end here."""
        inner: Any = message.message
        if isinstance(inner, JSONRPCNotification):
            self._notifications += 1
            # recorded here, in message order: an answer after it arrives later
            if inner.method == "notifications/tools/list_changed":
                self.changes += 1
            if self._notifications > MOST_NOTIFICATIONS:
                self.fault = f"it sent over {MOST_NOTIFICATIONS} notifications"
                return False
            return True
        self._notifications = 0
        if isinstance(inner, JSONRPCResponse):
            _limit_parts(inner.result)
        if isinstance(inner, JSONRPCResponse) and self.listing is not None:
            tools = as_list(inner.result.get("tools"))
            self.listing += tools
            inner.result["tools"] = [_for_sdk(each) for each in tools if is_named(each)]
        return True

    @property
    def last_words(self) -> str:
        """Return the end of the server's standard error, safe to show."""
        return one_line(self.stderr.decode(errors="replace")[-600:])


def _limit_parts(result: dict[str, Any]) -> None:
    """Leave out an answer's parts beyond the limit."""
    left_out = 0
    for key in ("content", "contents", "messages"):  # of tools, resources, prompts
        parts = as_list(result.get(key))
        if len(parts) > MOST_PARTS:
            left_out += len(parts) - MOST_PARTS
            result[key] = parts[:MOST_PARTS]
    if left_out:
        result["_meta"] = {**as_map(result.get("_meta")), LEFT_OUT: left_out}


def is_named(tool: Any) -> bool:
    """Return whether a tool's definition has a name."""
    return isinstance(as_map(tool).get("name"), str)


def _for_sdk(tool: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a definition that the SDK can read."""
    properties = as_map(as_map(tool.get("inputSchema")).get("properties"))
    return {
        "name": tool["name"],
        "inputSchema": {
            "type": "object",
            "properties": {k: v for k, v in properties.items() if isinstance(v, dict)},
        },
    }


@contextlib.asynccontextmanager
async def watched(transport: Any, inbox: Inbox) -> AsyncGenerator[_Streams]:
    """Pass on a transport's messages while they are within limits."""
    async with transport as (incoming, outgoing):
        send, receive = anyio.create_memory_object_stream[Any](0)

        async def forward() -> None:
            try:
                async with send:
                    async for message in incoming:
                        if isinstance(message, SessionMessage) and not inbox.look(
                            message
                        ):
                            break
                        await send.send(message)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass
            finally:
                inbox.ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forward)
            try:
                yield receive, outgoing
            finally:
                tasks.cancel_scope.cancel()
                receive.close()


@contextlib.asynccontextmanager
async def stdio(
    command: tuple[str, ...],
    inbox: Inbox,
    *,
    env: Mapping[str, str],
    cwd: str | None,
) -> AsyncGenerator[_Streams]:
    """Exchange lines of JSON with a server process, within limits.

    Its environment is a short list of the user's variables and `env`; the command runs
    without a shell. What it writes to standard error never reaches the terminal.

    Raises:
        OSError: there is no such program.
    """
    process = await anyio.open_process(
        list(command),
        env={**get_default_environment(), **env},
        cwd=cwd,
        start_new_session=True,
    )
    send, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, receive = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, send, inbox)
        tasks.start_soon(_write, process, receive)
        tasks.start_soon(_drain, process.stderr, inbox)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await _stop(process)
            tasks.cancel_scope.cancel()


async def _read(process: Process, send: Any, inbox: Inbox) -> None:
    assert process.stdout is not None
    parts: list[bytes] = []
    size = 0
    try:
        async with send:
            async for chunk in process.stdout:
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    message = message_of(b"".join([*parts, line]))
                    parts, size = [], 0
                    if isinstance(message, SessionMessage) and not inbox.look(message):
                        return
                    if message is not None:
                        await send.send(message)
                parts.append(rest)
                size += len(rest)
                if size > MOST_MESSAGE:
                    inbox.fault = f"it sent a message over {MOST_MESSAGE >> 20} MiB"
                    return
    except NoId:
        inbox.fault = "it sent an answer that cannot be read"
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        pass  # the session ended first
    finally:
        inbox.ended.set()


async def _write(process: Process, receive: Any) -> None:
    assert process.stdin is not None
    try:
        async with receive:
            async for message in receive:
                text = message.message.model_dump_json(
                    by_alias=True, exclude_unset=True
                )
                await process.stdin.send(text.encode() + b"\n")
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        pass


async def _drain(stream: ByteReceiveStream | None, inbox: Inbox) -> None:
    assert stream is not None
    with contextlib.suppress(
        anyio.ClosedResourceError, anyio.BrokenResourceError, OSError
    ):
        async for chunk in stream:
            inbox.stderr = (inbox.stderr + chunk)[-MOST_STDERR:]


async def _stop(process: Process) -> None:
    """Close its input, wait, then end it and its child processes."""
    streams = (process.stdin, process.stdout, process.stderr)
    with contextlib.suppress(OSError, anyio.BrokenResourceError):
        if process.stdin is not None:
            await process.stdin.aclose()
    for end in (None, signal.SIGTERM, _KILL):
        if end is not None:
            _signal(process, end)
        with anyio.move_on_after(_GRACE_SECONDS):
            # `process.wait` also waits for pipes that a grandchild holds open
            while process.returncode is None:  # noqa: ASYNC110 - no event tells it
                await anyio.sleep(0.01)
        if process.returncode is not None:
            break
    _signal(process, _KILL)  # child processes that the server left behind
    for stream in streams:
        with contextlib.suppress(OSError, anyio.BrokenResourceError):
            if stream is not None:
                await stream.aclose()
    close: Callable[[], None] | None = getattr(
        getattr(getattr(process, "_process", None), "_transport", None), "close", None
    )
    if close is not None:
        close()  # a grandchild may hold the pipes open


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, number)  # its own session, so its own group
