"""Query search servers, through `sandbox.http` only.

The exception is `ddgs`: that package sends its own requests, to search engines of its
choice. It is used only if the setting names it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from neuraxis.errors import CommandError, needed
from neuraxis.plugins.context import Context
from neuraxis.sandbox.http import client
from neuraxis.settings import Settings
from neuraxis.specs import Json

_GOOGLE = "https://www.googleapis.com/customsearch/v1"
_LIMITS = client.Limits(seconds=15, redirects=0, content_types=("application/json",))


class Hit(Struct, frozen=True, kw_only=True):
    """One search result; `url` may be a workspace path for documents."""

    title: str
    url: str
    snippet: str


def google_key(settings: Settings) -> str | None:
    """Return the key from the variable that `search.key_env` names."""
    name = settings.get("search.key_env", "GOOGLE_API_KEY")
    return os.environ.get(str(name)) or None


def google(query: str, most: int, context: Context) -> list[Hit]:
    """Search with Google Programmable Search (needs key and engine id)."""
    settings = context.settings
    key, engine = google_key(settings), settings.get("search.engine")
    if not key or not engine:
        name = settings.get("search.key_env", "GOOGLE_API_KEY")
        raise CommandError(
            f"Searching with google needs a key in the environment variable {name} "
            "and the setting search.engine (the id of the search engine)."
        )
    base = str(settings.get("search.google_url", _GOOGLE))
    query_fields = {"key": key, "cx": engine, "q": query, "num": min(most, 10)}
    tree = _ask(base, query_fields, "google", context)
    return _read(tree.get("items"), ("title", "link", "snippet"))


def searxng(query: str, most: int, context: Context) -> list[Hit]:
    """Search with SearXNG; its `formats` setting must include json."""
    url = context.settings.get("search.url")
    if not url:
        raise CommandError(
            "Searching with searxng needs the setting search.url, such as "
            "https://search.example.org."
        )
    base = str(url).rstrip("/") + "/search"
    tree = _ask(base, {"q": query, "format": "json"}, "searxng", context)
    return _read(tree.get("results"), ("title", "url", "content"))[:most]


def ddgs(query: str, most: int, context: Context) -> list[Hit]:
    """Search with the package `ddgs`, which uses public search engines."""
    package = needed("ddgs", "search", "Searching with ddgs")
    try:
        results: Json = package.DDGS(timeout=10).text(query, max_results=most)
    except Exception as error:  # noqa: BLE001 - the package raises many kinds of its own
        raise CommandError(
            f"The search with ddgs failed ({type(error).__name__})."
        ) from None
    return _read(results, ("title", "href", "body"))


def _ask(
    base: str, query_fields: Mapping[str, object], name: str, context: Context
) -> dict[str, Json]:
    # Errors never quote the request: its query string holds the key.
    try:
        answer = client.fetch(
            f"{base}?{urlencode(query_fields)}",
            limits=_LIMITS,
            allowed_hosts=(*context.allowed_hosts, *_server(base, name, context)),
            accept="application/json",
            cancelled=context.cancelled,
        )
    except client.RequestRefused as error:
        detail = str(error)
        # The parser quotes the URL; other messages name only the host.
        if '"' in detail or (
            query_fields.get("key") and str(query_fields["key"]) in detail
        ):
            detail = "its address is not allowed"
        raise CommandError(f"The search with {name} failed: {detail}") from None
    except client.RequestFailed as error:
        raise CommandError(f"The search with {name} failed: {error}") from None
    if answer.status != 200:
        hint = {
            403: "it refuses the request (key, quota, or JSON is switched off)",
            429: "too many searches were made; wait",
        }.get(answer.status, f"it answered {answer.status}")
        raise CommandError(f"The search with {name} failed: {hint}.")
    try:
        tree = json.loads(answer.body)
    except ValueError:
        tree = None
    if not isinstance(tree, dict):
        raise CommandError(f"The search with {name} failed: it did not answer in JSON.")
    return cast("dict[str, Json]", tree)


def _server(base: str, name: str, context: Context) -> tuple[str, ...]:
    """Return the allowed hosts: the server that the user's setting names."""
    if name != "searxng" or context.settings.is_of_project("search.url"):
        return ()
    try:
        parts = urlsplit(base)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ()
    host = parts.hostname or ""
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}",)


def _read(items: Json, keys: tuple[str, str, str]) -> list[Hit]:
    """Return the entries of a response that have a web address."""
    hits: list[Hit] = []
    if not isinstance(items, list):
        return hits
    for item in cast("list[Any]", items):
        if not isinstance(item, Mapping):
            continue
        entry = cast("Mapping[str, Json]", item)
        title, url, snippet = (_line(entry.get(key)) for key in keys)
        if url.startswith(("http://", "https://")):
            hits.append(Hit(title=title, url=url, snippet=snippet))
    return hits


def _line(value: Json) -> str:
    """Return a value of a response as one bounded line."""
    return " ".join(value.split())[:1000] if isinstance(value, str) else ""
