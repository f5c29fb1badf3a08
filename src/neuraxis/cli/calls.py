"""`neuraxis call PLUGIN.COMMAND --param …`: run one command without a model."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from neuraxis.call_errors.checking import for_person, problem_text
from neuraxis.cli.display.text import echo, echo_json, one_line
from neuraxis.cli.options import CALLS, Choices, pairs_of, read_file, session_options
from neuraxis.cli.standard_output import answers_alone
from neuraxis.errors import ConfigError

if TYPE_CHECKING:
    from neuraxis.messages import CallError, Result
    from neuraxis.specs import CommandSpec


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
@click.option("--json", "as_json", is_flag=True, help="The whole result as JSON.")
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
    text, a JSON value is read as JSON. @FILE reads the value from a file, @- from
    standard input; @@x is the text @x. Repeat a name to give a list; a boolean needs
    no value. `call TARGET --help` shows the parameters.
    """
    if target is None and wants_help:
        echo(context.get_help())
        return 0
    if target is None:
        raise click.UsageError("expected PLUGIN.COMMAND or a tool name", context)
    from neuraxis.cli.options import make_session
    from neuraxis.messages import Call, CallError
    from neuraxis.models.scripted import ScriptedModel

    with make_session(Choices(**options), model=ScriptedModel([])) as session:
        plugin, dot, command = target.rpartition(".")
        command_found = session.registry.find(plugin if dot else None, command)
        if isinstance(command_found, CallError) and dot:
            tool_found = session.registry.find(None, target)
            command_found = (
                command_found if isinstance(tool_found, CallError) else tool_found
            )
        if isinstance(command_found, CallError):
            if command_found.code == "unknown_plugin":
                raise ConfigError(for_person(command_found.message) + _unloaded(plugin))
            raise ConfigError(
                command_found.message + ("" if dot else _unloaded(target))
            )
        if wants_help:
            _print_parameters(command_found.spec, context)
            return 0
        typed = _arguments(
            [*pairs_of(params, "--param "), *_options(context.args, command_found.spec)]
        )
        arguments = (
            _read_strictly(typed, command_found.spec) if options["strict"] else typed
        )
        named = Call(
            id="a1",
            plugin=command_found.plugin.name,
            command=command_found.spec.name,
            arguments=arguments,
        )
        import asyncio  # Imported on first use: slow.

        result = asyncio.run(session.call(named))
    _print(result, as_json)
    if result.error is not None and result.error.problems:
        return 2  # as for any other wrong option
    return 0 if result.status == "done" else 1


def _unloaded(name: str) -> str:
    """Return advice to name a plugin's file."""
    paths = [path for path in (f"{name}.py", name) if Path(path).exists()]
    return (
        f" A plugin of your own is given with -p, such as -p {[*paths, 'FILE.py'][0]}"
    )


def _print(result: Result, as_json: bool) -> None:
    """Print how a call ended."""
    from neuraxis.cli.display.objects import print_value
    from neuraxis.session.answer import result_json

    if as_json:
        echo_json(result_json(result))
    elif result.error is not None:
        echo(f"neuraxis: {_why(result.error)}{_place(result.exception)}", err=True)
    else:
        print_value(result.value)
        for warning in result.warnings:
            echo(f"warning: {warning}", err=True)


def _why(error: CallError) -> str:
    """Return why a call failed, with wrong arguments as typed."""
    messages = [
        f"--{problem_text(item)}" if item.path else problem_text(item)
        for item in error.problems
    ]
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
    rows: list[tuple[str, str]] = []
    for name in spec.parameter_names:
        node = spec.parameters["properties"][name]
        texts = [" ".join(str(node.get("description", "")).split()).rstrip(".")]
        if "enum" in node:
            texts.append(f"one of {', '.join(map(_json, node['enum']))}")
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
            raise ConfigError(
                f"{word!r}: expected --NAME VALUE, such as {_as_option(word, names)}"
            )
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


def _as_option(word: str, names: Sequence[str]) -> str:
    """Return the probable meaning of a bare word."""
    if entries := _object(word):
        values = [v if isinstance(v, str) else _json(v) for v in entries.values()]
        pairs = zip(entries, map(shlex.quote, values), strict=True)
        return " ".join(f"--{name} {value}" for name, value in pairs)
    name, equals, value = word.partition("=")
    name = _suggest_option(name, names)
    if equals and name in names:
        return f"--{name} {value}"
    return f"--{names[0]} {word}" if names else "no argument"


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
    options = ", ".join(f"--{item}" for item in names) or "none"
    return (
        f"--{name.replace('_', '-')}: there is no such option, and no such parameter; "
        f"the command's parameters are: {options}"
    )


def _arguments(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return arguments from typed texts, leniently parsed as numbers and lists."""
    texts: dict[str, list[str]] = {}
    for name, value in pairs:
        if value.startswith("@@"):
            value = value[1:]
        elif value.startswith("@") and len(value) > 1:
            value = _read(name, value)
        texts.setdefault(name, []).append(value)
    return {
        name: values[0] if len(values) == 1 else values
        for name, values in texts.items()
    }


def _read_strictly(typed: dict[str, Any], spec: CommandSpec) -> dict[str, Any]:
    """Parse a text strictly where the schema expects a number or boolean."""
    from neuraxis.schema.schema import Schema

    return Schema(spec.parameters).coerce(typed)[0]


def _read(name: str, value: str) -> str:
    if value == "@-":
        return sys.stdin.read()
    after = f". A text that begins with @ is written @{value}"
    return read_file(value[1:], f"--{name} @", after)
