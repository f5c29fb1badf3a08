"""Price of what a model wrote, in US dollars.

A price that the settings give wins; else the table of the package `genai-prices`
counts, which is the extra `prices`. Nothing is fetched: the table is the package's.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, cast

import msgspec

from neuraxis.errors import ConfigError, MissingExtra
from neuraxis.formatting import quote
from neuraxis.messages import Usage
from neuraxis.settings import Settings

PROVIDERS = {
    "openai": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "vertex": "google",
    "bedrock": "aws",
    "azure": "azure",
}
"""Kinds of model names, and what the table calls their providers."""
_FREE = ("local", "scripted")
_MILLION = 1_000_000
_TABLE = "genai_prices"


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Price of one model in US dollars for a million tokens."""

    input: float
    output: float
    cached: float
    """Of input that was read from a cache."""

    def cost(self, usage: Usage) -> float:
        """Return the price of one reply."""
        fresh = max(usage.input_tokens - usage.cached_tokens, 0)
        return (
            fresh * self.input
            + usage.cached_tokens * self.cached
            + usage.output_tokens * self.output
        ) / _MILLION


def cost_of(name: str, usage: Usage, settings: Settings) -> float | None:
    """Return the price of one reply; None: not known.

    Raises:
        ConfigError: a price of the settings is no number.
    """
    own = _given_price(name, settings)
    if own is not None:
        return own.cost(usage)
    if name.partition(":")[0] in _FREE:
        return 0.0
    return _listed_cost(name, usage)


async def reply_cost(name: str, usage: Usage, settings: Settings) -> float | None:
    """Return `cost_of` without holding the event loop while the table is loaded."""
    if _TABLE in sys.modules or not _is_listed_kind(name):
        return cost_of(name, usage, settings)
    return await asyncio.to_thread(cost_of, name, usage, settings)


def require_price(name: str, settings: Settings) -> None:
    """Refuse a model whose price is not known.

    Raises:
        ConfigError: neither the settings nor the table have its price.
        MissingExtra: the table is not installed.
    """
    if _given_price(name, settings) is None and name.partition(":")[0] not in _FREE:
        if _is_listed_kind(name) and _listed(name) is None:
            raise MissingExtra("genai-prices", "prices", "Budget(usd=…)")
        if _listed_cost(name, Usage(input_tokens=1)) is None:
            raise ConfigError(
                f"Budget(usd=…): the price of {name} is not known; give it in US "
                f"dollars for a million tokens as models.{_short(name)}.input_usd and "
                "output_usd in your settings"
            )


def _given_price(name: str, settings: Settings) -> Price | None:
    where = f"models.{_short(name)}"
    found: dict[str, float] = {}
    for key in ("input", "output", "cached"):
        value = settings.get(f"{where}.{key}_usd")
        if value is None:
            continue
        try:
            found[key] = float(value)
        except (TypeError, ValueError):
            found[key] = -1.0
        if not 0 <= found[key] < _MILLION:
            raise ConfigError(
                f"{where}.{key}_usd: expected US dollars for a million tokens, "
                f"got {quote(value)}"
            )
    if "input" not in found or "output" not in found:
        return None
    return Price(
        input=found["input"],
        output=found["output"],
        cached=found.get("cached", found["input"]),
    )


def _is_listed_kind(name: str) -> bool:
    kind = name.partition(":")[0]
    return kind in PROVIDERS or kind in ("http", "https")


def _short(name: str) -> str:
    """Return the name that a model has in the settings."""
    if name.startswith(("http://", "https://")):
        return name.partition("#")[2]
    return name.partition(":")[2] or name


def _listed(name: str) -> Callable[[Usage], Any] | None:
    """Return the price table's look-up; None: it is not installed."""
    try:
        import genai_prices  # large, and needed for models that cost something
    except ImportError:
        return None
    kind, _, rest = name.partition(":")
    if kind in PROVIDERS:
        where = {"provider_id": PROVIDERS[kind]}
    else:
        url, _, rest = name.partition("#")
        where = {"provider_api_url": url}

    def look_up(usage: Usage) -> Any:
        counted = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        return cast("Any", genai_prices).calc_price(counted, rest, **where).total_price

    return look_up


def _listed_cost(name: str, usage: Usage) -> float | None:
    look_up = _listed(name) if _is_listed_kind(name) else None
    if look_up is None:
        return None
    try:
        return float(look_up(usage))
    except (LookupError, ValueError):
        return None
