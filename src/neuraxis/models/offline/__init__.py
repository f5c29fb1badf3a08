"""Offline planner, the model `local:`: no weights, no server, no key."""

from neuraxis.models import Model
from neuraxis.models.offline.model import OfflinePlanner
from neuraxis.settings import Settings


def from_name(rest: str, settings: Settings) -> Model:
    """Return the planner of `local:`; a name behind it names weights."""
    if rest:
        from neuraxis.models.gguf.model import from_name as weights_named

        return weights_named(rest, settings)
    return OfflinePlanner()
