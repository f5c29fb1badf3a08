"""Ask for approval of a call or plan on the terminal.

The question shows the exact call, or the calls of a plan in their order, each
argument with its origin; all of it is made inert first. Only a typed yes at the end
of it runs anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, cast

import click

from neuraxis.cli.display.text import columns, echo, folded, height
from neuraxis.formatting import visible
from neuraxis.specs import Json

if TYPE_CHECKING:
    from neuraxis.events import ApprovalAsked

_YES, _NO = ("y", "yes"), ("n", "no")
_LETTERS = "abcdefghijklmopqrstuvwxz"
"""Letters that accept a wider offer: not yes, no or a call's number."""


def is_somebody_there() -> bool:
    """Return whether a user can read and answer a question here."""
    if not sys.stderr.isatty():
        return False
    if sys.stdin.isatty():
        return True
    try:
        _terminal().close()
    except OSError:
        return False
    return True


def _terminal() -> IO[str]:
    """Open the terminal itself, if standard input is something else.

    Raises:
        OSError: there is none, as in a service.
    """
    if os.name != "posix":
        raise OSError("the terminal has no name here")
    return open("/dev/tty", encoding="utf-8", errors="replace")


def confirm(text: str) -> bool:
    """Ask to confirm on standard input; its end refuses."""
    try:
        return click.confirm(text, default=False, err=True)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise  # Ctrl-C
        echo(err=True)
        return False


async def ask_on_terminal(question_event: ApprovalAsked) -> bool | str:
    """Ask for an approval; only a yes or an offer's letter approves.

    Everything that the approval covers is shown, page by page. Ctrl-C ends the run.
    """
    with contextlib.ExitStack() as stack:
        source: IO[str] = sys.stdin
        if not source.isatty():  # piped input is not an answer
            source = stack.enter_context(_terminal())
        offers = dict(zip(_LETTERS, question_event.offers, strict=False))
        text = question(question_event)
        for letter, offer_text in offers.items():
            text += f"\n  {letter}: yes to {_one(offer_text)}"
        *first, last = pages(text)
        prompt_text = "Run all of them" if question_event.plan else "Run it"
        if "files" in cast("dict[str, Json]", question_event.call):
            prompt_text = "Keep what it did"
        prompt_text += f"? [{'/'.join(['y', 'N', *offers])}] "
        try:
            for page in first:
                typed = await _typed(source, f"{page}\n-- Enter: more, n: no -- ")
                if typed in _NO or typed is None:
                    return False
            echo(last, err=True)
            while (typed := await _typed(source, prompt_text)) not in ("", *_NO, None):
                if typed in _YES or typed in offers:
                    return offers.get(typed, True)
                possible = ", ".join(["y", *offers])
                echo(f"possible answers: {possible}; n or Enter is no", err=True)
        except asyncio.CancelledError:
            echo(err=True)  # Ctrl-C was pressed at the question
            raise
    return False


async def _typed(source: IO[str], prompt_text: str) -> str | None:
    """Return what the user answers to a prompt; None: the input ended.

    What was typed before the prompt was shown is no answer to it.
    """
    _forget_typed(source)
    echo(prompt_text, err=True, nl=False)
    line = await _line(source)
    if not line.endswith("\n"):
        echo(err=True)  # After Ctrl-D the next output must begin on a new line.
        return None
    return line.strip().lower()


def pages(text: str) -> list[str]:
    """Return the complete question in pages that fit a screen."""
    lines = folded(text, columns() - 1, exact=True)
    most = max(1, height() - 1)  # the last line is for the prompt
    if len(lines) <= most:
        return [text]
    return ["\n".join(lines[at : at + most]) for at in range(0, len(lines), most)]


def question(asked: ApprovalAsked) -> str:
    """Return the question as lines of inert text."""
    if asked.plan:
        return _plan_question(asked)
    call = cast("dict[str, Json]", asked.call)
    files = cast("dict[str, list[Json]]", call.get("files", {}))
    does = "ran; these changes wait for your answer" if files else "wants to run"
    lines = [f"? {_nested_agents(asked)}{_name(call)} {does}"]
    lines += arguments_shown(call["arguments"], asked.origins)
    for kind, paths in files.items():
        lines += [f"    {_one(path)} would be {kind}" for path in paths]
    for path, code in cast("dict[str, str]", call.get("code", {})).items():
        lines.append(f"    {_one(path)} is")
        lines += [f"    | {_one(line)}" for line in code.split("\n")]
    lines += _lost(call)
    lines.append(f"  reason: {_one(asked.reason)}")
    return "\n".join(lines)


def _lost(call: Mapping[str, Json]) -> list[str]:
    """Return the lines that the user's files lose, as inert lines."""
    lines = cast("list[Json]", call.get("lost", []))
    return [f"    {_one(line)}" for line in lines]


def _plan_question(asked: ApprovalAsked) -> str:
    """List all calls of a plan, with those the approval covers."""
    lines = [f"? {_nested_agents(asked)}{_one(asked.reason)}:"]
    for number, entry in enumerate(asked.plan, 1):
        call = cast("dict[str, Json]", entry)
        lines.append(f"  {number}. {_name(call)}")
        lines_shown = arguments_shown(call["arguments"], call["origins"])
        lines += [f"  {line}" for line in lines_shown + _lost(call)]
        if reason := call.get("reason"):
            lines.append(f"     needs your approval: {_one(reason)}")
    return "\n".join(lines)


def _nested_agents(asked: ApprovalAsked) -> str:
    """Name the agent that asks, for a nested session."""
    return "".join(f"inside {_one(tool)}: " for tool in asked.inside)


def _name(call: Mapping[str, Json]) -> str:
    # `/undo` is of no plugin
    return f"{_one(call['plugin'])}.{_one(call['command'])}".removeprefix(".")


def arguments_shown(arguments: Json, origins: Mapping[str, str]) -> list[str]:
    """Return the arguments as inert lines, each with its origin."""
    if isinstance(arguments, dict):
        entries = cast("dict[str, Json]", arguments)
    else:
        entries = {"the argument": arguments}
    lines: list[str] = []
    for name, value in entries.items():
        if isinstance(value, str) and "\n" in value:
            lines.append(f"    {_one(name)} =")
            lines += [f"    | {_one(line)}" for line in value.splitlines()]
        else:
            lines.append(f"    {_one(name)} = {_one(value)}")
        if origin := origins.get(name):
            lines.append(f"        ({_one(origin)})")
    return lines


def _one(value: Json) -> str:
    """Return one inert line, without line breaks that could imitate ours."""
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " ")
    return visible(text)


def _forget_typed(source: IO[str]) -> None:
    """Drop what was typed before the question was shown."""
    try:
        import termios
    except ImportError:
        return  # Windows
    # The terminal is gone, or a signal that ends the run came meanwhile.
    with contextlib.suppress(termios.error, OSError, ValueError):
        termios.tcflush(source.fileno(), termios.TCIFLUSH)


async def _line(source: IO[str]) -> str:
    """Read a line from the user without blocking the run's other tasks."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not answered.done():
            answered.set_result(source.readline())

    try:
        loop.add_reader(source.fileno(), read)
    except (NotImplementedError, OSError, ValueError):
        return await asyncio.to_thread(source.readline)  # Windows, odd streams
    try:
        return await answered
    finally:
        loop.remove_reader(source.fileno())
