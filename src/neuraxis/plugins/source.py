"""Plugin sources: servers and files that give plugins to a session.

An MCP server is one: it is connected to when the session is made. A text such as
`mcp:npx some-server` or `skill:FOLDER` names one, in settings and on the command line.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from neuraxis.plugins.registry import Plugin

GROUP = "neuraxis.plugin_sources"
"""The entry points of other packages' sources, each by its scheme."""
_OURS: Mapping[str, str] = {
    "mcp": "neuraxis.bridges.mcp_client.source:mcp",
    "openapi": "neuraxis.bridges.openapi_client.plugin:from_name",
    "skill": "neuraxis.bridges.agent_skills:from_name",
}
"""Scheme -> `module:function` that makes the source from the rest of the text."""


@runtime_checkable
class PluginSource(Protocol):
    """Gives plugins that live as long as a session does.

    Both methods may be called by several sessions; the last `close_plugins` counts.
    """

    def open_plugins(self, workspace: Path) -> Sequence[Plugin]:
        """Return the plugins; one that cannot be reached has no commands."""
        ...

    def close_plugins(self) -> None:
        """Release what `open_plugins` holds: processes, connections, threads."""
        ...


class ReadSource:
    """Plugin source that is read for each session.

    Args:
        read: returns the plugin.
    """

    def __init__(self, read: Callable[[], Plugin]) -> None:
        self._read = read

    def open_plugins(self, workspace: Path) -> Sequence[Plugin]:
        """Read the plugin.

        Raises:
            ConfigError: there is nothing that can be read, or it has mistakes.
        """
        return (self._read(),)

    def close_plugins(self) -> None:
        """Do nothing: nothing is held."""


def find_source(source: Any) -> PluginSource | None:
    """Return the plugin source that a value is or names, or None.

    Raises:
        ConfigError: the rest of the text names nothing that the scheme knows.
    """
    if not isinstance(source, str):
        is_source = hasattr(source, "open_plugins") and not isinstance(source, type)
        return cast("PluginSource", source) if is_source else None
    scheme, colon, rest = source.strip().partition(":")
    if not colon or not scheme.isidentifier() or scheme == "neuraxis":
        return None
    target = _OURS.get(scheme) or _installed(scheme)
    if not target:
        return None
    module, _, function = target.partition(":")
    make = getattr(importlib.import_module(module), function)
    return cast("Callable[[str], PluginSource]", make)(rest.strip())


def _installed(scheme: str) -> str:
    from importlib.metadata import entry_points  # slow to import, seldom needed

    return next((point.value for point in entry_points(group=GROUP, name=scheme)), "")
