"""Plugins as they are named or handed over flow in; the registry of them flows out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuraxis.errors import ConfigError
from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.lock import FILE_NAME, check, read_lock
from neuraxis.plugins.registry import Command, Plugin, Registry
from neuraxis.settings import user_dir

if TYPE_CHECKING:
    from neuraxis.plugins.search.shortlist import Shortlist

IMPORTED = ("openapi", "skill", "mcp")
"""Prefixes of sources whose descriptions come from others."""


def registry_of(
    plugins: Iterable[Any], workspace: Path, lock: str | Path | None
) -> Registry:
    """The plugins, those that were named accepted by the lock file, if there is one.

    Raises:
        ConfigError: one cannot be loaded, lies in the workspace, or is not accepted.
    """
    if workspace.exists() and not workspace.is_dir():
        raise ConfigError(
            f"workspace: {workspace}: expected a folder, or a path where there is "
            "nothing yet, got a file"
        )
    named = [(source, load_plugin(outside(source, workspace))) for source in plugins]
    file = Path.cwd() / FILE_NAME if lock is None else Path(lock)
    check(
        file,
        # what the program itself hands over needs no acceptance, unless others wrote it
        (
            plugin.spec
            for source, plugin in named
            if isinstance(source, str | Path) or is_imported(plugin)
        ),
    )
    if not any(is_imported(plugin) for _, plugin in named):
        return Registry(plugin for _, plugin in named)
    accepted = read_lock(file) or {}
    return Registry(
        plugin
        if plugin.spec.name in accepted or not is_imported(plugin)
        else untrusted(plugin)
        for _, plugin in named
    )


def untrusted(plugin: Plugin) -> Plugin:
    """Return the plugin with answers that count as written by others.

    Nobody accepted what an imported plugin says: no lock file holds it.
    """
    specs = {
        item.name: replace(
            item, effects=replace(item.effects, open_world=True, declared=True)
        )
        for item in plugin.spec.commands
    }
    spec = replace(plugin.spec, commands=tuple(specs.values()))
    commands = {
        name: Command(
            plugin=spec,
            spec=specs[name],
            run=item.run,
            exact=item.exact,
            is_async=item.is_async,
            context_name=item.context_name,
        )
        for name, item in plugin.commands.items()
    }
    return Plugin(spec=spec, commands=commands, problems=plugin.problems)


def shortlist_of(
    registry: Registry, budget: int | None, always_on: Sequence[str]
) -> Shortlist | None:
    """Return what chooses the commands of each prompt; None: all are shown.

    Its index is kept in the user's cache, for the same set of plugins the next time.
    """
    if budget is None:
        return None
    import hashlib  # few sessions need these

    from neuraxis.plugins.search.shortlist import Shortlist

    names = "\n".join(sorted(plugin.spec.name for plugin in registry.plugins))
    mark = hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
    cache = user_dir("cache") / "commands" / f"{mark}.msgpack"
    return Shortlist(registry, budget=budget, always_on=always_on, cache=cache)


def is_imported(plugin: Plugin) -> bool:
    """Check whether a bridge made the plugin from a description that others wrote."""
    return plugin.spec.source.partition(":")[0] in IMPORTED


def outside(source: Any, workspace: Path) -> Any:
    """A plugin's source, unless it is code in the folder that commands write to.

    Raises:
        ConfigError: it lies there.
    """
    if isinstance(source, str | Path) and not str(source).startswith("neuraxis:"):
        try:
            kind, colon, rest = str(source).partition(":")
            bare = rest.split(" ")[0] if colon and kind in IMPORTED else source
            folder = Path(bare).expanduser().resolve()
            is_there = folder.exists()
        except (OSError, RuntimeError, ValueError):
            return source  # no path at all: the loader says what it can be
        if is_there and folder.is_relative_to(workspace.resolve()):
            raise ConfigError(
                f"plugin {source}: it lies in the workspace {workspace}, where a model "
                "can write its code; move it out, or choose another --workspace"
            )
    return source
