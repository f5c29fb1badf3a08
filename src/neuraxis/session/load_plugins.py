"""Load a session's plugins into its registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from neuraxis.errors import ConfigError
from neuraxis.messages import Message
from neuraxis.plugins.lock_file import FILE_NAME, check, read_lock
from neuraxis.plugins.registry import Command, Plugin, Registry, close_all
from neuraxis.plugins.source import LogsProblems, find_source, is_builtin
from neuraxis.policy.secrets import Secrets
from neuraxis.session.options import Options
from neuraxis.settings import user_dir

if TYPE_CHECKING:
    from neuraxis.plugins.search.shortlist import Shortlist

IMPORTED = ("openapi", "skill")
"""Prefixes of sources whose descriptions others wrote."""
_PLACES = (*IMPORTED, "mcp")
"""Prefixes of sources that may name a file or folder."""


def build_registry(
    plugins: Iterable[Any],
    workspace: Path,
    lock: str | Path | None,
    secrets: Secrets | None = None,
    strict: bool = False,
) -> Registry:
    """Return the registry; the lock must accept plugins loaded by name.

    Raises:
        ConfigError: a plugin cannot be loaded, lies in the workspace, or is not
            accepted.
    """
    if workspace.exists() and not workspace.is_dir():
        raise ConfigError(
            f"workspace: {workspace}: expected a folder, or a path where there is "
            "nothing yet, got a file"
        )
    closing: list[Callable[[], Any]] = []
    try:
        named = [
            plugin
            for source in _once(plugins)
            for plugin in _load_source(
                check_outside(source, workspace), workspace, closing, secrets, strict
            )
        ]
        file = Path.cwd() / FILE_NAME if lock is None else Path(lock)
        check(
            file,
            # the program's own objects need no acceptance, unless others wrote them
            (
                item.spec
                for is_checked, item in named
                if is_checked or is_imported(item)
            ),
        )
        accepted = _accepted_plugins(file, [plugin for _, plugin in named])
        registry = Registry(
            as_untrusted(plugin)
            if is_imported(plugin) and plugin.spec.name not in accepted
            else plugin
            for _, plugin in named
        )
    except BaseException:
        with suppress(Exception):  # the loading error is the one to raise
            # no loop ran, so nothing is open in one
            close_all(closing, lambda coroutine: coroutine.close())
        raise
    registry.closing = tuple(closing)
    return registry


def _once(plugins: Iterable[Any]) -> Iterator[Any]:
    """Yield the sources.

    Raises:
        ConfigError: one is listed twice.
    """
    seen: dict[Any, Any] = {}
    for source in plugins:
        key = source if isinstance(source, str | Path) else id(source)
        if key in seen:
            name = getattr(source, "__name__", None) or f"{source!r:.80}"
            more = hasattr(source, "__neuraxis_command__")
            hint = " (for a second name, write a def that calls it)" * more
            raise ConfigError(
                f"plugins: {name}: it is listed twice; leave one out{hint}"
            )
        seen[key] = source
        yield source


def _load_source(
    source: Any,
    workspace: Path,
    closing: list[Callable[[], Any]],
    secrets: Secrets | None,
    strict: bool,
) -> list[tuple[bool, Plugin]]:
    """Return a source's plugins, and whether the lock applies."""
    plugin_source = find_source(source)
    if plugin_source is None:
        from neuraxis.plugins.loader import check_code, load_plugin  # reads functions

        plugin = load_plugin(source, strict=strict, secrets=secrets)
        check_code(plugin)
        if plugin.close is not None and plugin is not source:
            closing.append(plugin.close)
        # the package's version already identifies its own plugins
        return [(isinstance(source, str | Path) and not is_builtin(source), plugin)]
    closing.append(plugin_source.close_plugins)
    opened = plugin_source.open_plugins(workspace)
    if isinstance(plugin_source, LogsProblems):
        plugin_source.log_problems()
    # an unreachable server lists nothing that could have changed
    return [(plugin.spec.listed, plugin) for plugin in opened]


def _accepted_plugins(file: Path, plugins: Iterable[Plugin]) -> Mapping[str, Any]:
    """Return the lock file's plugins, if an imported plugin needs them."""
    return (read_lock(file) or {}) if any(map(is_imported, plugins)) else {}


def as_untrusted(plugin: Plugin) -> Plugin:
    """Return an imported plugin whose results are untrusted.

    The user has not accepted its descriptions: they are not in the lock file.
    """
    specs = {
        command.name: replace(
            command,
            effects=replace(
                command.effects, open_world=True, public=False, declared=True
            ),
        )
        for command in plugin.spec.commands
    }
    spec = replace(plugin.spec, commands=tuple(specs.values()))
    commands = {
        name: Command(
            plugin=spec,
            spec=specs[name],
            run=command.run,
            is_async=command.is_async,
            context_name=command.context_name,
        )
        for name, command in plugin.commands.items()
    }
    return Plugin(spec=spec, commands=commands, problems=plugin.problems)


def build_shortlist(registry: Registry, options: Options) -> Shortlist | None:
    """Return the search that chooses each prompt's commands; None: all are shown.

    Its index is cached for the next session with the same plugins.
    """
    limit = options.catalog_limit
    if not isinstance(limit, int):
        return None
    import hashlib  # few sessions need these

    from neuraxis.plugins.search.shortlist import Shortlist

    names = "\n".join(sorted(plugin.spec.name for plugin in registry.plugins))
    digest = hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
    cache = user_dir("cache") / "commands" / f"{digest}.msgpack"
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


def check_outside(source: Any, workspace: Path) -> Any:
    """Return a plugin's source, unless commands could have written it.

    Raises:
        ConfigError: the source lies in the workspace.
    """
    if isinstance(source, str | Path) and not is_builtin(source):
        try:
            path = Path(_path_of(str(source))).expanduser().resolve()
            exists = path.exists()
        except (OSError, RuntimeError, ValueError):
            return source  # no path at all: the loader reports which sources exist
        if exists and path.is_relative_to(workspace.resolve()):
            raise ConfigError(
                f"plugin {source}: it lies in the workspace {workspace}, where a model "
                "can write its code; move it out, or choose another --workspace"
            )
    return source


def _path_of(source: str) -> str:
    """Return the path in a source, without its prefix."""
    kind, colon, rest = source.partition(":")
    if not colon or kind not in _PLACES:
        return source
    rest = rest.strip()
    if kind == "skill" or not rest:
        return rest
    import shlex  # few plugins have a prefix

    return (shlex.split(rest) or [rest])[0]
