"""Bridges: MCP servers, OpenAPI documents and skills as plugins.

Each name is imported on first access, and its extra when it is used.
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
    module_name = _WHERE.get(name)
    if module_name is None:
        raise AttributeError(f"module 'neuraxis.bridges' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module_name), name)
    return value
