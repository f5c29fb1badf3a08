"""Search with the provider of the setting `search.provider`.

The providers are `google` (Programmable Search Engine), `searxng` (the user's own
server), `documents` (a folder on this computer) and `ddgs` (the package of the extra
`search`).
"""

from __future__ import annotations

from neuraxis.builtin.web_search import documents, providers
from neuraxis.builtin.web_search.providers import Hit
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.settings import Settings
from neuraxis.specs import Json

PROVIDERS = ("google", "searxng", "documents", "ddgs")
SET_UP = (
    "No search provider is set up. In neuraxis.toml, under [search], set one of: "
    'provider = "documents" and folder = "FOLDER" (searches files of this computer); '
    'provider = "searxng" and url = "https://SERVER"; '
    'provider = "google", engine = "ENGINE_ID" and the key in the environment variable '
    "GOOGLE_API_KEY; or provider = \"ddgs\" after pip install 'neuraxis[search]'."
)


def search(query: str, context: Context) -> dict[str, Json]:
    """Search with the configured provider; unique hits, best first."""
    if not query.strip():
        raise CommandError("The query is empty: give the words to search for.")
    provider = _provider(context)
    context.progress(f"searching with {provider}", None)
    most = _most(context)
    hits: dict[str, Hit] = {}
    for hit in _hits(provider, query.strip(), most, context):
        hits.setdefault(hit.url, hit)
    results = list(hits.values())[:most]
    return {
        "urls": [hit.url for hit in results],
        "results": [
            {"title": hit.title, "url": hit.url, "snippet": hit.snippet}
            for hit in results
        ],
    }


def _hits(provider: str, query: str, most: int, context: Context) -> list[Hit]:
    match provider:
        case "google":
            return providers.google(query, most, context)
        case "searxng":
            return providers.searxng(query, most, context)
        case "ddgs":
            return providers.ddgs(query, most, context)
        case _:
            return documents.search(query, most, context)


def _provider(context: Context) -> str:
    """Return the named provider, else the first that is configured."""
    settings = context.settings
    provider = settings.get("search.provider")
    if provider is not None:
        if provider not in PROVIDERS:
            raise CommandError(
                f"The setting search.provider is {provider!r}; it can be one of "
                f"{', '.join(PROVIDERS)}."
            )
        return str(provider)
    if configured := provider_of(settings):
        return configured
    raise CommandError(SET_UP)


def provider_of(settings: Settings) -> str:
    """Return the name of the first configured provider, or empty."""
    if providers.google_key(settings) and settings.get("search.engine"):
        return "google"
    if settings.get("search.url"):
        return "searxng"
    return "documents" if settings.get("search.folder") else ""


def _most(context: Context) -> int:
    setting = context.settings.get("search.results", 10)
    try:
        return max(1, min(50, int(setting)))
    except (TypeError, ValueError):
        raise CommandError(
            f"The setting search.results must be a whole number, not {setting!r}."
        ) from None
