"""Plugin sources on the command line: load them, add one to settings."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuraxis.cli.display.text import echo
from neuraxis.cli.standard_output import answers_alone
from neuraxis.errors import ConfigError, ManifestError, error_of

if TYPE_CHECKING:
    from neuraxis.specs import PluginSpec

FILE_NAME = "neuraxis.toml"
_LISTED = 10
"""Commands of a plugin whose names are shown."""
_LIST = re.compile(r"^plugins[ \t]*=[ \t]*\[", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


@answers_alone
def load_all(sources: Sequence[str]) -> tuple[list[Any], list[ManifestError]]:
    """Return the plugins of all sources, and the errors of others.

    MCP servers are started, listed and ended; plugins are closed.
    """
    from neuraxis.plugins.loader import load_plugins
    from neuraxis.plugins.registry import close_all
    from neuraxis.plugins.source import find_source

    plugins: list[Any] = []
    errors: list[ManifestError] = []
    for text in sources:
        try:
            source = find_source(text)
        except ConfigError as error:
            errors.append(error_of(text, str(error)))
            continue
        if source is None:
            loaded, wrong = load_plugins([text])
            plugins += loaded
            errors += wrong
            closers = [each.close for each in loaded if each.close is not None]
            # no loop ran, so nothing is open in one
            close_all(closers, lambda coroutine: coroutine.close())
            continue
        try:
            opened = source.open_plugins(Path.cwd())
        except ManifestError as error:
            errors.append(error)
            continue
        except ConfigError as error:
            errors.append(error_of(text, str(error)))
            continue
        finally:
            source.close_plugins()
        if not opened:  # such as a file whose only server has a wrong address
            said = "; ".join(getattr(source, "problems", ()))
            errors.append(error_of(text, said or "it names no plugin"))
        for plugin in opened:
            if plugin.spec.listed:
                plugins.append(plugin)
            else:
                errors.append(ManifestError(plugin.problems))
    return plugins, errors


def add_to_settings(source: str, folder: Path | None = None) -> Path:
    """Add a source to `plugins` in the folder's `neuraxis.toml`.

    Raises:
        ConfigError: the file is no TOML, or writes its list in another way.
    """
    import tomllib  # few commands write settings

    file = (folder or Path.cwd()) / FILE_NAME
    text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: {error}") from None
    plugins: Any = tree.get("plugins", [])
    if source in plugins:
        return file
    written = json.dumps(source, ensure_ascii=False)
    table = _TABLE.search(text)  # keys outside tables precede all tables
    at = table.start() if table else len(text)
    match = _LIST.search(text, 0, at)
    if match is not None:
        comma = ", " if plugins else ""
        new = f"{text[: match.end()]}{written}{comma}{text[match.end() :]}"
    elif "plugins" in tree:
        raise ConfigError(f"{file}: plugins: expected a list; add {written} to it")
    else:
        before = text[:at]
        gap = "" if not before or before.endswith("\n") else "\n"
        new = f"{before}{gap}plugins = [{written}]\n{text[at:]}"
    if tomllib.loads(new).get("plugins") != [source, *plugins]:
        raise ConfigError(f"{file}: plugins: add {written} to it by hand")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(new, encoding="utf-8")
    return file


@click.command(short_help="Use a plugin in every run in this folder.")
@click.argument("source", required=False)
@click.option(
    "--mcp", metavar="SERVER", help="An MCP server: a command, a URL or a JSON file."
)
@click.option("--auth", help="The secret for the API's requests: secret://NAME.")
@click.option("--server", help="The API's address, if its document names another.")
@click.option("--name", help="The plugin's name; default: from its title.")
@click.option(
    "--folder", help="Where the document's references may lead; default: its folder."
)
def add(source: str | None, mcp: str | None, **options: str | None) -> int:
    """Add SOURCE to this folder's neuraxis.toml.

    SOURCE is an OpenAPI document (URL or file), a folder with a skill, or a plugin;
    --mcp names an MCP server instead. It is loaded once, to show what it offers and
    what cannot be used. If it takes a secret or a variable of the environment, it is
    added to your own settings: a project's file, which may come from anybody, may not
    say where these are sent.
    """
    from neuraxis.bridges.mcp_client.config import taken_by
    from neuraxis.cli.options import Choices, plugin_sources
    from neuraxis.settings import load, user_dir

    if (source is None) == (mcp is None):
        raise ConfigError("plugins add: expected either a SOURCE or --mcp SERVER")
    source_name = str(source) if mcp is None else f"mcp:{mcp}"
    is_own = options.get("auth") is not None or bool(taken_by(source_name))
    file = source_name.removeprefix("mcp:")
    if is_own and Path(file).is_file():  # each folder may have one of that name
        source_name = f"{source_name.removesuffix(file)}{Path(file).absolute()}"
        if folder := options.get("folder"):
            options["folder"] = str(Path(folder).absolute())
    text = source_text(source_name, **options)
    loaded, errors = load_all((text,))
    if errors:
        raise errors[0]
    for plugin in loaded:
        for problem in plugin.problems:
            echo(str(problem), err=True)
        echo(_summary(plugin))
    if not any(plugin.commands for plugin in loaded):
        raise ConfigError(f"{text}: it offers no command, so it was not added")
    _refuse_taken(text, loaded, plugin_sources(Choices(), load(Path.cwd())))
    users = user_dir("config") if is_own else None
    echo(f"added to {add_to_settings(text, users)}")
    _lock(text, [plugin.spec for plugin in loaded])
    return 0


def _refuse_taken(source: str, loaded: Sequence[Any], sources: Sequence[str]) -> None:
    """Refuse plugins whose names are already taken by listed ones."""
    if source in sources:
        raise ConfigError(f"{source}: it is already added; nothing was changed")
    others, _ = load_all(sources)  # a run reports what cannot be loaded
    places = {other.spec.name: other.spec.source for other in others}
    for plugin in loaded:
        if (place := places.get(plugin.spec.name)) is not None:
            raise ConfigError(
                f"{source}: the plugin name {plugin.spec.name!r} is taken by {place}: "
                "keep that one, remove it from plugins, or add this one with --name"
            )


def _summary(plugin: Any) -> str:
    names = list(plugin.commands)
    if len(names) <= _LISTED:
        return f"{plugin.spec.name}: {', '.join(names) or 'no command'}"
    first = ", ".join(names[:_LISTED])
    return f"{plugin.spec.name}: {len(names)} commands, such as {first}"


_SCRIPT = """import sys

print(f"Hello, {sys.argv[1]}!")
"""


def new_skill(folder: str) -> int:
    """Write a folder with a `SKILL.md` and a script that works.

    Raises:
        ConfigError: the name is invalid, or the folder exists already.
    """
    from neuraxis.bridges.skill_file import new_skill_file

    target = Path(folder)
    text = new_skill_file(target.absolute().name)
    if target.exists():
        raise ConfigError(f"{folder}: it already exists; name another folder")
    (target / "scripts").mkdir(parents=True)
    (target / "SKILL.md").write_text(text, encoding="utf-8")
    (target / "scripts" / "hello.py").write_text(_SCRIPT, encoding="utf-8")
    echo(f"created {target}/SKILL.md and {target}/scripts/hello.py; try:")
    echo(f"  neuraxis plugins check skill:{target}")
    return 0


def source_text(source: str, **options: str | None) -> str:
    """Return a source as a settings file names it.

    Raises:
        ConfigError: an option does not apply to this source.
    """
    used_options = {key: value for key, value in options.items() if value is not None}
    kind = source.partition(":")[0]
    if kind != "mcp" and (
        source.lower().startswith(("http://", "https://"))
        or source.lower().endswith((".json", ".yaml", ".yml"))
    ):
        kind, source = "openapi", f"openapi:{shlex.quote(source)}"
    elif (Path(source) / "SKILL.md").is_file():
        kind, source = "skill", f"skill:{source}"
    if used_options and kind != "openapi":
        raise ConfigError(f"--{next(iter(used_options))}: only for an OpenAPI document")
    return " ".join(
        [
            source,
            *(f"{key}={shlex.quote(value)}" for key, value in used_options.items()),
        ]
    )


def _lock(source: str, specs: Sequence[PluginSpec]) -> None:
    """Accept plugins that the user just added in the lock file."""
    from neuraxis.plugins.lock_file import FILE_NAME, accept, read_lock, write_lock

    file = Path(FILE_NAME)
    locked = read_lock(file)
    if locked is None:
        return
    entries, refused = accept(locked, specs, ())
    for name in refused:
        echo(
            f"{file} has another version of it; to accept this one: neuraxis plugins "
            f"lock {shlex.quote(source)} --accept {name}",
            err=True,
        )
    write_lock(file, entries)
