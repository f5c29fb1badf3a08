"""`neuraxis call PLUGIN.COMMAND --param …`: run one command without a model."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import click

from neuraxis.call_errors.checking import for_person, problem_text
from neuraxis.cli.display.text import echo, echo_json, one_line
from neuraxis.cli.options import (
    CALLS,
    Choices,
    pairs_of,
    read_file,
    session_options,
    to_load,
)
from neuraxis.cli.standard_input import read_text
from neuraxis.cli.standard_output import answers_alone
from neuraxis.errors import ConfigError
from neuraxis.formatting import did_you_mean, listed, nearest

if TYPE_CHECKING:
    from neuraxis.messages import CallError, Result
    from neuraxis.plugins.registry import Command, Registry
    from neuraxis.specs import CommandSpec

_TYPES = {
    "type", "x-type", "enum", "const", "anyOf", "oneOf", "allOf", "not", "$ref",
}  # fmt: skip
"""Keys of a schema that say which values it takes."""


@click.command(
    short_help="Run one command, without a model.",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)
@click.argument("target", required=False)
@session_options(*CALLS)
@click.option(
    "--param",
    "params",
    multiple=True,
    help="NAME=VALUE: an argument, even one with the name of an option.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option(
    "-h",
    "--help",
    "wants_help",
    is_flag=True,
    help="Show this message, or the parameters of TARGET, and exit.",
)
@click.pass_context
@answers_alone
def call(
    context: click.Context,
    target: str | None,
    params: tuple[str, ...],
    as_json: bool,
    wants_help: bool,
    **options: Any,
) -> int:
    """Run TARGET (PLUGIN.COMMAND or a tool name) and print its result.

    Give arguments as --NAME VALUE or --param NAME=VALUE. Unless the parameter is a
    text, a JSON value is read as JSON. @FILE reads the value from a file (a table or
    a picture where the command takes one), @- from standard input; @@x is the text
    @x. Repeat a name to give a list; a boolean needs no value. `call TARGET --help`
    shows the parameters.
    """
    if target is None and wants_help:
        echo(context.get_help())
        return 0
    from neuraxis.cli.options import make_session
    from neuraxis.messages import Call
    from neuraxis.models.scripted import ScriptedModel

    if target is None and not options["plugin"]:
        raise click.UsageError(
            "expected PLUGIN.COMMAND or a tool name; `neuraxis plugins list` shows all",
            context,
        )
    with make_session(Choices(**options), model=ScriptedModel([])) as session:
        if target is None:
            names = listed(_own_first(session.registry))
            raise click.UsageError(
                f"expected PLUGIN.COMMAND or a tool name, one of: {names}", context
            )
        command_found = _find(target, session.registry, options["plugin"])
        if wants_help:
            _print_parameters(command_found.spec, context)
            return 0
        spec = command_found.spec
        pairs = [*pairs_of(params, "--param "), *_options(context.args, spec)]
        # the person who calls chose the file: nobody is asked because of it
        attach = partial(session.attach, outside=False)
        typed = _arguments(pairs, spec, attach)
        arguments = _read_strictly(typed, spec) if options["strict"] else typed
        named = Call(
            id=session.ids.new(),
            plugin=command_found.plugin.name,
            command=spec.name,
            arguments=arguments,
        )
        import asyncio  # Imported on first use: slow.

        result = asyncio.run(session.call(named))
    _print(result, as_json, pairs, spec.parameter_names)
    if result.status != "done":
        _name_workspace(pairs, spec, session.workspace)
    if result.error is not None and result.error.problems:
        return 2  # as for any other wrong option
    return 0 if result.status == "done" else 1


def _name_workspace(
    pairs: Sequence[tuple[str, str]], spec: CommandSpec, workspace: Path
) -> None:
    """Say how commands get a file, if one here was named."""
    for name, value in pairs:
        with suppress(OSError, ValueError):
            if not Path(value).is_file():
                continue
            if _takes_object(name, spec):
                echo(
                    f"neuraxis: for the file's content give --{name} @{value}", err=True
                )
            elif not (workspace / value).exists():
                echo(
                    f"neuraxis: {one_line(value)} is in this folder; commands see the "
                    f"files in {one_line(str(workspace))}. For those of this folder "
                    "give -w .",
                    err=True,
                )


def _find(target: str, registry: Registry, given: Sequence[str]) -> Command:
    """Return the command of that name.

    Args:
        target: `plugin.command`, a tool name, or a command's name.
        registry: all commands.
        given: the plugins of -p.

    Raises:
        ConfigError: there is none.
    """
    from neuraxis.messages import CallError

    owner, dot, command = target.rpartition(".")
    found = registry.find(owner if dot else None, command)
    if not isinstance(found, CallError):
        return found
    as_tool = registry.find(None, target)
    if not isinstance(as_tool, CallError):
        return as_tool
    named = [
        item
        for plugin in registry.listed
        for item in plugin.commands.values()
        if item.spec.name == target
    ]
    if len(named) == 1:  # its tool name is another
        return named[0]
    why = for_person(found.message) + _unmarked(command, registry)
    if found.code == "unknown_plugin":
        raise ConfigError(why + to_load(owner, given))
    if dot:
        raise ConfigError(found.message + _unmarked(command, registry))
    names = listed(_own_first(registry))
    raise ConfigError(f"{why} The tools are: {names}.{to_load(target, given)}")


def _unmarked(name: str, registry: Registry) -> str:
    """Say that a function of that name stands beside the commands, unmarked."""
    for plugin in registry.listed:
        for item in plugin.commands.values():
            beside = getattr(item.function, "__globals__", {}).get(name)
            if isinstance(beside, FunctionType):
                return (
                    f" {plugin.spec.source} has a function {name} that is no command: "
                    "write @command above it, from neuraxis import command."
                )
    return ""


def _own_first(registry: Registry) -> list[str]:
    """Return all tool names, those of the built-in plugins last."""
    names = registry.tool_names
    return sorted(names, key=lambda name: registry.command(*names[name]).is_builtin)


def _print(
    result: Result,
    as_json: bool,
    pairs: Sequence[tuple[str, str]],
    names: Sequence[str],
) -> None:
    """Print how a call ended.

    Args:
        result: its result.
        as_json: whether to print all of it, as JSON.
        pairs: the typed names and values.
        names: the command's parameters.
    """
    from neuraxis.cli.display.objects import print_value
    from neuraxis.session.answer import result_json

    if as_json:
        echo_json(result_json(result))
    elif result.error is not None:
        if result.value is not None:  # such as what a script wrote before it failed
            print_value(result.value)
        why = _why(result.error, [name for name, _ in pairs], names)
        echo(f"neuraxis: {why}{_place(result.exception)}", err=True)
    else:
        print_value(result.value)
        for warning in result.warnings:
            echo(f"warning: {warning}", err=True)


def _why(error: CallError, typed: Sequence[str], names: Sequence[str]) -> str:
    """Return why a call failed, with wrong arguments as typed."""
    messages: list[str] = []
    for item in error.problems:
        name = str(item.path[0]) if len(item.path) == 1 else ""
        times = typed.count(name)
        if name and item.keyword == "additionalProperties":
            messages.append(_no_option(name, names))
        elif times > 1 and item.got == "array":
            how = "twice" if times == 2 else f"{times} times"
            messages.append(f"--{name}: expected {item.expected}; it was given {how}")
        else:
            text = problem_text(item)
            messages.append(f"--{text}" if item.path else text)
    return "; ".join(messages) or for_person(error.message)


def _place(raised: BaseException | None) -> str:
    """Return the line of the command's own code that raised."""
    import sysconfig

    package = str(Path(__file__).parent.parent)
    paths = sysconfig.get_paths()
    foreign = (package, paths["stdlib"], paths["purelib"], paths["platlib"])
    file, place = "", ""
    trace = None if raised is None else raised.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        is_own = Path(code.co_filename).is_file() and (
            not code.co_filename.startswith(foreign)
        )
        if is_own and file in ("", code.co_filename):
            file = code.co_filename
            place = f" (at {file}:{trace.tb_lineno}, in {code.co_name})"
        trace = trace.tb_next
    return place


def _print_parameters(spec: CommandSpec, context: click.Context) -> None:
    from neuraxis.schema.describe import FULL, type_text

    rows: list[tuple[str, str]] = []
    for name in spec.parameter_names:
        node = spec.parameters["properties"][name]
        texts = [" ".join(str(node.get("description", "")).split()).rstrip(".")]
        if "enum" in node:
            texts.append(f"one of {', '.join(map(_json, node['enum']))}")
        elif not {"string", "integer", "number", "boolean"}.intersection(_kinds(node)):
            texts.append(type_text(node, FULL))
        if name in spec.required:
            texts.append("required")
        elif node.get("default") is not None:
            texts.append(f"default {_json(node['default'])}")
        kinds = ", ".join(_kinds(node)) or "any value"
        rows.append((f"--{one_line(name)} ({kinds})", "; ".join(filter(None, texts))))
    formatter = context.make_formatter()
    formatter.write_text(" ".join(spec.description.split()))
    with formatter.section("Parameters"):
        formatter.write_dl(rows or [("none", "")])
    echo(formatter.getvalue(), nl=False)


def _kinds(node: Mapping[str, Any]) -> list[str]:
    kind = node.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _options(words: Sequence[str], spec: CommandSpec) -> list[tuple[str, str]]:
    """Return option names as typed, or with _ for - where needed."""
    names = spec.parameter_names
    pairs: list[tuple[str, str]] = []
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if not word.startswith("--"):
            if not names:
                raise ConfigError(f"{word!r}: the command has no parameters")
            meant = _as_option(word, names, pending)
            raise ConfigError(f"{word!r}: expected --NAME VALUE, such as {meant}")
        name, equals, value = word[2:].partition("=")
        name = _suggest_option(name, names)
        if not equals:
            if not pending or _is_name(pending[0], names):
                if not _is_flag(name, spec):
                    raise ConfigError(_bare_option_problem(name, names))
                value = "true"
            else:
                value = pending.pop(0)
        pairs.append((name, value))
    return pairs


def _as_option(word: str, names: Sequence[str], after: Sequence[str]) -> str:
    """Return the probable meaning of a word, and of those after it."""
    if entries := _object(word):
        values = [v if isinstance(v, str) else _json(v) for v in entries.values()]
        pairs = zip(entries, map(shlex.quote, values), strict=True)
        return " ".join(f"--{name} {value}" for name, value in pairs)
    name, equals, value = word.partition("=")
    if word[:1] == "-" and word[1:2].isalpha():  # no number
        name = _suggest_option(name[1:], names)
        fitting = [one for one in names if one.startswith(name)]
        value = value or (after[0] if after else "VALUE")
        return f"--{[*fitting, *names][0]} {shlex.quote(value)}"
    name = _suggest_option(name, names)
    if equals and name in names:
        return f"--{name} {value}"
    return f"--{names[0]} {word}"


def _object(word: str) -> dict[str, Any]:
    """Return the entries of a JSON object, or none."""
    try:
        value: Any = json.loads(word)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _suggest_option(name: str, names: Sequence[str]) -> str:
    return name if name in names else name.replace("-", "_")


def _is_name(word: str, names: Sequence[str]) -> bool:
    name = word.removeprefix("--").partition("=")[0]
    return word.startswith("--") and _suggest_option(name, names) in names


def _is_flag(name: str, spec: CommandSpec) -> bool:
    if name not in spec.parameter_names:
        return False
    return "boolean" in _kinds(spec.parameters["properties"][name])


def _bare_option_problem(name: str, names: Sequence[str]) -> str:
    """Return the problem of a bare `--NAME`, such as a misspelt option."""
    if name in names:
        return f"--{name}: expected a value after it"
    return _no_option(name, names)


def _no_option(name: str, names: Sequence[str]) -> str:
    """Return the problem of an option that is no parameter either."""
    close = did_you_mean([f"--{item}" for item in nearest(name, names)])
    options = ", ".join(f"--{item}" for item in names) or "none"
    return (
        f"--{name.replace('_', '-')}: there is no such option, and no such parameter."
        f"{close} The command's parameters are: {options}"
    )


def _arguments(
    pairs: list[tuple[str, str]], spec: CommandSpec, attach: Callable[[Any], str]
) -> dict[str, Any]:
    """Return arguments from typed texts, leniently parsed as numbers and lists.

    `attach` stores the object in a file for a parameter that takes objects.
    """
    texts: dict[str, list[Any]] = {}
    for name, value in pairs:
        if value.startswith("@@"):
            value = value[1:]
        elif value.startswith("@") and len(value) > 1:
            found = _object_in(value[1:]) if _takes_object(name, spec) else None
            if found is not None:
                reference = {"asset_id": attach(found), "field_path": ["content"]}
                texts.setdefault(name, []).append(reference)
                continue
            value = _read(name, value)
        texts.setdefault(name, []).append(
            _as_json(value) if _takes_any(name, spec) else value
        )
    return {
        name: values if len(values) > 1 or _is_one_item(name, values[0], spec) else one
        for name, values in texts.items()
        for one in values[:1]
    }


def _is_one_item(name: str, value: Any, spec: CommandSpec) -> bool:
    """Return whether a value is the only item of a list."""
    if name not in spec.parameter_names or not isinstance(value, str):
        return False
    from neuraxis.schema.navigate import arms, kinds

    root = spec.parameters
    found = [
        kind for arm in arms(root["properties"][name], root) for kind in kinds(arm)
    ]
    is_list = "array" in found and "string" not in found
    return is_list and not isinstance(_as_json(value), list)


def _takes_object(name: str, spec: CommandSpec) -> bool:
    """Return whether a parameter takes objects that cannot be typed."""
    from neuraxis.schema.navigate import arms

    node = spec.parameters.get("properties", {}).get(name, {})
    return any("x-type" in arm for arm in arms(node, spec.parameters))


def _object_in(file: str) -> Any:
    """Return the table or picture in a file; None for other files."""
    from neuraxis.assets.attachments import read_attachment

    path = Path(file).expanduser()
    with suppress(OSError):  # such as a name that is too long
        if path.is_file():
            found = read_attachment(path)
            return None if isinstance(found, str | bytes) else found
    return None


def _takes_any(name: str, spec: CommandSpec) -> bool:
    """Return whether a parameter takes values of every type."""
    if name not in spec.parameter_names:
        return False
    return _TYPES.isdisjoint(spec.parameters["properties"][name])


def _as_json(text: str) -> Any:
    """Return the JSON value that a text is, else the text."""
    from neuraxis.parsing.strict_json import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text


def _read_strictly(typed: dict[str, Any], spec: CommandSpec) -> dict[str, Any]:
    """Parse a text strictly where the schema expects a number or boolean."""
    from neuraxis.schema.schema import Schema

    return Schema(spec.parameters).coerce(typed)[0]


def _read(name: str, value: str) -> str:
    if value == "@-":
        return read_text()
    after = f". A text that begins with @ is written @{value}"
    return read_file(value[1:], f"--{name} @", after)
