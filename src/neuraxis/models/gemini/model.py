"""Models of Google by generateContent: on AI Studio, and on Vertex AI."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from urllib.parse import quote as percent_encoded

from neuraxis.errors import ConfigError
from neuraxis.messages import Chunk, Prompt
from neuraxis.models.gemini.request import PARTS, missing_options, request_body
from neuraxis.models.gemini.stream import ContentReader
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

GEMINI = Provider(
    section="gemini",
    url="https://generativelanguage.googleapis.com/v1beta",
    key_env="GEMINI_API_KEY",
    url_env="GEMINI_BASE_URL",
    path="/v1beta",
)
VERTEX_TOKEN = "VERTEX_ACCESS_TOKEN"


class ContentWire:
    """Protocol of `:streamGenerateContent`; `token`: a token of Google Cloud."""

    unasked: tuple[str, ...] = ()

    def __init__(
        self, model: str, endpoint: Endpoint, options: Options, *, token: bool = False
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._options = options
        self._token = token
        # What a turn carries is for this server's model and for nobody else.
        self._origin = f"{endpoint.url.partition('?')[0]}#{model}"

    def url(self) -> str:
        """Return the address that is posted to."""
        own = percent_encoded(self._model.removeprefix("models/"), safe="")
        path = f"/models/{own}:streamGenerateContent"
        url = address_with(self._endpoint.url, path)
        return f"{url}{'&' if '?' in url else '?'}alt=sse"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the header that holds the key or the token."""
        if not key:
            return {}
        if self._token:
            return {"authorization": f"Bearer {key}"}
        return {"x-goog-api-key": key}

    def missing(self) -> Sequence[str]:
        """Return notes on options that this protocol does not have."""
        return missing_options(self._options)

    def body(self, prompt: Prompt) -> dict[str, Json]:
        """Return the body of a request for one completion."""
        return request_body(prompt, self._options, self._origin_of(prompt))

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

    def reader(self, prompt: Prompt) -> ContentReader:
        """Return the parser of one answer."""
        return ContentReader(self._origin_of(prompt))

    def _origin_of(self, prompt: Prompt) -> str:
        return self._origin if prompt.native_tools else ""


class GeminiModel:
    """A model behind generateContent.

    Args:
        model: the name that the server knows it by.
        server: its base URL, or an endpoint made from settings.
        key_env: the environment variable that holds the key. None: that of AI Studio
            for its own server, and no key for any other one.
        options: sampling, limits and timeouts.
        name: what events and errors call it.
        token: whether the key is a token of Google Cloud, for Vertex AI.
        sleep: waits between attempts; tests pass their own.
        now: the clock of `Options.retry_seconds`, in seconds.
    """

    def __init__(
        self,
        model: str,
        *,
        server: str | Endpoint = GEMINI.url,
        key_env: str | None = None,
        options: Options | None = None,
        name: str = "",
        token: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(server, str):
            url = base_url(server, "server", GEMINI.path)
            general = GEMINI.key_env if url == GEMINI.url else ""
            server = Endpoint(url=url, key_env=general if key_env is None else key_env)
        options = options or Options()
        self.name = name or f"gemini:{model}"
        self._exchange = Exchange(
            ContentWire(model, server, options, token=token),
            server,
            options,
            limit=limit_of(server, model, options),
            sleep=sleep,
            now=now,
        )

    def __repr__(self) -> str:
        return f"GeminiModel({self.name!r})"

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Return the completion in pieces; a repeated request shows as a note.

        Raises:
            ModelError: see the tree in `errors.py`.
        """
        return self._exchange.stream(prompt)

    async def close(self) -> None:
        """Close the connections of this loop. The model may be asked again."""
        await self._exchange.close()


def from_name(rest: str, settings: Settings) -> GeminiModel:
    """Return the model of `gemini:NAME`; refuse a missing key."""
    if not rest:
        raise ConfigError("gemini: expected gemini:NAME, got no name of a model")
    endpoint = named_endpoint(rest, settings, GEMINI)
    endpoint.key()
    options = options_for(rest, settings)
    name = f"gemini:{rest}"
    return GeminiModel(rest, server=endpoint, options=options, name=name)


def from_vertex_name(rest: str, settings: Settings) -> GeminiModel:
    """Return the model of `vertex:NAME`, by project and location.

    The key is a token of Google Cloud out of `VERTEX_ACCESS_TOKEN`, such as
    `gcloud auth print-access-token` gives. Untried against the real service.
    """
    if not rest:
        raise ConfigError("vertex: expected vertex:NAME, got no name of a model")
    endpoint = named_endpoint(rest, settings, vertex_provider(settings))
    if not endpoint.key():
        raise ConfigError(
            f"vertex:{rest}: expected a token of Google Cloud in the environment "
            f"variable {endpoint.key_env or VERTEX_TOKEN}, got none; "
            "`gcloud auth print-access-token` gives one"
        )
    options = options_for(rest, settings)
    name = f"vertex:{rest}"
    return GeminiModel(rest, server=endpoint, options=options, name=name, token=True)


def vertex_provider(settings: Settings) -> Provider:
    """Return the defaults of Vertex AI, by project and location."""
    project = settings.get("vertex.project") or os.environ.get("GOOGLE_CLOUD_PROJECT")
    place = settings.get("vertex.location") or os.environ.get("GOOGLE_CLOUD_LOCATION")
    place = place or "global"
    url = ""
    if project:
        host = "" if place == "global" else f"{place}-"
        url = (
            f"https://{host}aiplatform.googleapis.com/v1/projects/{project}"
            f"/locations/{place}/publishers/google"
        )
        # A project's settings choose a path of it, never another host.
        if not all(_is_plain(str(said)) for said in (project, place)):
            raise ConfigError(
                "vertex.project, vertex.location: expected names of letters, digits "
                f"and hyphens, got {project!r} and {place!r}"
            )
    return Provider(
        section="vertex",
        url=url,
        key_env=VERTEX_TOKEN,
        url_env="VERTEX_BASE_URL",
        path="/v1",
    )


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("-", "").isalnum()
