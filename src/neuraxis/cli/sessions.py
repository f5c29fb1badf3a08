"""`neuraxis sessions ls|show`: list and show sessions of the journal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from neuraxis.cli.options import (
    Choices,
    existing_journal,
    journal_path,
    session_in,
    settings_of,
)

if TYPE_CHECKING:
    from neuraxis.journal import Journal


@click.group()
def sessions() -> None:
    """Look at earlier sessions."""


def _journal(path: str | None) -> Journal:
    own = path or journal_path(settings_of(Choices()))
    found = existing_journal(own, named=path is not None)
    if found is not None:
        return found
    from neuraxis.journal import open_journal

    click.echo(f"there are no sessions yet: {own} is not there", err=True)
    return open_journal("memory")


def _when(seconds: float) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")


@sessions.command()
@click.option("--journal", type=click.Path(), help="A SQLite file.")
@click.option("--json", "as_json", is_flag=True, help="The list as JSON.")
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


@sessions.command(short_help="Everything that happened in one session.")
@click.argument("session")
@click.option("--journal", type=click.Path(), help="A SQLite file.")
@click.option("--json", "as_json", is_flag=True, help="The events as JSON lines.")
def show(session: str, journal: str | None, as_json: bool) -> int:
    """Everything that happened in SESSION (its id, or the beginning of it)."""
    from neuraxis.cli.terminal import inert, short
    from neuraxis.events import Unknown, to_json

    opened = _journal(journal)
    try:
        entries = opened.read(session_in(opened.sessions(), session))
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
