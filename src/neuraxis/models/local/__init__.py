"""Embedded model `local:`: runs in this process, without server or key."""

from __future__ import annotations

from neuraxis.errors import ConfigError
from neuraxis.models.gguf.lazy import STATES_MB, LazyWriter
from neuraxis.models.local.model import LocalModel
from neuraxis.settings import Settings

__all__ = ["LazyWriter", "LocalModel", "from_name"]

KNOWN = ("smollm2",)


def from_name(rest: str, settings: Settings) -> LocalModel:
    """The model of `local:` or `local:smollm2`.

    Settings: `local.threads`, `local.fetch` ("never": no download while running),
    `local.weights_unchecked` (take another file that NEURAXIS_WEIGHTS names),
    `local.states_mb` (what constant parts of prompts may take on the disk; 0: nothing).

    Raises:
        ConfigError: the name behind the colon, or a setting, is none of ours.
    """
    if rest and rest not in KNOWN:
        raise ConfigError(
            f"model local:{rest}: expected local: or local:{KNOWN[0]}, the only "
            "embedded model there is."
        )
    states = _number(settings, "local.states_mb", "megabytes")
    return LocalModel(
        LazyWriter(
            threads=_number(settings, "local.threads", "threads"),
            states_mb=STATES_MB if states is None else states,
            unchecked=_flag(settings.get("local.weights_unchecked")),
            may_fetch=settings.get("local.fetch") != "never",
        )
    )


def _number(settings: Settings, name: str, of: str) -> int | None:
    value = settings.get(name)
    try:
        return int(value) if value is not None else None
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{name}: expected a number of {of}, got {value!r}"
        ) from error


def _flag(value: object) -> bool:
    return str(value).casefold() in ("1", "true", "yes", "on")
