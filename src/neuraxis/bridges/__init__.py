"""Bridges: what people already have becomes plugins, and plugins become theirs.

Each function returns a `Plugin` for `Session(plugins=[...])`. What needs another
package imports it when it is used.
"""

from __future__ import annotations

from neuraxis.bridges.openapi.plugin import openapi
from neuraxis.bridges.skills import skill, skills

__all__ = ["openapi", "skill", "skills"]
