"""Offline planner, the model `local:`: no weights, no server, no key."""

from __future__ import annotations

from neuraxis.errors import ConfigError
from neuraxis.models.offline.model import OfflinePlanner
from neuraxis.settings import Settings

__all__ = ["OfflinePlanner", "from_name"]


def from_name(rest: str, settings: Settings) -> OfflinePlanner:
    """Return the model of `local:`.

    Raises:
        ConfigError: there is a name behind the colon.
    """
    if rest:
        raise ConfigError(f"model local:{rest}: expected local: alone")
    return OfflinePlanner()
