"""`neuraxis undo`: bring back the files that the last run changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuraxis.cli.display.text import echo, one_line
from neuraxis.cli.options import (
    Choices,
    existing_journal,
    journal_path,
    session_in,
    settings_of,
)
from neuraxis.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuraxis.events import Event, Unknown
    from neuraxis.journal import Journal
    from neuraxis.sandbox.files.history import Undone


@click.command()
@click.option("-s", "--session", "given", help="A session's id, or its beginning.")
@click.option("--journal", type=click.Path(), help="A SQLite file.")
@click.option("--yes", is_flag=True, help="Also files that were changed since then.")
def undo(given: str | None, journal: str | None, yes: bool) -> int:
    """Restore the files that the last run changed."""
    path = journal or journal_path(settings_of(Choices()))
    opened = existing_journal(path, named=journal is not None)
    if opened is None:
        raise ConfigError(f"there is nothing to undo: there is no journal {path}")
    try:
        known = opened.sessions()
        if not known:
            raise ConfigError(f"the journal {path} holds no session to undo")
        session = known[0].session if given is None else session_in(known, given)
        undone = _undo(opened, session, Path(path), yes)
    finally:
        opened.close()
    return show_undone(undone)


def _undo(journal: Journal, session: str, path: Path, yes: bool) -> Undone:
    from neuraxis.sandbox.files.history import FileHistory
    from neuraxis.sandbox.files.versions import VersionStore
    from neuraxis.session.files import budget_of, versions_root

    events = [entry.event for entry in journal.read(session)]
    files = FileHistory(
        _workspace(events),
        VersionStore(
            versions_root(path, None), session, budget_of(settings_of(Choices()))
        ),
        lambda event: journal.append(session, event, durable=True),
    )
    files.replay(events)
    return files.undo(lambda name: yes or _agrees(name))


def _workspace(events: Sequence[Event | Unknown]) -> Path:
    from neuraxis.events import SessionStarted

    for event in reversed(events):
        if isinstance(event, SessionStarted) and event.workspace:
            return Path(event.workspace)
    raise ConfigError("the session does not record its workspace")


def _agrees(name: str) -> bool:
    from neuraxis.cli.approve import is_somebody_there

    if not is_somebody_there():
        return False
    text = f"{one_line(name)} was changed after the run. Overwrite it?"
    return click.confirm(text, default=False, err=True)


def show_undone(undone: Undone) -> int:
    """Print what was restored and what was not; return the exit code."""
    for what, names in (
        ("restored", undone.restored),
        ("removed", undone.removed),
        ("kept, changed after the run (--yes restores it)", undone.changed_since),
        ("lost, its old version was pruned", undone.lost),
        ("kept, the system refuses", undone.refused),
    ):
        for name in names:
            echo(f"{what}: {one_line(name)}")
    if not any((undone.restored, undone.removed, undone.changed_since, undone.lost,
                undone.refused)):  # fmt: skip
        echo("no run of this session changed a file", err=True)
    return 1 if undone.changed_since or undone.lost or undone.refused else 0
