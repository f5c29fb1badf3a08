"""HTTP model client: attempts, retries, and optional parts of requests.

What differs between protocols (address, headers, body, how an answer is read) is a
`Wire`. A request is repeated only before any text or call was yielded; after that, a
broken stream is an error and never a shorter reply.
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
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.errors import ConfigError, ModelError, ModelUnavailable
from neuraxis.messages import NOTHING_USED, Chunk, Part, Prompt
from neuraxis.models.http.answers import ServerError
from neuraxis.models.http.clients import Clients
from neuraxis.models.http.optional_parts import Body
from neuraxis.models.http.request_parts import as_json
from neuraxis.models.http.settings import (
    Endpoint,
    Options,
    Provider,
    base_url,
    named_endpoint,
    options_for,
)
from neuraxis.models.http.sse import Event, EventReader, EventTooLarge
from neuraxis.models.http.transport import (
    Failure,
    bad_answer,
    drain,
    may_go_on,
    new_client,
    portions,
    refused,
    send,
)
from neuraxis.models.media_parts import refused_parts, with_shown
from neuraxis.models.rate_limits import RateLimit, shared_limit
from neuraxis.parsing.json_access import as_list
from neuraxis.settings import Settings
from neuraxis.specs import Json

if TYPE_CHECKING:
    import httpx2

REPLY_BYTES = 64 * 1024 * 1024
"""Maximum size of an answer that is one JSON document."""

_AFTER_END = 2.0  # seconds to wait for the usage after the finish reason
_LEADING = b" \t\r\n\xef\xbb\xbf"  # blanks and the byte order mark


def _encoded(body: Body, prompt: Prompt, left_out: Sequence[str]) -> bytes:
    del prompt, left_out
    return as_json(body)


def _never_resumed(body: Body, origin: str, reader: Reader) -> None:
    del body, origin, reader


class Reader(Protocol):
    """Parser of one answer: converts events or a document to chunks."""

    @property
    def complete(self) -> bool:
        """Whether the answer is complete."""
        ...

    def event(self, event: Event) -> list[Chunk]:
        """Return the chunks of one event of the stream."""
        ...

    def document(self, tree: Mapping[str, Json]) -> list[Chunk]:
        """Return the chunks of an answer that is one JSON object."""
        ...

    def finish(self, *, whole: bool = False) -> Chunk:
        """Return the last chunk; raise `ServerError` if the answer is incomplete."""
        ...

    def grace(self, after_end: float, stall: float) -> float | None:
        """Return the seconds of silence that end the answer; None: no limit."""
        ...


class Wire(Struct, frozen=True, kw_only=True):
    """Everything specific to one protocol of model servers.

    An `origin` is the server and model that a turn's state goes back to; empty: none.
    """

    url: str
    """The address that requests are posted to."""
    headers: Callable[[str], Mapping[str, str]]
    """Function that returns the headers except the content type, with the key."""
    body: Callable[[Prompt, str], dict[str, Json]]
    """Function that builds the body of a request from a prompt and its origin."""
    reader: Callable[[str], Reader]
    """Function that returns the parser of one answer from an origin."""
    refused_part: Callable[[Body, Failure, bool], str]
    """Function that returns the part that a refusal names; empty: it is final.

    The last argument: whether the server accepted a request before.
    """
    without: Callable[[Body, str], dict[str, Json]]
    """Function that returns the body without a part."""
    encoded: Callable[[Body, Prompt, Sequence[str]], bytes] = _encoded
    """Function that returns the body as bytes; the texts are the omitted parts."""
    resumed: Callable[
        [Body, str, Reader], tuple[dict[str, Json], Callable[[], Reader]] | None
    ] = _never_resumed
    """Function that returns the request and the parser with which an answer goes on,
    from its request, origin and parser; None: it is whole."""
    missing: Sequence[str] = ()
    """Notes on options that this protocol does not have."""
    unasked: Collection[str] = ()
    """Parts that may be omitted without a note."""
    finds_tools: bool = False
    """Whether the provider searches tools marked `defer_loading`."""


MakeWire = Callable[[str, Endpoint, Options], Wire]


class HttpModel:
    """Model on one server.

    Args:
        provider: defaults of this kind of server.
        wire: the protocol of a model at an endpoint.
        model: its name on the server.
        server: its base URL, or an endpoint made from settings; empty: the provider's.
        key_env: the environment variable that has the key. None: the provider's for
            its own server, and no key for any other.
        key: the key itself, for example a tenant's, instead of `key_env`.
        options: sampling, limits and timeouts.
        name: its name in events and errors.
        sleep: waits between attempts; tests pass their own.
        now: the clock of `Options.retry_seconds`, in seconds.
    """

    sees = True

    def __init__(
        self,
        provider: Provider,
        wire: MakeWire,
        model: str,
        *,
        server: str | Endpoint = "",
        key_env: str | None = None,
        key: str | None = None,
        options: Options | None = None,
        name: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if key is not None and key_env:
            raise ConfigError("key: expected one of key= and key_env=, got both")
        if isinstance(server, str):
            url = base_url(server or provider.url, "server", provider.path)
            general = provider.key_env if url == provider.url and key is None else ""
            env = general if key_env is None else key_env
            server = Endpoint(url=url, key_env=env, own_key=key)
        elif key is not None or key_env is not None:
            raise ConfigError(
                "server: expected a URL beside key= or key_env=, got an Endpoint, "
                "which says itself what its key is"
            )
        options = options or Options()
        self.name = name or f"{server.url}#{model}"
        self._wire = wire(model, server, options)
        self.finds_tools = self._wire.finds_tools
        self._endpoint = server
        self._options = options
        self._limit = limit_of(server, model, options)
        # A turn's state is for this server's model and for no other.
        self._origin = f"{server.url.partition('?')[0]}#{model}"
        self._sleep = sleep
        self._now = now
        self._clients = Clients(lambda: new_client(server, options))
        # Parts of the request that this server refuses; None: unknown yet.
        self._refuses: tuple[str, ...] | None = None
        # Pictures and files that it refused: it may accept others.
        self._unseen: set[Part] = set()

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r})"

    async def close(self) -> None:
        """Close the connections of this loop. The model may be used again."""
        await self._clients.close()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Stream the completion; a repeated request is reported in a note.

        Raises:
            ModelError: see the tree in `errors.py`.
        """
        key, wire = self._endpoint.key(), self._wire
        client = await self._clients.current()
        origin = self._origin if prompt.native_tools else ""
        left_out = list(self._refuses or ())
        shown_prompt, body = self._request(prompt, origin, left_out)
        if self._refuses is None and wire.missing:
            yield Chunk(note="; ".join(wire.missing))
        started = self._now()
        attempt, used = 0, NOTHING_USED
        new_reader: Callable[[], Reader] = partial(wire.reader, origin)
        while True:
            reader = new_reader()
            async for note in self._limit.turn(self._sleep, waited=attempt > 0):
                yield Chunk(note=note)
            content = wire.encoded(body, shown_prompt, left_out)
            has_output, spent = False, used
            try:
                async with aclosing(
                    self._attempt(client, content, key, reader)
                ) as chunks:
                    async for chunk in chunks:
                        # Reasoning is only displayed, so it may come twice.
                        has_output = has_output or bool(chunk.text or chunk.tool_calls)
                        if chunk.usage is not None:
                            used = spent + chunk.usage
                            chunk = replace(chunk, usage=used)
                        yield chunk
                self._learn(left_out)
                if (more := wire.resumed(body, origin, reader)) is None:
                    return
                body, new_reader = more
                continue
            except Failure as failure:
                if has_output:
                    failure.error.again = may_go_on(failure)
                    raise failure.error from failure.__cause__
                if unseen := self._refused_parts(prompt, failure.error):
                    self._unseen.update(unseen)
                    shown_prompt, body = self._request(prompt, origin, left_out)
                    yield Chunk(note=f"asked again without pictures: {failure.error}")
                    continue
                part = wire.refused_part(body, failure, self._refuses is not None)
                if part and part not in left_out:
                    left_out.append(part)
                    body = wire.without(body, part)
                    if part not in wire.unasked:
                        because = f"the server refuses {part}: {failure.error}"
                        yield Chunk(note=f"asked again otherwise: {because}")
                    continue
                wait = self._pause(failure, attempt, self._now() - started)
                attempt += 1
                note = f"asks again after {wait:.1f} s: {failure.error}"
            yield Chunk(note=note)
            await self._sleep(wait)

    def _request(
        self, prompt: Prompt, origin: str, left_out: Sequence[str]
    ) -> tuple[Prompt, dict[str, Json]]:
        shown_prompt = with_shown(prompt, self._takes)
        body = self._wire.body(shown_prompt, origin)
        for part in left_out:
            body = self._wire.without(body, part)
        return shown_prompt, body

    def _takes(self, part: Part) -> bool:
        return self._options.vision is not False and part not in self._unseen

    def _refused_parts(self, prompt: Prompt, error: ModelError) -> set[Part]:
        """Return the pictures and files that were sent and refused."""
        refused = () if self._options.vision else refused_parts(prompt, error)
        return {part for part in refused if part.data and self._takes(part)}

    def _learn(self, left_out: Sequence[str]) -> None:
        # Concurrent requests may have found more refused parts.
        refused_options = (*(self._refuses or ()), *left_out)
        self._refuses = tuple(dict.fromkeys(refused_options))

    def _pause(self, failure: Failure, attempt: int, elapsed: float) -> float:
        """Return the seconds until the next attempt; without one, raise the error."""
        wait = self._wait(failure, attempt, elapsed)
        if wait is None:
            raise failure.error from failure.__cause__
        if failure.status == 429:
            self._limit.pause(wait)
        return wait

    def _wait(self, failure: Failure, attempt: int, elapsed: float) -> float | None:
        """Return the seconds until the next attempt; None: no more attempts."""
        options = self._options
        if not failure.again or attempt >= options.max_retries:
            return None
        wait = min(options.backoff * 2**attempt, options.max_wait)
        # Jitter: clients that fail together must not retry together.
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
            # A compressed stream comes in large portions, which defeats streaming.
            "accept-encoding": "identity",
            **self._wire.headers(key),
        }
        url = self._wire.url
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
                    # The server does not stream: the answer is one document.
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
    """Return the rate limit shared by all users of a model."""
    per_minute = options.requests_per_minute
    return shared_limit(endpoint.url, endpoint.account, model, per_minute)


def named_model(
    kind: str,
    provider: Provider,
    wire: MakeWire,
    rest: str,
    settings: Settings,
    *,
    key: str = "",
) -> HttpModel:
    """Return the model of `KIND:NAME`.

    `key` describes a required key for the error message; empty: none is required.

    Raises:
        ConfigError: no name, or the settings of its server are wrong.
        ModelUnavailable: a key is needed, and there is none.
    """
    if not rest:
        raise ConfigError(f"{kind}: the model's name is missing; write {kind}:NAME")
    endpoint = named_endpoint(rest, settings, provider)
    if not endpoint.key() and key:
        raise ModelUnavailable(
            f"No key for {endpoint.host}: set the environment variable "
            f"{endpoint.key_env or provider.key_env} to {key}."
        )
    options = options_for(rest, settings)
    name = f"{kind}:{rest}"
    return HttpModel(provider, wire, rest, server=endpoint, options=options, name=name)


async def _rest(source: AsyncIterator[bytes]) -> bytes:
    read: list[bytes] = []
    size = 0
    async for portion in source:
        read.append(portion)
        size += len(portion)
        if size > REPLY_BYTES:
            raise ServerError(f"its answer is larger than {REPLY_BYTES} bytes")
    return b"".join(read)


def _document(raw: bytes, reader: Reader) -> list[Chunk]:
    """Return the chunks of an answer that came as one JSON document."""
    try:
        tree: Json = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        is_whole = raw.rstrip().endswith((b"}", b"]")) or "Extra data" in str(error)
        raise ServerError(
            "its answer is no whole JSON document", again=not is_whole
        ) from error
    # Google sends a list of frames if events were not requested.
    chunks: list[Chunk] = []
    for part in as_list(tree) or [tree]:
        if not isinstance(part, dict):
            raise ServerError("its answer is no JSON object")
        chunks += reader.document(cast("dict[str, Json]", part))
    return [*chunks, reader.finish(whole=True)]
