"""Models behind the Messages API, also on Bedrock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from urllib.parse import quote as percent_encoded

from neuraxis.errors import ConfigError, ModelUnavailable
from neuraxis.messages import Chunk, Prompt
from neuraxis.models.anthropic.request import PARTS, missing_options, request_body
from neuraxis.models.anthropic.stream import MessageReader
from neuraxis.models.openai.exchange import Exchange, limit_of
from neuraxis.models.openai.http import Failure
from neuraxis.models.openai.optional_parts import refused_option, without_option
from neuraxis.models.openai.request import encoded
from neuraxis.models.openai.settings import (
    Endpoint,
    Options,
    Provider,
    address_with,
    base_url,
    named_endpoint,
    options_for,
)
from neuraxis.settings import Settings
from neuraxis.specs import Json

ANTHROPIC = Provider(
    section="anthropic",
    url="https://api.anthropic.com/v1",
    key_env="ANTHROPIC_API_KEY",
    url_env="ANTHROPIC_BASE_URL",
)
BEDROCK = Provider(
    section="bedrock",
    url="",
    key_env="AWS_BEARER_TOKEN_BEDROCK",
    url_env="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    path="/",
)
_VERSION = "2023-06-01"
_BEDROCK_VERSION = "bedrock-2023-05-31"


class MessagesWire:
    """Protocol of `/messages`; `bedrock`: of Bedrock's `/model/ID/invoke`."""

    unasked: tuple[str, ...] = ()

    def __init__(
        self, model: str, endpoint: Endpoint, options: Options, *, bedrock: bool = False
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._options = options
        self._bedrock = bedrock
        # What a turn carries is for this server's model and for nobody else.
        self._origin = f"{endpoint.url.partition('?')[0]}#{model}"

    def url(self) -> str:
        """Return the address that is posted to."""
        if self._bedrock:
            own = percent_encoded(self._model, safe="")
            return address_with(self._endpoint.url, f"/model/{own}/invoke")
        return address_with(self._endpoint.url, "/messages")

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers for the version and the key."""
        if self._bedrock:
            return {"authorization": f"Bearer {key}"} if key else {}
        version = {"anthropic-version": _VERSION}
        return {**version, "x-api-key": key} if key else version

    def missing(self) -> Sequence[str]:
        """Return notes on options that this protocol does not have."""
        return missing_options(self._options)

    def body(self, prompt: Prompt) -> dict[str, Json]:
        """Return the body of a request for one message."""
        body = request_body(prompt, self._model, self._options, self._origin_of(prompt))
        if self._bedrock:  # the model is in the address, and the answer is one document
            del body["model"], body["stream"]
            body["anthropic_version"] = _BEDROCK_VERSION
        return body

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

    def reader(self, prompt: Prompt) -> MessageReader:
        """Return the parser of one answer."""
        return MessageReader(self._origin_of(prompt))

    def _origin_of(self, prompt: Prompt) -> str:
        return self._origin if prompt.native_tools else ""


class AnthropicModel:
    """A model behind the Messages API.

    Args:
        model: the name that the server knows it by.
        server: its base URL, or an endpoint made from settings.
        key_env: the environment variable that holds the key. None: that of Anthropic
            for its own server, and no key for any other one.
        options: sampling, limits and timeouts.
        name: what events and errors call it.
        bedrock: whether the server is Bedrock.
        sleep: waits between attempts; tests pass their own.
        now: the clock of `Options.retry_seconds`, in seconds.
    """

    def __init__(
        self,
        model: str,
        *,
        server: str | Endpoint = ANTHROPIC.url,
        key_env: str | None = None,
        options: Options | None = None,
        name: str = "",
        bedrock: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(server, str):
            url = base_url(server, "server")
            general = ANTHROPIC.key_env if url == ANTHROPIC.url else ""
            server = Endpoint(url=url, key_env=general if key_env is None else key_env)
        options = options or Options()
        self.name = name or f"anthropic:{model}"
        self._exchange = Exchange(
            MessagesWire(model, server, options, bedrock=bedrock),
            server,
            options,
            limit=limit_of(server, model, options),
            sleep=sleep,
            now=now,
        )

    def __repr__(self) -> str:
        return f"AnthropicModel({self.name!r})"

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Return the completion in pieces; a repeated request shows as a note.

        Raises:
            ModelError: see the tree in `errors.py`.
        """
        return self._exchange.stream(prompt)

    async def close(self) -> None:
        """Close the connections of this loop. The model may be asked again."""
        await self._exchange.close()


def from_name(rest: str, settings: Settings) -> AnthropicModel:
    """Return the model of `anthropic:NAME`; refuse a missing key."""
    if not rest:
        raise ConfigError("anthropic: expected anthropic:NAME, got no name of a model")
    endpoint = named_endpoint(rest, settings, ANTHROPIC)
    endpoint.key()
    options = options_for(rest, settings)
    name = f"anthropic:{rest}"
    return AnthropicModel(rest, server=endpoint, options=options, name=name)


def from_bedrock_name(rest: str, settings: Settings) -> AnthropicModel:
    """Return the Claude of `bedrock:MODEL_ID`; untried against the real service."""
    if "anthropic." not in rest:
        raise ConfigError(
            "bedrock: expected the id of a Claude, such as "
            f"bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0, got {rest!r}"
        )
    endpoint = named_endpoint(rest, settings, BEDROCK)
    if not endpoint.key():
        raise ModelUnavailable(
            f"No key for {endpoint.host}: set the environment variable "
            f"{endpoint.key_env or BEDROCK.key_env} to a Bedrock API key."
        )
    options = options_for(rest, settings)
    name = f"bedrock:{rest}"
    return AnthropicModel(
        rest, server=endpoint, options=options, name=name, bedrock=True
    )
