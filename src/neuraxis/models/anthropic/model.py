"""Anthropic's models through the Messages API, also on Bedrock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast
from urllib.parse import quote as percent_encoded

from msgspec.structs import replace

from neuraxis.errors import ConfigError
from neuraxis.messages import Prompt
from neuraxis.models.anthropic.request import PARTS, missing_options, request_body
from neuraxis.models.anthropic.stream import MessageReader
from neuraxis.models.http.model import HttpModel, Reader, Wire, named_model
from neuraxis.models.http.optional_parts import Body, refused_option, without_option
from neuraxis.models.http.settings import Endpoint, Options, Provider, address_with
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


def messages_wire(model: str, endpoint: Endpoint, options: Options) -> Wire:
    """Return the protocol of `/messages`."""
    return Wire(
        url=address_with(endpoint.url, "/messages"),
        headers=_headers,
        missing=missing_options(options),
        finds_tools=True,
        body=lambda prompt, origin: request_body(prompt, model, options, origin),
        reader=MessageReader,
        resumed=_resumed,
        refused_part=partial(refused_option, PARTS),
        without=partial(without_option, PARTS),
    )


def bedrock_wire(model: str, endpoint: Endpoint, options: Options) -> Wire:
    """Return the protocol of Bedrock's `/model/ID/invoke`."""

    def body(prompt: Prompt, origin: str) -> dict[str, Json]:
        # the model is in the address, and the answer is one document
        body = request_body(prompt, model, options, origin)
        del body["model"], body["stream"]
        return {**body, "anthropic_version": _BEDROCK_VERSION}

    path = f"/model/{percent_encoded(model, safe='')}/invoke"
    return replace(
        messages_wire(model, endpoint, options),
        url=address_with(endpoint.url, path),
        finds_tools=False,  # the beta has another name there
        headers=endpoint.key_header,
        body=body,
    )


def _resumed(
    body: Body, origin: str, reader: Reader
) -> tuple[dict[str, Json], Callable[[], Reader]] | None:
    """Return how a paused turn goes on: with what it wrote.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools.md
    """
    if not isinstance(reader, MessageReader) or not reader.paused:
        return None
    turns = list(cast("list[Json]", body["messages"]))
    if reader.pauses:  # what the turn wrote until the earlier one
        turns.pop()
    turns.append({"role": "assistant", "content": reader.blocks})
    place = {"container": reader.container} if reader.container else {}
    more = {**body, **place, "messages": turns}
    return more, lambda: MessageReader(origin, reader)


def _headers(key: str) -> Mapping[str, str]:
    version = {"anthropic-version": _VERSION}
    return {**version, "x-api-key": key} if key else version


AnthropicModel = partial(HttpModel, ANTHROPIC, messages_wire)
from_name = partial(named_model, "anthropic", ANTHROPIC, messages_wire)


def from_bedrock_name(rest: str, settings: Settings) -> HttpModel:
    """Return Claude for `bedrock:MODEL_ID`; not tested against the real service."""
    if "anthropic." not in rest:
        raise ConfigError(
            "bedrock: expected the id of a Claude, such as "
            f"bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0, got {rest!r}"
        )
    key = "a Bedrock API key"
    return named_model("bedrock", BEDROCK, bedrock_wire, rest, settings, key=key)
