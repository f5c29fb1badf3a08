"""Model behind a server of the OpenAI form, over HTTP.

One class for every server that has `/chat/completions`: OpenAI, vLLM, llama.cpp,
Ollama and others. A request is repeated only while no chunk of an answer was yielded;
after that a broken stream is an error and never a shorter reply.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, cast
from urllib.parse import urldefrag

from neuraxis.errors import ConfigError
from neuraxis.messages import Chunk, Prompt
from neuraxis.models.openai.clients import Clients
from neuraxis.models.openai.fallback import UNASKED, keeps_constant, without
from neuraxis.models.openai.http import (
    Failure,
    bad_answer,
    drain,
    new_client,
    portions,
    refused,
    send,
)
from neuraxis.models.openai.rejections import refused_part
from neuraxis.models.openai.request import Constant, constant_of, encoded, request_body
from neuraxis.models.openai.settings import (
    DEFAULT_URL,
    KEY_ENV,
    Endpoint,
    Options,
    base_url,
    chat_url,
    named_endpoint,
    options_for,
    url_endpoint,
)
from neuraxis.models.openai.sse import EventReader, EventTooLarge
from neuraxis.models.openai.stream import Frames, ServerError
from neuraxis.settings import Settings
from neuraxis.specs import Json

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 64 * 1024 * 1024
"""Maximum size of an answer that is one JSON document."""

_AFTER_END = 2.0  # seconds to wait for the usage after the finish reason
_LEADING = b" \t\r\n\xef\xbb\xbf"  # blanks and the byte order mark


class OpenAIModel:
    """Model behind a server of the OpenAI form.

    Args:
        model: the name that the server knows it by.
        server: its base URL, or an endpoint made from settings.
        key_env: the environment variable that has the key. None: `OPENAI_API_KEY`
            for api.openai.com, and no key for any other server.
        options: sampling, limits and timeouts.
        name: its name in events and errors.
        sleep: waits between attempts; tests pass their own.
        now: the clock of `Options.retry_seconds`, in seconds.
    """

    def __init__(
        self,
        model: str,
        *,
        server: str | Endpoint = DEFAULT_URL,
        key_env: str | None = None,
        options: Options | None = None,
        name: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(server, str):
            url = base_url(server, "server")
            general = KEY_ENV if url == DEFAULT_URL else ""
            server = Endpoint(url=url, key_env=general if key_env is None else key_env)
        self.name = name or f"{server.url}#{model}"
        self._model = model
        self._endpoint = server
        # a turn's provider state must reach this server's model and no other
        self._origin = f"{server.url.partition('?')[0]}#{model}"
        self._options = options or Options()
        self._sleep = sleep
        self._now = now
        self._clients = Clients(lambda: new_client(server, self._options))
        self._known: Constant | None = None
        # parts of the request that this server refuses; None: not known yet
        self._refuses: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, server={self._endpoint.url!r})"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Stream the completion; a repeated request shows as a chunk's note.

        Raises:
            ModelError: see the tree in `errors.py`.
        """
        key = self._endpoint.key()
        client = await self._clients.here()
        origin = self._origin if prompt.native_tools else ""
        body = request_body(prompt, self._model, self._options, origin)
        constant = self._constant(prompt)
        left_out = list(self._refuses or ())
        for part in left_out:
            body = without(body, part)
        started = self._now()
        attempt = 0
        while True:
            given = False
            kept = constant if keeps_constant(left_out) else None
            content = encoded(body, kept)
            try:
                async with aclosing(
                    self._attempt(client, content, key, origin)
                ) as chunks:
                    async for chunk in chunks:
                        given = True
                        yield chunk
                # concurrent requests may have learnt of further refusals
                both = (*(self._refuses or ()), *left_out)
                self._refuses = tuple(dict.fromkeys(both))
                return
            except Failure as failure:
                if given:
                    raise failure.error from failure.__cause__
                part = self._refused_part(failure, body)
                if part and part not in left_out:
                    left_out.append(part)
                    body = without(body, part)
                    if part not in UNASKED:
                        because = f"the server refuses {part}: {failure.error}"
                        yield Chunk(note=f"asked again otherwise: {because}")
                    continue
                wait = self._wait(failure, attempt, self._now() - started)
                if wait is None:
                    raise failure.error from failure.__cause__
                attempt += 1
                note = f"asked again after {wait:.1f} s: {failure.error}"
            yield Chunk(note=note)
            await self._sleep(wait)

    async def close(self) -> None:
        """Close the connections of this loop. The model may be asked again."""
        await self._clients.close()

    def _refused_part(self, failure: Failure, body: dict[str, Json]) -> str:
        """Return the part to omit after a refusal, now and in future."""
        said = str(failure.error)
        if failure.status == 500:  # llama.cpp, where a chat template refuses
            return refused_part(body, said, known=True)
        if failure.status not in (400, 422) or failure.again:
            return ""
        return refused_part(body, said, known=self._refuses is not None)

    def _wait(self, failure: Failure, attempt: int, elapsed: float) -> float | None:
        """Return the seconds before the next attempt; None: there is none."""
        options = self._options
        if not failure.again or attempt >= options.max_retries:
            return None
        wait = min(options.backoff * 2**attempt, options.max_wait)
        # clients that fail together must not come back together
        wait *= 0.5 + random.random() / 2
        if failure.after is not None:
            wait = max(wait, failure.after)
        return wait if elapsed + wait <= options.retry_seconds else None

    def _constant(self, prompt: Prompt) -> Constant | None:
        """Return the serialized constant part of the prompt; None if changed."""
        if self._options.extra.keys() & {"messages", "tools"}:
            return None
        known = self._known  # another thread may change it
        if known is None or not known.is_of(prompt):
            known = self._known = constant_of(prompt)
        return known

    async def _attempt(
        self, client: httpx2.AsyncClient, content: bytes, key: str, origin: str
    ) -> AsyncGenerator[Chunk, None]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            # compressed streams come in large portions: that is no streaming
            "accept-encoding": "identity",
        }
        if key:
            headers |= self._endpoint.key_header(key)
        request = client.build_request(
            "POST", chat_url(self._endpoint.url), content=content, headers=headers
        )
        response = await send(client, request, self._endpoint, self._options)
        try:
            if response.status_code != 200:
                raise await refused(response, self._endpoint, self._options, key)
            try:
                async with aclosing(self._chunks(response, origin)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except (ServerError, EventTooLarge) as error:
                kind = response.headers.get("content-type", "")
                raise bad_answer(error, self._endpoint, kind, key) from error
        finally:
            await response.aclose()

    async def _chunks(
        self, response: httpx2.Response, origin: str
    ) -> AsyncGenerator[Chunk, None]:
        frames = Frames(origin)
        events = EventReader()
        source = response.aiter_bytes()
        async with aclosing(source), aclosing(self._timed(source, frames)) as timed:
            first = True
            async for portion in timed:
                data = portion.lstrip(_LEADING) if first else portion
                if first and not data:
                    continue
                if first and data.startswith((b"{", b"[")):
                    # the server does not stream: all of it is one document
                    for chunk in _document(data + await _rest(timed), frames):
                        yield chunk
                    return
                first = False
                for event in events.feed(data):
                    for chunk in frames.event(event):
                        yield chunk
                if frames.done or (frames.ended and frames.usage):
                    await drain(source)
                    break
            else:
                for event in events.finish():
                    for chunk in frames.event(event):
                        yield chunk
        yield frames.finish()

    def _timed(
        self, source: AsyncIterator[bytes], frames: Frames
    ) -> AsyncGenerator[bytes, None]:
        return portions(
            source,
            self._endpoint,
            self._options,
            lambda: frames.grace(_AFTER_END, self._options.stall_timeout),
        )


async def _rest(source: AsyncIterator[bytes]) -> bytes:
    read: list[bytes] = []
    size = 0
    async for portion in source:
        read.append(portion)
        size += len(portion)
        if size > MOST_BYTES:
            raise ServerError(f"its answer is larger than {MOST_BYTES} bytes")
    return b"".join(read)


def _document(raw: bytes, frames: Frames) -> list[Chunk]:
    """Return the chunks of an answer that came as one document."""
    try:
        tree: Json = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ServerError("its answer is no whole JSON document") from error
    if isinstance(tree, list) and tree:
        tree = cast("list[Json]", tree)[0]
    if not isinstance(tree, dict):
        raise ServerError("its answer is no JSON object")
    chunk = frames.frame(cast("dict[str, Json]", tree))
    return [*([chunk] if chunk else []), frames.finish(whole=True)]


def from_name(rest: str, settings: Settings) -> OpenAIModel:
    """Return the model of `openai:NAME`; raise at once for a missing key."""
    if not rest:
        raise ConfigError("openai: expected openai:NAME, got no name of a model")
    endpoint = named_endpoint(rest, settings)
    endpoint.key()
    return OpenAIModel(
        rest,
        server=endpoint,
        options=options_for(rest, settings),
        name=f"openai:{rest}",
    )


def from_url(url: str, settings: Settings) -> OpenAIModel:
    """Return the model of `http(s)://HOST/v1#NAME`."""
    address, name = urldefrag(url)
    if not name:
        raise ConfigError(
            f"model {url!r}: expected the model's name after a #, such as "
            f"{address}#NAME"
        )
    endpoint = url_endpoint(address, name, settings)
    return OpenAIModel(name, server=endpoint, options=options_for(name, settings))
