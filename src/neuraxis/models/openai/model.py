"""Model behind a server of the OpenAI form, over HTTP.

One class for every server that has `/chat/completions`: OpenAI, vLLM, llama.cpp,
Ollama and others. A request is repeated only while no chunk of an answer was yielded;
after that a broken stream is an error and never a shorter reply.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from urllib.parse import urldefrag

from neuraxis.errors import ConfigError
from neuraxis.messages import Chunk, Prompt
from neuraxis.models.openai.exchange import Exchange, limit_of
from neuraxis.models.openai.fallback import UNASKED, keeps_constant, without
from neuraxis.models.openai.http import Failure
from neuraxis.models.openai.rejections import refused_part
from neuraxis.models.openai.request import Constant, constant_of, encoded, request_body
from neuraxis.models.openai.settings import (
    AZURE,
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
from neuraxis.models.openai.stream import Frames
from neuraxis.settings import Settings
from neuraxis.specs import Json


class ChatWire:
    """Protocol of `/chat/completions`."""

    unasked = UNASKED

    def __init__(self, model: str, endpoint: Endpoint, options: Options) -> None:
        self._model = model
        self._endpoint = endpoint
        self._options = options
        # What a turn carries is for this server's model and for nobody else.
        self._origin = f"{endpoint.url.partition('?')[0]}#{model}"
        self._known: Constant | None = None

    def url(self) -> str:
        """Return the address that is posted to."""
        return chat_url(self._endpoint.url)

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the header that holds the key."""
        return self._endpoint.key_header(key) if key else {}

    def missing(self) -> Sequence[str]:
        """Return notes on options that this protocol does not have: none."""
        return ()

    def body(self, prompt: Prompt) -> dict[str, Json]:
        """Return the body of a request for one completion."""
        return request_body(prompt, self._model, self._options, self._origin_of(prompt))

    def encoded(
        self, body: Mapping[str, Json], prompt: Prompt, left_out: Sequence[str]
    ) -> bytes:
        """Return the body as bytes; its constant part is written once."""
        return encoded(
            body, self._constant(prompt) if keeps_constant(left_out) else None
        )

    def without(self, body: Mapping[str, Json], part: str) -> dict[str, Json]:
        """Return the body without a part that the server refuses."""
        return without(body, part)

    def refused_part(
        self, body: Mapping[str, Json], failure: Failure, *, known: bool
    ) -> str:
        """Return what to omit after a refusal, from now on."""
        said = str(failure.error)
        if failure.status == 500:  # llama.cpp, where a chat template refuses
            return refused_part(body, said, known=True)
        if failure.status not in (400, 422) or failure.again:
            return ""
        return refused_part(body, said, known=known)

    def reader(self, prompt: Prompt) -> Frames:
        """Return the parser of one answer."""
        return Frames(self._origin_of(prompt))

    def _origin_of(self, prompt: Prompt) -> str:
        return self._origin if prompt.native_tools else ""

    def _constant(self, prompt: Prompt) -> Constant | None:
        """Return the part that repeats in the next request."""
        if self._options.extra.keys() & {"messages", "tools"}:
            return None
        known = self._known  # another thread may change it
        if known is None or not known.is_of(prompt):
            known = self._known = constant_of(prompt)
        return known


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
        options = options or Options()
        self._exchange = Exchange(
            ChatWire(model, server, options),
            server,
            options,
            limit=limit_of(server, model, options),
            sleep=sleep,
            now=now,
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, server={self._endpoint.url!r})"

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """The completion in pieces; a repeated request shows as a chunk's note.

        Raises:
            ModelError: see the tree in `errors.py`.
        """
        return self._exchange.stream(prompt)

    async def close(self) -> None:
        """Close the connections of this loop. The model may be asked again."""
        await self._exchange.close()


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


def from_azure_name(rest: str, settings: Settings) -> OpenAIModel:
    """The model of `azure:DEPLOYMENT`; untried against the real service."""
    if not rest:
        raise ConfigError("azure: expected azure:DEPLOYMENT, got no deployment")
    endpoint = named_endpoint(rest, settings, AZURE)
    endpoint.key()
    options = options_for(rest, settings)
    return OpenAIModel(rest, server=endpoint, options=options, name=f"azure:{rest}")
