"""Cost of a model's replies, in US dollars.

A price in the settings has priority over the table of the package `genai-prices` (extra
`prices`). Nothing is downloaded: the table is part of the package.
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
"""Kinds of model names, and their providers in the table."""
_FREE = ("local", "scripted")
_MILLION = 1_000_000
_TABLE = "genai_prices"


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Price of one model in US dollars per million tokens."""

    input: float
    output: float
    cached: float
    """Price of input tokens that were read from a cache."""

    def cost(self, usage: Usage) -> float:
        """Return the price of one reply."""
        fresh = max(usage.input_tokens - usage.cached_tokens, 0)
        return (
            fresh * self.input
            + usage.cached_tokens * self.cached
            + usage.output_tokens * self.output
        ) / _MILLION


def cost_of(name: str, usage: Usage, settings: Settings) -> float | None:
    """Return the price of one reply; None: unknown.

    Raises:
        ConfigError: a price in the settings is not a number.
    """
    price = _given_price(name, settings)
    if price is not None:
        return price.cost(usage)
    if name.partition(":")[0] in _FREE:
        return 0.0
    return _listed_cost(name, usage)


async def reply_cost(name: str, usage: Usage, settings: Settings) -> float | None:
    """Return `cost_of`; load the table without blocking the event loop."""
    if _TABLE in sys.modules or not _is_listed_kind(name):
        return cost_of(name, usage, settings)
    return await asyncio.to_thread(cost_of, name, usage, settings)


def require_price(name: str, settings: Settings) -> None:
    """Refuse a model whose price is unknown.

    Raises:
        ConfigError: neither the settings nor the table have its price.
        MissingExtra: the table is not installed.
    """
    if _given_price(name, settings) is None and name.partition(":")[0] not in _FREE:
        if _is_listed_kind(name) and _price_lookup(name) is None:
            raise MissingExtra("genai-prices", "prices", "Budget(usd=…)")
        if _listed_cost(name, Usage(input_tokens=1)) is None:
            raise ConfigError(
                f"Budget(usd=…): the price of {name} is not known; give it in US "
                f"dollars for a million tokens as models.{_short(name)}.input_usd and "
                "output_usd in your settings"
            )


def _given_price(name: str, settings: Settings) -> Price | None:
    setting = f"models.{_short(name)}"
    prices: dict[str, float] = {}
    for key in ("input", "output", "cached"):
        value = settings.get(f"{setting}.{key}_usd")
        if value is None:
            continue
        try:
            prices[key] = float(value)
        except (TypeError, ValueError):
            prices[key] = -1.0
        if not 0 <= prices[key] < _MILLION:
            raise ConfigError(
                f"{setting}.{key}_usd: expected US dollars for a million tokens, "
                f"got {quote(value)}"
            )
    if "input" not in prices or "output" not in prices:
        return None
    return Price(
        input=prices["input"],
        output=prices["output"],
        cached=prices.get("cached", prices["input"]),
    )


def _is_listed_kind(name: str) -> bool:
    kind = name.partition(":")[0]
    return kind in PROVIDERS or kind in ("http", "https")


def _short(name: str) -> str:
    """Return the model's name in the settings."""
    if name.startswith(("http://", "https://")):
        return name.partition("#")[2]
    return name.partition(":")[2] or name


def _price_lookup(name: str) -> Callable[[Usage], Any] | None:
    """Return the price table's lookup function; None: it is not installed."""
    try:
        import genai_prices  # large, and needed only for paid models
    except ImportError:
        return None
    kind, _, model = name.partition(":")
    if kind in PROVIDERS:
        provider = {"provider_id": PROVIDERS[kind]}
    else:
        url, _, model = name.partition("#")
        provider = {"provider_api_url": url}

    def look_up(usage: Usage) -> Any:
        counted = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        return (
            cast("Any", genai_prices).calc_price(counted, model, **provider).total_price
        )

    return look_up


def _listed_cost(name: str, usage: Usage) -> float | None:
    look_up = _price_lookup(name) if _is_listed_kind(name) else None
    if look_up is None:
        return None
    try:
        return float(look_up(usage))
    except (LookupError, ValueError):
        return None
