"""`neuraxis plugins add`: write a plugin's source into a settings file."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any, cast

import click

from neuraxis.errors import ConfigError

_ASSIGNED = re.compile(r"(?m)^plugins[ \t]*=[ \t]*")
_SECTION = re.compile(r"(?m)^[ \t]*\[")


@click.command(short_help="Add an API or a skill to the settings.")
@click.argument("source")
@click.option("--auth", help="The secret the API's requests carry: secret://NAME.")
@click.option("--server", help="The API's address, where its document names another.")
@click.option("--name", help="The plugin's name; default: from its title.")
def add(source: str, auth: str | None, server: str | None, name: str | None) -> int:
    """Add SOURCE to neuraxis.toml: an OpenAPI document (URL or file) or a skill folder.

    It is read and checked first. With --auth it is added to the user's own settings:
    a project's file, which may come from anybody, may not say where a secret is sent.
    """
    from neuraxis.plugins.loader import load_plugin

    text = source_text(source, auth=auth, server=server, name=name)
    plugin = load_plugin(text)
    file = _settings_file(users=auth is not None)
    is_new = add_source(file, text)
    _say(f"{plugin.spec.name}: {len(plugin.commands)} commands, such as:")
    for command in list(plugin.commands)[:5]:
        _say(f"  {command}")
    for problem in plugin.problems:
        _say(str(problem), err=True)
    _say(f"{'added to' if is_new else 'already in'} {file}")
    _lock(plugin)
    return 0


_SCRIPT = """import sys

print(f"Hello, {sys.argv[1]}!")
"""


def new_skill(folder: str) -> int:
    """Write a folder with a `SKILL.md` and a script that works.

    Raises:
        ConfigError: the format takes no such name, or the folder is there already.
    """
    from neuraxis.bridges.skill_file import new_skill_file

    target = Path(folder)
    text = new_skill_file(target.absolute().name)
    if target.exists():
        raise ConfigError(f"{folder}: it is there already; name another folder")
    (target / "scripts").mkdir(parents=True)
    (target / "SKILL.md").write_text(text, encoding="utf-8")
    (target / "scripts" / "hello.py").write_text(_SCRIPT, encoding="utf-8")
    _say(f"made {target}/SKILL.md and {target}/scripts/hello.py; try:")
    _say(f"  neuraxis plugins check skill:{target}")
    return 0


def source_text(source: str, **options: str | None) -> str:
    """Return a source as a settings file names it.

    Raises:
        ConfigError: an option was given for what takes none.
    """
    given = {key: value for key, value in options.items() if value is not None}
    kind = source.partition(":")[0]
    if source.lower().startswith(("http://", "https://")) or source.lower().endswith(
        (".json", ".yaml", ".yml")
    ):
        kind, source = "openapi", f"openapi:{shlex.quote(source)}"
    elif (Path(source) / "SKILL.md").is_file():
        kind, source = "skill", f"skill:{source}"
    if given and kind != "openapi":
        raise ConfigError(f"--{next(iter(given))}: only an OpenAPI document takes it")
    return " ".join(
        [source, *(f"{key}={shlex.quote(value)}" for key, value in given.items())]
    )


def add_source(file: Path, text: str) -> bool:
    """Add a source to the list `plugins` of a settings file; False: it is there.

    Raises:
        ConfigError: the file is no TOML, or its `plugins` is no list.
    """
    import tomllib  # few commands write settings

    before = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    try:
        listed: Any = tomllib.loads(before).get("plugins", [])
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from None
    if not isinstance(listed, list):
        raise ConfigError(f"{file}: plugins: expected a list of texts in quotes")
    items = cast("list[str]", listed)
    if text in items:
        return False
    lines = "".join(f"  {json.dumps(item)},\n" for item in [*items, text])
    after = _replaced(before, f"plugins = [\n{lines}]\n")
    if tomllib.loads(after).get("plugins") != [*items, text]:
        raise ConfigError(
            f"{file}: cannot be changed; add {text!r} to plugins yourself"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(file.name + ".new")
    beside.write_text(after, encoding="utf-8")
    os.replace(beside, file)
    return True


def _replaced(before: str, assignment: str) -> str:
    """Return the file's text with the assignment in the place of the old one."""
    import tomllib

    section = _SECTION.search(before)
    head = before if section is None else before[: section.start()]
    found = _ASSIGNED.search(before)
    if found is None or found.start() >= len(head):
        return f"{assignment}\n{before}" if before else assignment
    end = found.end()
    while (end := before.find("]", end) + 1) > 0:
        try:
            tomllib.loads(before[found.start() : end])
        except tomllib.TOMLDecodeError:
            continue
        return before[: found.start()] + assignment.rstrip("\n") + before[end:]
    return before


def _settings_file(*, users: bool) -> Path:
    from neuraxis.settings import FILE_NAME, user_dir

    return user_dir("config") / FILE_NAME if users else Path(FILE_NAME)


def _lock(plugin: Any) -> None:
    """Accept a new plugin where there is a lock file: a person just added it."""
    from neuraxis.plugins.lock import FILE_NAME, accept, read_lock, write_lock

    file = Path(FILE_NAME)
    locked = read_lock(file)
    if locked is None:
        return
    entries, refused = accept(locked, [plugin.spec], ())
    if refused:
        _say(
            f"{file} has another form of it; to take this one: neuraxis plugins lock "
            f"{shlex.quote(plugin.spec.source)} --accept {plugin.spec.name}",
            err=True,
        )
    else:
        write_lock(file, entries)


def _say(text: str, *, err: bool = False) -> None:
    from neuraxis.cli.terminal import inert

    click.echo(inert(text), err=err)
