"""Models on OpenAI-compatible servers, also on Azure.

One wire for every server that has `/chat/completions`: OpenAI, vLLM, llama.cpp,
Ollama and others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from neuraxis.errors import ConfigError
from neuraxis.messages import Prompt
from neuraxis.models.http.model import HttpModel, Wire, named_model
from neuraxis.models.http.optional_parts import Body
from neuraxis.models.http.settings import (
    AZURE,
    OPENAI,
    Endpoint,
    Options,
    chat_url,
    options_for,
    url_endpoint,
)
from neuraxis.models.http.transport import Failure
from neuraxis.models.openai.fallback import UNASKED, keeps_constant, without
from neuraxis.models.openai.rejections import refused_part
from neuraxis.models.openai.request import Constant, constant_of, encoded, request_body
from neuraxis.models.openai.stream import Frames
from neuraxis.settings import Settings


def chat_wire(model: str, endpoint: Endpoint, options: Options) -> Wire:
    """Return the protocol of `/chat/completions`."""
    cached: list[Constant] = []  # at most one: the constant part of the last request

    def constant(prompt: Prompt) -> Constant | None:
        if options.extra.keys() & {"messages", "tools"}:
            return None
        last = next(iter(cached), None)  # another thread may replace it
        if last is None or not last.is_of(prompt):
            last = constant_of(prompt)
            cached[:] = [last]
        return last

    def as_bytes(body: Body, prompt: Prompt, left_out: Sequence[str]) -> bytes:
        return encoded(body, constant(prompt) if keeps_constant(left_out) else None)

    return Wire(
        url=chat_url(endpoint.url),
        headers=endpoint.key_header,
        unasked=UNASKED,
        body=lambda prompt, origin: request_body(prompt, model, options, origin),
        reader=Frames,
        refused_part=_refused_part,
        without=without,
        encoded=as_bytes,
    )


def _refused_part(body: Body, failure: Failure, known: bool) -> str:
    """Return the part to omit from now on after a refusal."""
    if failure.status == 500:  # llama.cpp, if the chat template refuses
        return refused_part(body, failure.said, known=True, is_fault=True)
    if failure.status == 404:  # OpenRouter, if no provider knows an option
        return refused_part(body, failure.said, known=True)
    if failure.status not in (400, 422) or failure.again:
        return ""
    return refused_part(body, failure.said, known=known)


OpenAIModel = partial(HttpModel, OPENAI, chat_wire)
from_name = partial(named_model, "openai", OPENAI, chat_wire)
from_azure_name = partial(named_model, "azure", AZURE, chat_wire)
"""`azure:DEPLOYMENT` is not tested against the real service."""


def from_url(url: str, settings: Settings) -> HttpModel:
    """Return the model of `http(s)://HOST/v1#NAME`."""
    address, _, name = url.partition("#")
    if not name:
        raise ConfigError(
            f"model {url!r}: expected the model's name after a #, such as "
            f"{address}#NAME"
        )
    endpoint = url_endpoint(address, name, settings)
    return OpenAIModel(name, server=endpoint, options=options_for(name, settings))
