"""Plugin sources: servers and files that give plugins to a session.

An MCP server is one: it is connected to when the session is made. A text such as
`mcp:npx some-server` or `skill:FOLDER` names one, in settings and on the command line.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from neuraxis.errors import ConfigError, NeuraxisError
from neuraxis.formatting import quote
from neuraxis.plugins.registry import Plugin
from neuraxis.plugins.source_files import first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILTIN_PREFIX = "neuraxis:"
"""Begin of the names of plugins that come with the package."""
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


@runtime_checkable
class LogsProblems(Protocol):
    """Plugin source that logs the tools it cannot use."""

    def log_problems(self) -> None:
        """Log each problem once."""
        ...


def is_builtin(source: Any) -> bool:
    """Check whether a source names a plugin that comes with the package."""
    return isinstance(source, str) and source.strip().startswith(BUILTIN_PREFIX)


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
            ConfigError: the source cannot be read, or has mistakes.
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
    if target := _OURS.get(scheme):
        module, _, function = target.partition(":")
        return getattr(importlib.import_module(module), function)(rest.strip())
    point = next(iter(_installed(scheme)), None)
    return None if point is None else InstalledSource(point, rest.strip())


def _installed(scheme: str) -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, seldom needed

    return entry_points(group=GROUP, name=scheme)


class InstalledSource:
    """Plugin source of an installed package, whose mistakes are named.

    Args:
        point: its entry point.
        text: the text after the scheme.

    Raises:
        ConfigError: it cannot be imported, or makes no source of the text.
    """

    def __init__(self, point: EntryPoint, text: str) -> None:
        self._point = point
        source = self._run("it was imported", point.load)
        if not callable(source):
            raise self._wrong(f"expected a function, got {quote(source)}")
        self._source = self._run(f"it was given {text!r}", lambda: source(text))
        if not isinstance(self._source, PluginSource):
            raise self._wrong(
                "expected it to return an object with open_plugins and close_plugins, "
                f"got {quote(self._source)}"
            )

    def open_plugins(self, workspace: Path) -> Sequence[Plugin]:
        """Return the source's plugins.

        Raises:
            ConfigError: it has none.
        """
        opened = partial(self._source.open_plugins, workspace)
        found: Any = self._run("its plugins were opened", opened)
        listed = cast("list[Any]", [*found]) if isinstance(found, Sequence) else [found]
        if not all(isinstance(plugin, Plugin) for plugin in listed):
            raise self._wrong(
                f"expected open_plugins to return a list of Plugin, got {quote(found)}"
            )
        return listed

    def close_plugins(self) -> None:
        """Release the source's processes, connections and threads."""
        self._source.close_plugins()

    def log_problems(self) -> None:
        """Log each problem once, if the source does."""
        if isinstance(self._source, LogsProblems):
            self._source.log_problems()

    def _run(self, when: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except NeuraxisError:
            raise
        except (Exception, SystemExit) as error:
            raise self._wrong(f"{first_line(error)}, when {when}") from error

    def _wrong(self, problem: str) -> ConfigError:
        point = self._point
        package = point.dist.name if point.dist else point.module
        return ConfigError(
            f"plugin source {point.name!r} of the package {package} ({point.value}): "
            f"{problem}. Tell the package's author, or remove the entries that begin "
            f'with "{point.name}:" from your plugins'
        )
