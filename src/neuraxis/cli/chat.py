"""`neuraxis chat`: a conversation on the terminal, line by line."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

import click

from neuraxis.cli.options import (
    Choices,
    journal_path,
    latest_session,
    session_options,
    settings_of,
)
from neuraxis.cli.run import ask, open_session

HELP = """/help     this list
/tools    what can be called
/session  this session's id
/quit     end (also Ctrl-D)"""


@click.command()
@session_options
@click.option("-c", "--continue", "resume", is_flag=True, help="The last session.")
@click.option("-s", "--session", "session_id", help="Go on with this session.")
def chat(resume: bool, session_id: str | None, **options: Any) -> int:
    """Talk with the model; /help lists what can be typed beside requests."""
    choices = Choices(**options)
    if resume and session_id is None:
        session_id = latest_session(journal_path(settings_of(choices)))
    with open_session(choices, session_id, None, quiet=False) as session:
        if sys.stdin.isatty():
            # line editing and history of the terminal, where Python has them
            with contextlib.suppress(ImportError):  # Windows
                importlib.import_module("readline")

            click.echo(f"{session.model.name}, /help for help", err=True)
        while True:
            try:
                line = input("> " if sys.stdin.isatty() else "")
            except EOFError:
                return 0
            except KeyboardInterrupt:
                click.echo(err=True)
                return 0
            match line.strip():
                case "":
                    continue
                case "/quit" | "/exit":
                    return 0
                case "/help":
                    click.echo(HELP)
                case "/session":
                    click.echo(session.id)
                case "/tools":
                    for name in session.registry.tool_names:
                        click.echo(name)
                case text if text.startswith("/"):
                    click.echo(f"{text} is no command here; /help lists them")
                case text:
                    try:
                        ask(session, text)
                    except KeyboardInterrupt:
                        click.echo("stopped", err=True)
