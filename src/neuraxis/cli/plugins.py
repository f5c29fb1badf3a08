"""`neuraxis plugins list|show|check|new`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from neuraxis.cli.options import BUILTIN, Choices, plugin_sources, settings_of
from neuraxis.errors import ConfigError, ManifestError


@click.group()
def plugins() -> None:
    """Look at plugins, check them, and begin a new one."""


def _load(sources: tuple[str, ...]) -> Any:
    from neuraxis.plugins.loader import load_plugins

    if sources:
        named = list(sources)
    else:
        choices = Choices()
        named = plugin_sources(choices, settings_of(choices))
    return load_plugins(named)


def _say(text: str, *, err: bool = False) -> None:
    from neuraxis.cli.terminal import inert

    click.echo(inert(text), err=err)


@plugins.command("list")
@click.argument("source", nargs=-1)
@click.option("--json", "as_json", is_flag=True)
def list_(source: tuple[str, ...], as_json: bool) -> int:
    """What can be called: the built-in plugins, or those of each SOURCE."""
    from neuraxis.plugins.registry import Registry

    loaded, errors = _load(source)
    registry = Registry(loaded)
    rows: list[dict[str, Any]] = [
        {
            "tool": registry.tool_name(command),
            "plugin": plugin.spec.name,
            "command": command.spec.name,
            "effects": command.spec.effects.kind,
            "description": command.spec.description,
            "source": plugin.spec.source,
        }
        for plugin in registry.plugins
        for command in plugin.commands.values()
    ]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
    else:
        for row in rows:
            _say(f"{row['tool']:<24} {row['plugin']}.{row['command']}")
            first = " ".join(str(row["description"]).split())
            _say(f"{'':<24} {first[:100]} ({row['effects']})")
    for error in errors:
        _say(str(error), err=True)
    return 1 if errors else 0


@plugins.command()
@click.argument("name")
@click.option("-p", "--plugin", "source", multiple=True, help="Where else to look.")
def show(name: str, source: tuple[str, ...]) -> int:
    """Write the plugin NAME (or the one at that path) as YAML."""
    from neuraxis.plugins.yaml_text import to_yaml

    sources = [name] if Path(name).exists() or ":" in name else []
    if not sources:
        sources = [*(f"neuraxis:{item}" for item in BUILTIN), *source]
    loaded, errors = _load(tuple(sources))
    for plugin in loaded:
        if len(sources) == 1 or plugin.spec.name == name:
            _say(to_yaml(plugin.spec))
            return 0
    if errors:
        raise errors[0]
    known = ", ".join(plugin.spec.name for plugin in loaded)
    raise ConfigError(f"there is no plugin {name!r}; there are: {known}")


@plugins.command()
@click.argument("path", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True)
def check(path: tuple[str, ...], as_json: bool) -> int:
    """Say everything that is wrong with each plugin (folder or config.yaml)."""
    from neuraxis.plugins.loader import load_plugin

    problems: list[Any] = []
    failed = 0
    for given in _files(path):
        try:
            plugin = load_plugin(given)
        except ManifestError as error:
            failed += 1
            problems += error.problems
            if not as_json:
                _say(str(error), err=True)
            continue
        except ConfigError as error:
            failed += 1
            if not as_json:
                _say(f"{given}: {error}", err=True)
            continue
        problems += plugin.problems
        if not as_json:
            for problem in plugin.problems:
                _say(str(problem), err=True)
            commands = ", ".join(plugin.commands) or "no command"
            _say(f"{given}: {plugin.spec.name} is right ({commands})")
    if as_json:
        rows = [
            {
                "file": problem.file,
                "line": problem.line,
                "severity": problem.severity,
                "message": problem.message,
            }
            for problem in problems
        ]
        click.echo(json.dumps(rows, ensure_ascii=False))
    return 1 if failed else 0


def _files(paths: tuple[str, ...]) -> list[str]:
    """Each path; a folder without a config.yaml stands for the manifests in it."""
    found: list[str] = []
    for text in paths:
        folder = Path(text)
        if folder.is_dir() and not (folder / "config.yaml").is_file():
            inside = sorted(
                str(item)
                for pattern in ("*.yaml", "*.yml", "*/config.yaml")
                for item in folder.glob(pattern)
            )
            if not inside:
                raise ConfigError(f"{text}: there is no config.yaml in this folder")
            found += inside
        else:
            found.append(text)
    return found


_MANIFEST = """\
# What a model is told of this plugin. Check it with: neuraxis plugins check {name}
name: {name}
info:
  title: {name}
  description: Says hello.          # for people
  description_for_model: Greets a person by name.
commands:
  - command_name: greet
    description: Make a greeting for a person.
    effects: none                   # none, read, idempotent or once
    parameter:
      type:
        person:
          type: string
          description: Who is greeted.
          example: Ada
    response:
      type:
        greeting:
          type: string
          description: The greeting.
    examples:
      - q: Greet Ada
        a: {{person: Ada}}
"""

_CODE = '''\
"""The commands of {name}: one function for each, with the command's name."""


def greet(person: str) -> dict[str, str]:
    return {{"greeting": f"Hello, {{person}}!"}}
'''


@plugins.command()
@click.argument("folder")
def new(folder: str) -> int:
    """Begin a plugin: a FOLDER with config.yaml and plugin.py that work."""
    target = Path(folder)
    name = target.name.replace("-", "_")
    if not name.isidentifier():
        raise ConfigError(
            f"{target.name!r}: expected a name of letters, digits and _, for a plugin"
        )
    if target.exists():
        raise ConfigError(f"{folder}: it is there already; name another folder")
    target.mkdir(parents=True)
    (target / "config.yaml").write_text(_MANIFEST.format(name=name), encoding="utf-8")
    (target / "plugin.py").write_text(_CODE.format(name=name), encoding="utf-8")
    click.echo(f"made {target}/config.yaml and {target}/plugin.py; try:")
    click.echo(f"  neuraxis call -p {folder} greet --person Ada")
    return 0
