"""Bridges: MCP servers, OpenAPI documents and skills as plugins.

Each name is looked up when it is first asked for, and its extra is imported when used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuraxis.bridges.agent_skills import skill, skills
    from neuraxis.bridges.mcp_client.source import mcp
    from neuraxis.bridges.openapi_client.plugin import openapi

_WHERE = {
    "mcp": "neuraxis.bridges.mcp_client.source",
    "openapi": "neuraxis.bridges.openapi_client.plugin",
    "skill": "neuraxis.bridges.agent_skills",
    "skills": "neuraxis.bridges.agent_skills",
}

__all__ = ["mcp", "openapi", "skill", "skills"]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'neuraxis.bridges' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(where), name)
    return value
