"""Models behind the Responses API, OpenAI's own and others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

from neuraxis.errors import ConfigError
from neuraxis.messages import Chunk, Prompt
from neuraxis.models.openai.exchange import Exchange, limit_of
from neuraxis.models.openai.http import Failure
from neuraxis.models.openai.optional_parts import refused_option, without_option
from neuraxis.models.openai.request import encoded
from neuraxis.models.openai.settings import (
    DEFAULT_URL,
    KEY_ENV,
    Endpoint,
    Options,
    address_with,
    base_url,
    named_endpoint,
    options_for,
)
from neuraxis.models.openai_responses.request import (
    PARTS,
    UNASKED,
    missing_options,
    request_body,
)
from neuraxis.models.openai_responses.stream import ResponseReader
from neuraxis.settings import Settings
from neuraxis.specs import Json


class ResponsesWire:
    """Protocol of `/responses`."""

    unasked = UNASKED

    def __init__(self, model: str, endpoint: Endpoint, options: Options) -> None:
        self._model = model
        self._endpoint = endpoint
        self._options = options
        # What a turn carries is for this server's model and for nobody else.
        self._origin = f"{endpoint.url.partition('?')[0]}#{model}"

    def url(self) -> str:
        """Return the address that is posted to."""
        return address_with(self._endpoint.url, "/responses")

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the header that holds the key."""
        return self._endpoint.key_header(key) if key else {}

    def missing(self) -> Sequence[str]:
        """Return notes on options that this protocol does not have."""
        return missing_options(self._options)

    def body(self, prompt: Prompt) -> dict[str, Json]:
        """Return the body of a request for one response."""
        return request_body(prompt, self._model, self._options, self._origin_of(prompt))

    def encoded(
        self, body: Mapping[str, Json], prompt: Prompt, left_out: Sequence[str]
    ) -> bytes:
        """Return the body as bytes."""
        del prompt, left_out
        return encoded(body)

    def refused_part(
        self, body: Mapping[str, Json], failure: Failure, *, known: bool
    ) -> str:
        """Return the part that a refusal names; empty: the refusal is final."""
        del known
        return refused_option(PARTS, body, failure)

    def without(self, body: Mapping[str, Json], part: str) -> dict[str, Json]:
        """Return the body without a part."""
        return without_option(PARTS, body, part)

    def reader(self, prompt: Prompt) -> ResponseReader:
        """Return the parser of one answer."""
        return ResponseReader(self._origin_of(prompt))

    def _origin_of(self, prompt: Prompt) -> str:
        return self._origin if prompt.native_tools else ""


class ResponsesModel:
    """A model behind the Responses API.

    Args:
        model: the name that the server knows it by.
        server: its base URL, or an endpoint made from settings.
        key_env: the environment variable that holds the key. None: `OPENAI_API_KEY`
            for api.openai.com, and no key for any other server.
        options: sampling, limits and timeouts.
        name: what events and errors call it.
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
        options = options or Options()
        self.name = name or f"openai-responses:{model}"
        self._exchange = Exchange(
            ResponsesWire(model, server, options),
            server,
            options,
            limit=limit_of(server, model, options),
            sleep=sleep,
            now=now,
        )

    def __repr__(self) -> str:
        return f"ResponsesModel({self.name!r})"

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Return the completion in pieces; a repeated request shows as a note.

        Raises:
            ModelError: see the tree in `errors.py`.
        """
        return self._exchange.stream(prompt)

    async def close(self) -> None:
        """Close the connections of this loop. The model may be asked again."""
        await self._exchange.close()


def from_name(rest: str, settings: Settings) -> ResponsesModel:
    """Return the model of `openai-responses:NAME`; its server is that of `openai:`."""
    if not rest:
        raise ConfigError(
            "openai-responses: expected openai-responses:NAME, got no name of a model"
        )
    endpoint = named_endpoint(rest, settings)
    endpoint.key()
    options = options_for(rest, settings)
    name = f"openai-responses:{rest}"
    return ResponsesModel(rest, server=endpoint, options=options, name=name)
