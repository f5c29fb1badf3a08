"""Load a session's plugins into its registry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neuraxis.errors import ConfigError
from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.lock import FILE_NAME, check
from neuraxis.plugins.registry import Plugin, Registry
from neuraxis.plugins.source import PluginSource, find_source


def registry_of(
    plugins: Iterable[Any], workspace: Path, lock: str | Path | None
) -> Registry:
    """Return the registry; the lock must accept plugins loaded by name.

    Raises:
        ConfigError: one cannot be loaded, lies in the workspace, or is not accepted.
    """
    if workspace.exists() and not workspace.is_dir():
        raise ConfigError(
            f"workspace: {workspace}: expected a folder, or a path where there is "
            "nothing yet, got a file"
        )
    opened: list[PluginSource] = []
    try:
        named = [
            each
            for source in plugins
            for each in _loaded(outside(source, workspace), workspace, opened)
        ]
        check(
            Path.cwd() / FILE_NAME if lock is None else Path(lock),
            # what the program itself hands over needs no acceptance
            (plugin.spec for is_checked, plugin in named if is_checked),
        )
        registry = Registry(plugin for _, plugin in named)
    except BaseException:
        for source in opened:
            source.close_plugins()
        raise
    registry.sources = tuple(opened)
    return registry


def _loaded(
    source: Any, workspace: Path, opened: list[PluginSource]
) -> list[tuple[bool, Plugin]]:
    """The plugins of one source, each with whether the lock file must hold it."""
    outer = find_source(source)
    if outer is None:
        return [(isinstance(source, str | Path), load_plugin(source))]
    opened.append(outer)
    # a server that cannot be reached says nothing that could have changed
    return [(each.spec.listed, each) for each in outer.open_plugins(workspace)]


def outside(source: Any, workspace: Path) -> Any:
    """Return a plugin's source, refused if commands could have written it.

    Raises:
        ConfigError: it is code in the workspace.
    """
    if isinstance(source, str | Path) and not str(source).startswith("neuraxis:"):
        try:
            folder = Path(source).expanduser().resolve()
            is_there = folder.exists()
        except (OSError, RuntimeError, ValueError):
            return source  # no path at all: the loader reports what is accepted
        if is_there and folder.is_relative_to(workspace.resolve()):
            raise ConfigError(
                f"plugin {source}: it lies in the workspace {workspace}, where a model "
                "can write its code; move it out, or choose another --workspace"
            )
    return source
