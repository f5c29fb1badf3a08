"""A real HTTP server on loopback whose every byte a test chooses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client sent."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


Script = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Writes one answer; closing the writer drops the connection."""


@dataclass(slots=True)
class Server:
    """Answers the n-th request by the n-th script, and the last one from then on."""

    url: str = ""
    scripts: list[Script] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """A connection ended."""

    def answers(self, *scripts: Script) -> str:
        """Use these scripts for what comes next; gives the base URL."""
        self.scripts = list(scripts)
        self.requests.clear()
        return self.url


@asynccontextmanager
async def serving(port: int = 0) -> AsyncIterator[Server]:
    """A server that is gone, with all its connections, at the end."""
    state = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        state.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                state.requests.append(request)
                last = len(state.scripts) - 1
                await state.scripts[min(len(state.requests) - 1, last)](writer)
                if writer.is_closing():
                    break
            state.gone.set()
        except (ConnectionError, asyncio.CancelledError):
            state.gone.set()
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield state
    finally:
        server.close()
        running = list(tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    raw = await reader.readexactly(int(headers["content-length"]))
    return Request(path=first.split(" ")[1], headers=headers, body=json.loads(raw))


def frame(content: str | None = None, **choice: Any) -> dict[str, Any]:
    """One frame as servers that follow the form send it."""
    delta = choice.pop("delta", {} if content is None else {"content": content})
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}],
    }


def lines(*frames: Mapping[str, Any] | str, done: bool = True) -> bytes:
    """Frames as an event stream."""
    texts = [item if isinstance(item, str) else json.dumps(item) for item in frames]
    return "".join(
        f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]
    ).encode()


def hello(text: str = "Hello") -> bytes:
    """A whole, ordinary answer."""
    return lines(
        frame(delta={"role": "assistant", "content": ""}),
        *(frame(char) for char in text),
        frame(finish_reason="stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    )


def answer(
    body: bytes | Mapping[str, Any] | Sequence[Any] = b"",
    status: int = 200,
    content_type: str = "application/json",
    **headers: str,
) -> Script:
    """One document with its length. Headers: `retry_after="1"`."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {
        "content-type": content_type,
        "content-length": str(len(raw)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} Word\r\n{head}\r\n".encode() + raw)
        await writer.drain()

    return write


def stream(
    *portions: bytes,
    end: Literal["whole", "drop", "stall", "open"] = "whole",
    content_type: str = "text/event-stream",
) -> Script:
    """Portions as HTTP chunks, so that a client reads them one by one.

    `drop` closes the connection in the middle of the chunked body, `stall` leaves it
    open and silent, `open` lets the test write on.
    """

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n"
            "transfer-encoding: chunked\r\n\r\n".encode()
        )
        for portion in portions:
            writer.write(b"%x\r\n%s\r\n" % (len(portion), portion))
        if end == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if end == "stall":
            await asyncio.sleep(30)
        if end == "drop":
            writer.close()

    return write


async def silence(writer: asyncio.StreamWriter) -> None:
    """Takes the request and never answers."""
    await asyncio.sleep(30)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Takes the request and closes the connection."""
    writer.close()
