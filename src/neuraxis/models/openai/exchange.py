"""Exchange with a model server: attempts, retries, omitted options.

What differs between protocols (address, headers, body, how an answer is read) is a
`Wire`. A request is repeated only while nothing of an answer was given out; once text
or a call is out, a broken stream is an error and never a shorter reply.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, cast

from neuraxis.messages import Chunk, Prompt
from neuraxis.models.openai.clients import Clients
from neuraxis.models.openai.http import (
    Failure,
    bad_answer,
    drain,
    new_client,
    portions,
    refused,
    send,
)
from neuraxis.models.openai.settings import Endpoint, Options
from neuraxis.models.openai.sse import Event, EventReader, EventTooLarge
from neuraxis.models.openai.stream import ServerError, items
from neuraxis.models.rate_limits import RateLimit, shared_limit
from neuraxis.specs import Json

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 64 * 1024 * 1024
"""Size of an answer that is one JSON document."""

_AFTER_END = 2.0  # waited for the usage once the finish reason is there
_LEADING = b" \t\r\n\xef\xbb\xbf"  # blanks and the byte order mark


class Reader(Protocol):
    """Parser of one answer: events or a document become chunks."""

    @property
    def complete(self) -> bool:
        """Whether nothing more has to be read."""
        ...

    def event(self, event: Event) -> list[Chunk]:
        """Return the chunks of one event of the stream."""
        ...

    def document(self, tree: Mapping[str, Json]) -> list[Chunk]:
        """Return the chunks of an answer that is one JSON object."""
        ...

    def finish(self, *, whole: bool = False) -> Chunk:
        """Return the last chunk; raise `ServerError` where the answer is not whole."""
        ...

    def grace(self, after_end: float, stall: float) -> float | None:
        """Return the silence that ends a stream; None: none does."""
        ...


class Wire(Protocol):
    """What is particular to one protocol of model servers."""

    @property
    def unasked(self) -> Collection[str]:
        """Parts that may be left out without a note."""
        ...

    def url(self) -> str:
        """Return the address of a request."""
        ...

    def missing(self) -> Sequence[str]:
        """Return notes on options that this protocol does not have."""
        ...

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers beside the content type, with the key."""
        ...

    def body(self, prompt: Prompt) -> dict[str, Json]:
        """Return the body of a request."""
        ...

    def encoded(
        self, body: Mapping[str, Json], prompt: Prompt, left_out: Sequence[str]
    ) -> bytes:
        """Return the body as bytes."""
        ...

    def refused_part(
        self, body: Mapping[str, Json], failure: Failure, *, known: bool
    ) -> str:
        """Return the part that a refusal names; empty: the refusal is final."""
        ...

    def without(self, body: Mapping[str, Json], part: str) -> dict[str, Json]:
        """Return the body without a part."""
        ...

    def reader(self, prompt: Prompt) -> Reader:
        """Return the parser of one answer."""
        ...


class Exchange:
    """Connections to one server, and what is known of it.

    Args:
        wire: the protocol.
        endpoint: the server and its key.
        options: limits and timeouts.
        limit: the rate limit that other sessions share; None: no limit.
        sleep: waits between attempts; tests pass their own.
        now: the clock of `Options.retry_seconds`, in seconds.
    """

    def __init__(
        self,
        wire: Wire,
        endpoint: Endpoint,
        options: Options,
        *,
        limit: RateLimit | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wire = wire
        self._endpoint = endpoint
        self._options = options
        self._limit = limit
        self._sleep = sleep
        self._now = now
        self._clients = Clients(lambda: new_client(endpoint, options))
        # Parts of the request that this server refuses; None: not known yet.
        self._refuses: tuple[str, ...] | None = None

    async def close(self) -> None:
        """Close the connections of this loop."""
        await self._clients.close()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Return the completion in pieces; a repeated request shows as a note.

        Raises:
            ModelError: see the tree in `errors.py`.
        """
        key = self._endpoint.key()
        client = await self._clients.here()
        wire = self._wire
        body = wire.body(prompt)
        left_out = list(self._refuses or ())
        for part in left_out:
            body = wire.without(body, part)
        if self._refuses is None and (missing := wire.missing()):
            yield Chunk(note="; ".join(missing))
        started = self._now()
        attempt = 0
        while True:
            if self._limit is not None:
                async for note in self._limit.turn(self._sleep, waited=attempt > 0):
                    yield Chunk(note=note)
            content = wire.encoded(body, prompt, left_out)
            given = False
            try:
                async with aclosing(
                    self._attempt(client, content, key, wire.reader(prompt))
                ) as chunks:
                    async for chunk in chunks:
                        # Reasoning is shown only, so that it may come twice.
                        given = given or bool(chunk.text or chunk.tool_calls)
                        yield chunk
                # Others may have been asked, and told of more, at the same time.
                both = (*(self._refuses or ()), *left_out)
                self._refuses = tuple(dict.fromkeys(both))
                return
            except Failure as failure:
                if given:
                    failure.error.again = failure.again
                    raise failure.error from failure.__cause__
                known = self._refuses is not None
                part = wire.refused_part(body, failure, known=known)
                if part and part not in left_out:
                    left_out.append(part)
                    body = wire.without(body, part)
                    if part not in wire.unasked:
                        because = f"the server refuses {part}: {failure.error}"
                        yield Chunk(note=f"asked again otherwise: {because}")
                    continue
                wait = self._wait(failure, attempt, self._now() - started)
                if wait is None:
                    raise failure.error from failure.__cause__
                attempt += 1
                note = f"asked again after {wait:.1f} s: {failure.error}"
                if self._limit is not None and failure.status == 429:
                    self._limit.pause(wait)
            yield Chunk(note=note)
            await self._sleep(wait)

    def _wait(self, failure: Failure, attempt: int, elapsed: float) -> float | None:
        """Return the wait before the next attempt; None: give up."""
        options = self._options
        if not failure.again or attempt >= options.max_retries:
            return None
        wait = min(options.backoff * 2**attempt, options.max_wait)
        # Clients that fail together must not come back together.
        wait *= 0.5 + random.random() / 2
        if failure.after is not None:
            wait = max(wait, failure.after)
        return wait if elapsed + wait <= options.retry_seconds else None

    async def _attempt(
        self, client: httpx2.AsyncClient, content: bytes, key: str, reader: Reader
    ) -> AsyncGenerator[Chunk, None]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            # Compressed streams come in large portions: that is no streaming.
            "accept-encoding": "identity",
            **self._wire.headers(key),
        }
        url = self._wire.url()
        request = client.build_request("POST", url, content=content, headers=headers)
        response = await send(client, request, self._endpoint, self._options)
        try:
            if response.status_code != 200:
                raise await refused(response, self._endpoint, self._options, key)
            try:
                async with aclosing(self._chunks(response, reader)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except (ServerError, EventTooLarge) as error:
                kind = response.headers.get("content-type", "")
                raise bad_answer(error, self._endpoint, kind, key) from error
        finally:
            await response.aclose()

    async def _chunks(
        self, response: httpx2.Response, reader: Reader
    ) -> AsyncGenerator[Chunk, None]:
        events = EventReader()
        source = response.aiter_bytes()
        async with aclosing(source), aclosing(self._timed(source, reader)) as timed:
            first = True
            async for portion in timed:
                data = portion.lstrip(_LEADING) if first else portion
                if first and not data:
                    continue
                if first and data.startswith((b"{", b"[")):
                    # The server does not stream: all of it is one document.
                    for chunk in _document(data + await _rest(timed), reader):
                        yield chunk
                    return
                first = False
                for event in events.feed(data):
                    for chunk in reader.event(event):
                        yield chunk
                if reader.complete:
                    await drain(source)
                    break
            else:
                for event in events.finish():
                    for chunk in reader.event(event):
                        yield chunk
        yield reader.finish()

    def _timed(
        self, source: AsyncIterator[bytes], reader: Reader
    ) -> AsyncGenerator[bytes, None]:
        return portions(
            source,
            self._endpoint,
            self._options,
            lambda: reader.grace(_AFTER_END, self._options.stall_timeout),
        )


def limit_of(endpoint: Endpoint, model: str, options: Options) -> RateLimit:
    """Return the shared rate limit of a server, key and model."""
    most = options.requests_per_minute
    return shared_limit(endpoint.url, endpoint.key_env, model, most)


async def _rest(source: AsyncIterator[bytes]) -> bytes:
    read: list[bytes] = []
    size = 0
    async for portion in source:
        read.append(portion)
        size += len(portion)
        if size > MOST_BYTES:
            raise ServerError(f"its answer is larger than {MOST_BYTES} bytes")
    return b"".join(read)


def _document(raw: bytes, reader: Reader) -> list[Chunk]:
    """Return the chunks of an answer that came as one JSON document."""
    try:
        tree: Json = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ServerError("its answer is no whole JSON document") from error
    # Google sends a stream as one list where it is not asked for events.
    chunks: list[Chunk] = []
    for part in items(tree) or [tree]:
        if not isinstance(part, dict):
            raise ServerError("its answer is no JSON object")
        chunks += reader.document(cast("dict[str, Json]", part))
    return [*chunks, reader.finish(whole=True)]
