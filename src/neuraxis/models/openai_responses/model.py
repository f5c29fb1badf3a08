"""Models behind the Responses API of OpenAI and others."""

from __future__ import annotations

from functools import partial

from neuraxis.models.http.model import HttpModel, Wire, named_model
from neuraxis.models.http.optional_parts import refused_option, without_option
from neuraxis.models.http.settings import OPENAI, Endpoint, Options, address_with
from neuraxis.models.openai_responses.request import (
    PARTS,
    UNASKED,
    missing_options,
    request_body,
)
from neuraxis.models.openai_responses.stream import ResponseReader


def responses_wire(model: str, endpoint: Endpoint, options: Options) -> Wire:
    """Return the protocol of `/responses`."""
    return Wire(
        url=address_with(endpoint.url, "/responses"),
        headers=endpoint.key_header,
        missing=missing_options(options),
        unasked=UNASKED,
        finds_tools=True,
        body=lambda prompt, origin: request_body(prompt, model, options, origin),
        reader=ResponseReader,
        refused_part=partial(refused_option, PARTS),
        without=partial(without_option, PARTS),
    )


ResponsesModel = partial(HttpModel, OPENAI, responses_wire)
from_name = partial(named_model, "openai-responses", OPENAI, responses_wire)
