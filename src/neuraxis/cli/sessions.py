"""`neuraxis sessions ls|show`: what is in the journal."""

from __future__ import annotations

import json
from typing import Any

import click

from neuraxis.cli.options import Choices, journal_path, settings_of
from neuraxis.errors import ConfigError


@click.group()
def sessions() -> None:
    """Look at earlier sessions."""


def _journal(path: str | None) -> Any:
    from neuraxis.journal import open_journal

    return open_journal(path or journal_path(settings_of(Choices())))


def _when(seconds: float) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")


@sessions.command()
@click.option("--journal", help="A SQLite file.")
@click.option("--json", "as_json", is_flag=True)
def ls(journal: str | None, as_json: bool) -> int:
    """The sessions, the last used first."""
    from neuraxis.cli.terminal import inert

    opened = _journal(journal)
    try:
        known = opened.sessions()
    finally:
        opened.close()
    if as_json:
        rows = [
            {
                "session": info.session,
                "started": info.started,
                "ended": info.ended,
                "events": info.events,
                "title": info.title,
            }
            for info in known
        ]
        click.echo(json.dumps(rows, ensure_ascii=False))
    else:
        for info in known:
            click.echo(
                f"{info.session}  {_when(info.ended)}  {info.events:>4} events  "
                f"{inert(info.title)}"
            )
    return 0


@sessions.command()
@click.argument("session")
@click.option("--journal", help="A SQLite file.")
@click.option("--json", "as_json", is_flag=True, help="The events as JSON lines.")
def show(session: str, journal: str | None, as_json: bool) -> int:
    """Everything that happened in SESSION (its id, or the beginning of it)."""
    from neuraxis.cli.terminal import inert, short
    from neuraxis.events import Unknown, to_json

    opened = _journal(journal)
    try:
        known = [info.session for info in opened.sessions()]
        fitting = [own for own in known if own == session]
        fitting = fitting or [own for own in known if own.startswith(session)]
        if len(fitting) != 1:
            what = "no session begins" if not fitting else "several sessions begin"
            raise ConfigError(
                f"{what} with {session!r}; `neuraxis sessions ls` lists them"
            )
        entries = opened.read(fitting[0])
    finally:
        opened.close()
    for entry in entries:
        event = entry.event
        written = (
            {"type": event.type, **event.data}
            if isinstance(event, Unknown)
            else to_json(event)
        )
        if as_json:
            row = {"seq": entry.seq, "at": entry.at, **written}
            click.echo(json.dumps(row, ensure_ascii=False))
            continue
        kind = written.pop("type")
        written.pop("v", None)
        told = "  ".join(
            f"{key}={short(value, 100)}"
            for key, value in written.items()
            if value not in (None, "", [], {})
        )
        click.echo(inert(f"{entry.seq:>4}  {kind:<16} {told}"))
    return 0
