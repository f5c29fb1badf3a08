"""The embedded model `local:`: settings in, a `Model` out; no server, no key."""

from __future__ import annotations

from neuraxis.errors import ConfigError
from neuraxis.models.local.lazy import LazyWriter
from neuraxis.models.local.model import LocalModel
from neuraxis.settings import Settings

__all__ = ["LazyWriter", "LocalModel", "from_name"]

KNOWN = ("smollm2",)


def from_name(rest: str, settings: Settings) -> LocalModel:
    """The model of `local:` or `local:smollm2`.

    Settings: `local.threads`, `local.fetch` ("never": no download while running),
    `local.weights_unchecked` (take another file that NEURAXIS_WEIGHTS names).

    Raises:
        ConfigError: the name behind the colon, or a setting, is none of ours.
    """
    if rest and rest not in KNOWN:
        raise ConfigError(
            f"model local:{rest}: expected local: or local:{KNOWN[0]}, the only "
            "embedded model there is."
        )
    threads = settings.get("local.threads")
    try:
        number = int(threads) if threads is not None else None
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"local.threads: expected a number of threads, got {threads!r}"
        ) from error
    return LocalModel(
        LazyWriter(
            threads=number,
            unchecked=_flag(settings.get("local.weights_unchecked")),
            may_fetch=settings.get("local.fetch") != "never",
        )
    )


def _flag(value: object) -> bool:
    return str(value).casefold() in ("1", "true", "yes", "on")
