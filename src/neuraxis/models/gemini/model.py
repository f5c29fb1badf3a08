"""Google's models through generateContent, on AI Studio and Vertex AI."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote as percent_encoded

from msgspec.structs import replace

from neuraxis.errors import ConfigError
from neuraxis.models.gemini.request import PARTS, missing_options, request_body
from neuraxis.models.gemini.stream import ContentReader
from neuraxis.models.http.model import HttpModel, Wire, named_model
from neuraxis.models.http.optional_parts import refused_option, without_option
from neuraxis.models.http.settings import Endpoint, Options, Provider, address_with
from neuraxis.settings import Settings

GEMINI = Provider(
    section="gemini",
    url="https://generativelanguage.googleapis.com/v1beta",
    key_env="GEMINI_API_KEY",
    url_env="GEMINI_BASE_URL",
    path="/v1beta",
)
VERTEX_TOKEN = "VERTEX_ACCESS_TOKEN"


def content_wire(model: str, endpoint: Endpoint, options: Options) -> Wire:
    """Return the protocol of `:streamGenerateContent`."""
    model_path = percent_encoded(model.removeprefix("models/"), safe="")
    url = address_with(endpoint.url, f"/models/{model_path}:streamGenerateContent")
    return Wire(
        url=f"{url}{'&' if '?' in url else '?'}alt=sse",
        headers=_headers,
        missing=missing_options(options),
        body=lambda prompt, origin: request_body(prompt, options, origin),
        reader=ContentReader,
        refused_part=partial(refused_option, PARTS),
        without=partial(without_option, PARTS),
    )


def vertex_wire(model: str, endpoint: Endpoint, options: Options) -> Wire:
    """Return that protocol with a token of Google Cloud."""
    wire = content_wire(model, endpoint, options)
    return replace(wire, headers=endpoint.key_header)


def _headers(key: str) -> Mapping[str, str]:
    return {"x-goog-api-key": key} if key else {}


GeminiModel = partial(HttpModel, GEMINI, content_wire)
from_name = partial(named_model, "gemini", GEMINI, content_wire)


def from_vertex_name(rest: str, settings: Settings) -> HttpModel:
    """Return the model of `vertex:NAME`; project and location are settings.

    The key is a Google Cloud token in `VERTEX_ACCESS_TOKEN`. Not tested against the
    real service.
    """
    key = "a token of Google Cloud; `gcloud auth print-access-token` gives one"
    provider = vertex_provider(settings)
    return named_model("vertex", provider, vertex_wire, rest, settings, key=key)


def vertex_provider(settings: Settings) -> Provider:
    """Return the defaults of Vertex AI for the settings."""
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
        # A project's settings may choose the path, never another host.
        if not all(_is_plain(str(name)) for name in (project, place)):
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
        or_else=", or the project in vertex.project or GOOGLE_CLOUD_PROJECT",
    )


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("-", "").isalnum()
