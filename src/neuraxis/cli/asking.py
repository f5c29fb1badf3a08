"""A question flows to the terminal, a person's yes or no flows back.

Shown is the exact call, each argument with where it came from; whatever stands in it is
made inert first. The answer is no, unless the person types yes.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, cast

import click

from neuraxis.cli.terminal import inert
from neuraxis.specs import Json

if TYPE_CHECKING:
    from neuraxis.events import ApprovalAsked

_LONGEST = 2_000


def is_somebody_there() -> bool:
    """Whether a person can read a question here and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def ask_on_terminal(asked: ApprovalAsked) -> bool:
    """Ask for a yes to one exact call; Ctrl-C ends the run, all else than yes is no."""
    _forget_typed()
    click.echo(question(asked), err=True)
    click.echo("Run it? [y/N] ", err=True, nl=False)
    answer = await _line()
    return answer.strip().lower() in ("y", "yes")


def question(asked: ApprovalAsked) -> str:
    """The question as lines of inert text."""
    call = cast("dict[str, Json]", asked.call)
    lines = [f"? {_one(call['plugin'])}.{_one(call['command'])} wants to run"]
    arguments: Json = call["arguments"]
    if isinstance(arguments, dict):
        given = cast("dict[str, Json]", arguments)
    else:
        given = {"the argument": arguments}
    for name, value in given.items():
        lines.append(f"    {_one(name)} = {_one(value)}")
        if origin := asked.origins.get(name):
            lines.append(f"        ({_one(origin)})")
    lines.append(f"  why asked: {_one(asked.reason)}")
    return "\n".join(lines)


def _one(value: Json) -> str:
    """One line of inert text; a line break in it cannot begin a line of ours."""
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = inert(text).replace("\n", "⏎").replace("\t", " ")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "… (cut)"


def _forget_typed() -> None:
    """What was typed before the question was shown is no answer to it."""
    try:
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (ImportError, OSError, ValueError):
        return  # Windows, or no terminal


async def _line() -> str:
    """A line of standard input, without holding up the run's other tasks."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not answered.done():
            answered.set_result(sys.stdin.readline())

    try:
        loop.add_reader(sys.stdin.fileno(), read)
    except (NotImplementedError, OSError, ValueError):
        return await asyncio.to_thread(sys.stdin.readline)  # Windows, odd streams
    try:
        return await answered
    finally:
        loop.remove_reader(sys.stdin.fileno())
