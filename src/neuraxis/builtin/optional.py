"""Import an optional package, or say how to install it."""

from __future__ import annotations

import importlib
from typing import Any

from neuraxis.errors import MissingExtra

_INSTALLED_AS = {"PIL": "pillow"}


def needed(module: str, extra: str, purpose: str) -> Any:
    """Import an optional package, untyped, when a command first needs it.

    Raises:
        MissingExtra: it is not installed; the sentence says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        name = _INSTALLED_AS.get(package, package)
        raise MissingExtra(name, extra, purpose) from None
