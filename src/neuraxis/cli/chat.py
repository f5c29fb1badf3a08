"""`neuraxis chat`: a conversation on the terminal, line by line."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import TYPE_CHECKING, Any

import click

from neuraxis.cli.options import (
    Choices,
    resume_options,
    session_options,
    session_to_continue,
)
from neuraxis.cli.run import ask, open_session

if TYPE_CHECKING:
    from neuraxis.session.session import Session

HELP = """/help     this list
/tools    what can be called
/session  this session's id
/quit     end (also Ctrl-D)

Ctrl-C stops an answer, or drops what was typed."""
_END = ("/quit", "/exit")


@click.command(short_help="A conversation, line by line.")
@session_options()
@resume_options
def chat(resume: bool, session_id: str | None, **options: Any) -> int:
    """Talk with the model; /help lists what can be typed beside requests.

    From a pipe each line is a request, and the exit code is that of the last one, as
    `run` would give it.
    """
    choices = Choices(**options)
    resumed = session_to_continue(choices, latest=resume, given=session_id)
    with open_session(choices, resumed, None, quiet=False) as session:
        if not sys.stdin.isatty():
            code = 0
            for line in sys.stdin:
                if line.strip() in _END:
                    break
                code = _take(session, line.strip(), code)
            return code
        # line editing and history of the terminal, where Python has them
        with contextlib.suppress(ImportError):  # Windows
            importlib.import_module("readline")

        click.echo(f"{session.model.name}, /help for help", err=True)
        interrupted = False
        while True:
            try:
                line = input("> ").strip()
            except EOFError:
                return 0
            except KeyboardInterrupt:
                if interrupted:
                    raise
                # as in a shell: what was typed is dropped, the conversation stays
                click.echo("\n/quit ends, and so does Ctrl-C once more", err=True)
                interrupted = True
                continue
            interrupted = False
            if line in _END:
                return 0
            try:
                _take(session, line, 0)
            except KeyboardInterrupt:
                click.echo("stopped", err=True)


def _take(session: Session, line: str, code: int) -> int:
    """Do what a line says; the exit code there would be now."""
    match line:
        case "":
            pass
        case "/help":
            click.echo(HELP)
        case "/session":
            click.echo(session.id)
        case "/tools":
            for name in session.registry.tool_names:
                click.echo(name)
        case _ if line.startswith("/"):
            click.echo(f"{line} is no command here; /help lists them", err=True)
        case _:
            return ask(session, line)[1]
    return code
