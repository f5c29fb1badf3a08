"""`neuraxis call PLUGIN.COMMAND --param …`: one command, without a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from neuraxis.cli.options import Choices, session_options
from neuraxis.errors import ConfigError


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
)
@click.argument("target")
@session_options
@click.option("--param", "params", multiple=True, help="name=value; JSON or text.")
@click.option("--json", "as_json", is_flag=True, help="The whole result as JSON.")
@click.pass_context
def call(
    context: click.Context,
    target: str,
    params: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Run TARGET (PLUGIN.COMMAND or a tool name) and print what it answers.

    Arguments are given as --NAME VALUE or --param NAME=VALUE; a value that is JSON is
    read as JSON where the parameter is not a text; @FILE reads it from a file.
    """
    from neuraxis.cli.options import make_session
    from neuraxis.messages import Call, CallError
    from neuraxis.models.scripted import ScriptedModel

    with make_session(
        _choices(options),
        model=ScriptedModel([]),
    ) as session:
        plugin, dot, command = target.rpartition(".")
        found = session.registry.find(plugin if dot else None, command)
        if isinstance(found, CallError) and dot:
            found = session.registry.find(None, target)
        if isinstance(found, CallError):
            raise ConfigError(found.message)
        known = found.spec.parameter_names
        arguments = _arguments([*_pairs(params), *_options(context.args, known)])
        named = Call(
            id="a1",
            plugin=found.plugin.name,
            command=found.spec.name,
            arguments=arguments,
        )
        import asyncio  # slow to import

        result = asyncio.run(session.call(named))
    if as_json:
        from neuraxis.answers import result_json

        click.echo(json.dumps(result_json(result), ensure_ascii=False, default=str))
    elif result.error is not None:
        _say(f"neuraxis: {result.error.message}{_place(result.exception)}")
    else:
        from neuraxis.cli.terminal import inert

        text = (
            result.value
            if isinstance(result.value, str)
            else json.dumps(result.value, ensure_ascii=False, indent=2, default=repr)
        )
        click.echo(inert(text))
        for warning in result.warnings:
            _say(f"warning: {warning}")
    return 0 if result.status == "done" else 1


def _say(text: str) -> None:
    from neuraxis.cli.terminal import inert

    click.echo(inert(text), err=True)


def _place(raised: BaseException | None) -> str:
    """Where the command's own code raised it: its author is who calls it here."""
    import sysconfig

    ours = str(Path(__file__).parent.parent)
    paths = sysconfig.get_paths()
    foreign = (ours, paths["stdlib"], paths["purelib"], paths["platlib"])
    file, place = "", ""
    trace = None if raised is None else raised.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        own = Path(code.co_filename).is_file() and (
            not code.co_filename.startswith(foreign)
        )
        if own and file in ("", code.co_filename):
            file = code.co_filename
            place = f" (at {file}:{trace.tb_lineno}, in {code.co_name})"
        trace = trace.tb_next
    return place


def _choices(options: dict[str, Any]) -> Choices:
    return replace(Choices(**options), journal=options["journal"] or "memory")


def _pairs(params: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for param in params:
        name, equals, value = param.partition("=")
        if not equals:
            raise ConfigError(f"--param {param}: expected NAME=VALUE")
        pairs.append((name, value))
    return pairs


def _options(words: list[str], known: Sequence[str]) -> list[tuple[str, str]]:
    """Names as they are typed, or with _ for - where there is no such parameter."""
    pairs: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            written = f"--{known[0]} {word}" if known else "no argument"
            raise ConfigError(f"{word!r}: expected --NAME VALUE, such as {written}")
        name, equals, value = word[2:].partition("=")
        if not equals:
            following = next(rest, None)
            if following is None:
                raise ConfigError(_lonely(name, known))
            value = following
        pairs.append((name if name in known else name.replace("-", "_"), value))
    return pairs


def _lonely(name: str, known: Sequence[str]) -> str:
    """What is wrong with `--NAME` at the end; it may be a misspelt option of ours."""
    if {name, name.replace("-", "_")} & set(known):
        return f"--{name}: expected a value behind it"
    listed = ", ".join(f"--{item}" for item in known) or "none"
    return (
        f"--{name}: there is no such option, and no such parameter; "
        f"the command's parameters are: {listed}"
    )


def _arguments(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Texts as they were typed; the lenient reading makes numbers and lists of them."""
    arguments: dict[str, Any] = {}
    for name, value in pairs:
        if value.startswith("@") and len(value) > 1:
            try:
                value = Path(value[1:]).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"--{name}: {error}") from error
        arguments[name] = value
    return arguments
