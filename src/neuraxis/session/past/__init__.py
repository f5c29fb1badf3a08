"""Earlier part of a session, read from its journal.

Most sessions have none, so these modules load at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuraxis.session.past import continued, requirements, resume, waiting

__all__ = ["continued", "requirements", "resume", "waiting"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
