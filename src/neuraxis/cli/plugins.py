"""`neuraxis plugins list|show|check|lock|convert|new|add`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from neuraxis.cli.display.text import echo, echo_json
from neuraxis.cli.options import Choices, plugin_sources, settings_of
from neuraxis.cli.plugin_sources import add, new_skill
from neuraxis.errors import ConfigError
from neuraxis.formatting import counted


@click.group()
def plugins() -> None:
    """List, check, lock and create plugins."""


plugins.add_command(add)


def _load(sources: tuple[str, ...]) -> Any:
    from neuraxis.cli.plugin_sources import load_all

    if sources:
        names = list(sources)
    else:
        choices = Choices()
        names = plugin_sources(choices, settings_of(choices))
    return load_all(names)


@plugins.command("list", short_help="List what can be called.")
@click.argument("source", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_(source: tuple[str, ...], as_json: bool) -> int:
    """List the commands of the built-in plugins, or of each SOURCE."""
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
        echo_json(rows)
    else:
        for row in rows:
            echo(f"{row['tool']:<24} {row['plugin']}.{row['command']}")
            first = " ".join(str(row["description"]).split())
            first = first if len(first) <= 100 else first[:99].rstrip() + "…"
            echo(f"{'':<24} {first} ({row['effects']})")
    for error in errors:
        echo(str(error), err=True)
    return 1 if errors else 0


@plugins.command(short_help="Print a plugin as YAML.")
@click.argument("name", type=click.Path())
@click.option(
    "-p",
    "--plugin",
    "source",
    multiple=True,
    type=click.Path(),
    metavar="PLUGIN",
    help="Another place to look.",
)
def show(name: str, source: tuple[str, ...]) -> int:
    """Print the plugin NAME (or the one at that path) as YAML."""
    from neuraxis.plugins.manifest.write import to_yaml

    if Path(name).exists() or ":" in name:
        sources = [name]
    else:
        choices = Choices(plugin=source)
        sources = plugin_sources(choices, settings_of(choices))
    loaded, errors = _load(tuple(sources))
    for plugin in loaded:
        if len(sources) == 1 or plugin.spec.name == name:
            echo(to_yaml(plugin.spec))
            return 0
    if errors:
        raise errors[0]
    names = ", ".join(plugin.spec.name for plugin in loaded)
    raise ConfigError(f"there is no plugin {name!r}; there are: {names}")


@plugins.command(short_help="List everything that is wrong with plugins.")
@click.argument("path", nargs=-1, required=True, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(path: tuple[str, ...], as_json: bool) -> int:
    """List what is wrong with each plugin (folder, config.yaml, .py file)."""
    from neuraxis.testing import findings

    problems: list[Any] = []
    failed = 0
    for file in _files(path):
        loaded, errors = _load((file,))
        for error in errors:
            failed += 1
            problems += error.problems
            if not as_json:
                echo(str(error), err=True)
        for plugin in loaded:
            found = list(dict.fromkeys(findings(plugin)))
            problems += found
            is_valid = all(problem.severity == "warning" for problem in found)
            failed += not is_valid
            if not as_json:
                for problem in found:
                    echo(str(problem), err=True)
                commands = ", ".join(plugin.commands) or "no command"
                verdict = "is valid" if is_valid else "cannot be called"
                echo(f"{file}: {plugin.spec.name} {verdict} ({commands})")
    if as_json:
        echo_json([*map(asdict, problems)])
    return 1 if failed else 0


@plugins.command(short_help="Print a plugin in another notation.")
@click.argument("source", type=click.Path())
@click.option(
    "--to",
    "notation",
    type=click.Choice(["v2", "json-schema", "yaml"]),
    required=True,
    help="v2: the whole file in protocol v2. json-schema: the schemas that are "
    "enforced. yaml: what is understood of any plugin, even one in Python.",
)
def convert(source: str, notation: str) -> int:
    """Print the plugin SOURCE (manifest, folder, module or name) in another notation.

    Of a folder or manifest only the description is read; no code runs.
    """
    from neuraxis.plugins.manifest.convert import to_json_schema, to_v2
    from neuraxis.plugins.manifest.load import load_manifest
    from neuraxis.plugins.manifest.write import to_yaml

    path = Path(source).expanduser()
    is_manifest = path.exists() and path.suffix != ".py"
    if is_manifest:
        spec = load_manifest(path)[0]
    else:
        loaded, errors = _load((source,))
        if errors:
            raise errors[0]
        spec = loaded[0].spec
    if notation == "json-schema":
        echo_json(to_json_schema(spec), indent=2)
    else:
        echo(to_v2(spec) if notation == "v2" else to_yaml(spec))
    return 0


@plugins.command(short_help="Record plugins in a lock file, to refuse later changes.")
@click.argument("source", nargs=-1, type=click.Path())
@click.option(
    "-p",
    "--plugin",
    multiple=True,
    type=click.Path(),
    metavar="PLUGIN",
    help="The same as SOURCE; can be given several times.",
)
@click.option("--accept", multiple=True, help="Accept this plugin's changes.")
@click.option(
    "--file",
    "path",
    type=click.Path(),
    help="The lock file; default: neuraxis.lock.json.",
)
def lock(
    source: tuple[str, ...],
    plugin: tuple[str, ...],
    accept: tuple[str, ...],
    path: str | None,
) -> int:
    """Record how plugins describe themselves; later changes are refused.

    Without SOURCE: the plugins in the settings. A plugin that has changed stays
    refused until you accept it by name. The built-in plugins are never refused.
    """
    from neuraxis.cli.plugin_sources import load_all
    from neuraxis.plugins.loader import builtin_names
    from neuraxis.plugins.lock_file import FILE_NAME, read_lock, write_lock
    from neuraxis.plugins.lock_file import accept as accepted
    from neuraxis.plugins.source import is_builtin

    arguments = (*source, *plugin)
    choices = Choices()
    names = arguments or plugin_sources(choices, settings_of(choices))
    loaded, errors = load_all([item for item in names if not is_builtin(item)])
    if errors:
        raise errors[0]
    file = Path(path or FILE_NAME)
    specs = [plugin.spec for plugin in loaded]
    plugin_names = {spec.name for spec in specs}
    if wrong := [name for name in accept if name not in plugin_names]:
        raise ConfigError(
            f"--accept {wrong[0]}: no such plugin; there are: "
            f"{', '.join(sorted(plugin_names))}"
        )
    before = read_lock(file, replacing=accept)
    entries, refused = accepted(before, specs, accept, taken=builtin_names())
    for name, lines in refused.items():
        command = " ".join(("neuraxis plugins lock", *arguments, "--accept", name))
        echo(f"{name} is not accepted yet; to accept it: {command}", err=True)
        for line in lines:
            echo(f"    {line}", err=True)
    write_lock(file, entries)
    added = [name for name in entries if before is None or name not in before]
    new = f", new: {', '.join(added)}" if added else ""
    echo(f"{file}: {counted(len(entries), 'plugin')}{new}")
    return 1 if refused else 0


def _files(paths: tuple[str, ...]) -> list[str]:
    """Return each path; a folder without config.yaml stands for its manifests."""
    files: list[str] = []
    for text in paths:
        folder = Path(text)
        if (folder / "SKILL.md").is_file():
            files.append(f"skill:{text}")
        elif folder.is_dir() and not (folder / "config.yaml").is_file():
            manifests = sorted(
                str(item)
                for pattern in ("*.yaml", "*.yml", "*/config.yaml")
                for item in folder.glob(pattern)
            )
            files += manifests or [text]  # loading it says what is missing
        else:
            files.append(text)
    return files


_MANIFEST = """\
# What a model sees of this plugin. Check it with: neuraxis plugins check {folder}
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


@plugins.command(short_help="Create a folder with a plugin that works.")
@click.argument("folder", type=click.Path())
@click.option("--skill", is_flag=True, help="An Agent Skill: SKILL.md and a script.")
def new(folder: str, skill: bool) -> int:
    """Create a plugin: a FOLDER with a config.yaml and plugin.py that work."""
    if skill:
        return new_skill(folder)
    target = Path(folder)
    name = target.name.replace("-", "_")
    if not name.isidentifier():
        raise ConfigError(
            f"{target.name!r}: expected a plugin's name of letters, digits, _ and -, "
            "with no digit first"
        )
    if target.exists():
        raise ConfigError(f"{folder}: it already exists; name another folder")
    target.mkdir(parents=True)
    (target / "config.yaml").write_text(
        _MANIFEST.format(name=name, folder=folder), encoding="utf-8"
    )
    (target / "plugin.py").write_text(_CODE.format(name=name), encoding="utf-8")
    echo(f"created {target}/config.yaml and {target}/plugin.py; try:")
    echo(f"  neuraxis call -p {folder} greet --person Ada")
    return 0
