"""Bridges: MCP servers and other formats as plugins, and the reverse.

Each name is looked up when it is first asked for, and its extra is imported when used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuraxis.bridges.mcp_client.source import mcp

_WHERE = {
    "mcp": "neuraxis.bridges.mcp_client.source",
}

__all__ = ["mcp"]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'neuraxis.bridges' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(where), name)
    return value
