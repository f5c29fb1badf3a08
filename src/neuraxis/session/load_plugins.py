"""Load a session's plugins into its registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from neuraxis.errors import ConfigError
from neuraxis.messages import Message
from neuraxis.plugins.loader import check_code, is_builtin, load_plugin
from neuraxis.plugins.lock_file import FILE_NAME, check, read_lock
from neuraxis.plugins.registry import Command, Plugin, Registry, close_all
from neuraxis.plugins.source import LogsProblems, find_source
from neuraxis.policy.secrets import Secrets
from neuraxis.session.options import Options
from neuraxis.settings import user_dir

if TYPE_CHECKING:
    from neuraxis.plugins.search.shortlist import Shortlist

IMPORTED = ("openapi", "skill")
"""Prefixes of sources whose descriptions others wrote."""
_PLACES = (*IMPORTED, "mcp")
"""Prefixes of sources that may name a file or folder."""


def registry_of(
    plugins: Iterable[Any],
    workspace: Path,
    lock: str | Path | None,
    secrets: Secrets | None = None,
    strict: bool = False,
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
    closing: list[Callable[[], Any]] = []
    try:
        named = [
            each
            for source in plugins
            for each in _loaded(
                outside(source, workspace), workspace, closing, secrets, strict
            )
        ]
        file = Path.cwd() / FILE_NAME if lock is None else Path(lock)
        check(
            file,
            # what the program itself hands over needs no acceptance, unless others
            # wrote it
            (
                item.spec
                for is_checked, item in named
                if is_checked or is_imported(item)
            ),
        )
        accepted = _accepted(file, [plugin for _, plugin in named])
        registry = Registry(
            untrusted(plugin)
            if is_imported(plugin) and plugin.spec.name not in accepted
            else plugin
            for _, plugin in named
        )
    except BaseException:
        with suppress(Exception):  # the user is told what could not be loaded
            # no loop ran, so nothing is open in one
            close_all(closing, lambda coroutine: coroutine.close())
        raise
    registry.closing = tuple(closing)
    return registry


def _loaded(
    source: Any,
    workspace: Path,
    closing: list[Callable[[], Any]],
    secrets: Secrets | None,
    strict: bool,
) -> list[tuple[bool, Plugin]]:
    """Return a source's plugins, and whether the lock applies."""
    outer = find_source(source)
    if outer is None:
        plugin = load_plugin(source, strict=strict, secrets=secrets)
        check_code(plugin)
        if plugin.close is not None and plugin is not source:
            closing.append(plugin.close)
        # the version of the package says what its own plugins are
        return [(isinstance(source, str | Path) and not is_builtin(source), plugin)]
    closing.append(outer.close_plugins)
    opened = outer.open_plugins(workspace)
    if isinstance(outer, LogsProblems):
        outer.log_problems()
    # a server that cannot be reached says nothing that could have changed
    return [(each.spec.listed, each) for each in opened]


def _accepted(file: Path, plugins: Iterable[Plugin]) -> Mapping[str, Any]:
    """Return the lock file's plugins where an imported one needs it."""
    return (read_lock(file) or {}) if any(map(is_imported, plugins)) else {}


def untrusted(plugin: Plugin) -> Plugin:
    """Return the plugin with answers that count as written by others.

    Nobody accepted what an imported plugin says: no lock file holds it.
    """
    specs = {
        item.name: replace(
            item,
            effects=replace(item.effects, open_world=True, public=False, declared=True),
        )
        for item in plugin.spec.commands
    }
    spec = replace(plugin.spec, commands=tuple(specs.values()))
    commands = {
        name: Command(
            plugin=spec,
            spec=specs[name],
            run=item.run,
            is_async=item.is_async,
            context_name=item.context_name,
        )
        for name, item in plugin.commands.items()
    }
    return Plugin(spec=spec, commands=commands, problems=plugin.problems)


def shortlist_of(registry: Registry, options: Options) -> Shortlist | None:
    """Return what chooses the commands of each prompt; None: all are shown.

    Its index is kept in the user's cache, for the same set of plugins the next time.
    """
    limit = options.catalog_limit
    if not isinstance(limit, int):
        return None
    import hashlib  # few sessions need these

    from neuraxis.plugins.search.shortlist import Shortlist

    names = "\n".join(sorted(plugin.spec.name for plugin in registry.plugins))
    mark = hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
    cache = user_dir("cache") / "commands" / f"{mark}.msgpack"
    return Shortlist(
        registry,
        budget=limit,
        always_on=options.always_shown,
        cache=cache,
        embed=options.embed,
    )


def choose_shown(
    shortlist: Shortlist | None,
    request: str,
    history: Iterable[Message],
    planned: Iterable[tuple[str, str]],
) -> None:
    """Choose the commands of a request's prompts, if not all are shown."""
    if shortlist is not None:
        shortlist.choose(request, [item.content for item in history], planned)


def is_imported(plugin: Plugin) -> bool:
    """Check whether a plugin's description was written by others."""
    return plugin.spec.source.partition(":")[0] in IMPORTED


def outside(source: Any, workspace: Path) -> Any:
    """Return a plugin's source, refused if commands could have written it.

    Raises:
        ConfigError: it is code in the workspace.
    """
    if isinstance(source, str | Path) and not is_builtin(source):
        try:
            folder = Path(_place(str(source))).expanduser().resolve()
            is_there = folder.exists()
        except (OSError, RuntimeError, ValueError):
            return source  # no path at all: the loader reports what is accepted
        if is_there and folder.is_relative_to(workspace.resolve()):
            raise ConfigError(
                f"plugin {source}: it lies in the workspace {workspace}, where a model "
                "can write its code; move it out, or choose another --workspace"
            )
    return source


def _place(source: str) -> str:
    """Return the path in a source: all, or behind its prefix."""
    kind, colon, rest = source.partition(":")
    if not colon or kind not in _PLACES:
        return source
    rest = rest.strip()
    if kind == "skill" or not rest:
        return rest
    import shlex  # few plugins have a prefix

    return (shlex.split(rest) or [rest])[0]
