"""`neuraxis undo`: restore the files that a run changed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from neuraxis.cli.continue_session import existing_journal, session_in
from neuraxis.cli.display.text import echo, one_line, short
from neuraxis.cli.options import (
    Choices,
    journal_option,
    journal_path,
    settings_of,
)
from neuraxis.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from neuraxis.events import Event, Unknown
    from neuraxis.journal import Entry, Journal, SessionInfo
    from neuraxis.sandbox.files.history import FileHistory, Undone


@click.command()
@click.option("-s", "--session", "given", help="A session's id, or its beginning.")
@journal_option
@click.option(
    "--yes", is_flag=True, help="Also restore files that were changed since then."
)
def undo(given: str | None, journal: str | None, yes: bool) -> int:
    """Restore the files that the last run changed.

    Without --session, this is the last run that changed a file here: in this folder,
    below it, or in the workspace of your settings. The next `undo` takes the one
    before it.
    """
    from neuraxis.session.build import build_workspace
    from neuraxis.session.inherit import Inherited

    settings = settings_of(Choices())
    usual = build_workspace(None, Inherited(), settings).resolve()
    path = journal or journal_path(settings)
    opened = existing_journal(path, named=journal is not None)
    if opened is None:
        raise ConfigError(f"there is nothing to undo: there is no journal {path}")
    with closing(opened):
        infos = opened.sessions()
        if given is not None:
            session_id = session_in(infos, given)
            infos = [info for info in infos if info.session == session_id]
        elsewhere: list[_Change] = []

        def is_here(events: Sequence[Event | Unknown]) -> bool:
            where = _workspace(events).resolve()
            return (
                given is not None or where == usual or where.is_relative_to(Path.cwd())
            )

        def is_meant(change: _Change) -> bool:
            if is_here(change.events):
                return True
            elsewhere.append(change)
            return False

        while (last := _last_of(opened, infos, is_meant)) is not None:
            undone = _undo(opened, last, Path(path), usual, yes)
            if undone.run:  # else its files are as they were before
                return show_undone(undone)
        is_undone = any(_has_undone(opened, info, is_here) for info in infos)
    where = f"session {infos[0].session}" if given else f"the journal {path}"
    text = f"nothing to undo: no run in {where} changed a file"
    if is_undone:
        text = f"nothing to undo: each run in {where} that changed a file is undone"
    if elsewhere:
        other = max(elsewhere, key=lambda change: change.at)
        folder = one_line(str(_workspace(other.events)))
        text += f" here; one changed {folder}: neuraxis undo -s {other.session}"
    echo(text, err=True)
    return 0


class _Change(Struct, frozen=True, kw_only=True):
    """The last change of a session that is not undone."""

    session: str
    events: Sequence[Event | Unknown]
    requests: Mapping[int, str]
    """What the user asked for, by run."""
    at: float


def _last_of(
    journal: Journal,
    known: Sequence[SessionInfo],
    is_meant: Callable[[_Change], bool],
) -> _Change | None:
    """Return the last change of these sessions that is not undone."""
    last: _Change | None = None
    for info in known:
        if last is not None and info.ended < last.at:
            break  # those before it ended earlier still
        found = _last_change(info.session, journal.read(info.session))
        if found is None or not is_meant(found):
            continue
        if last is None or found.at > last.at:
            last = found
    return last


def _last_change(session: str, entries: Sequence[Entry]) -> _Change | None:
    """Return what `undo` would take back in a session, if anything."""
    from neuraxis.events import FileChanged, MessageSent, RunUndone
    from neuraxis.sandbox.files.history import turning_point

    events = [entry.event for entry in entries]
    undone = {event.run for event in events if isinstance(event, RunUndone)}
    request, requests = "", dict[int, str]()
    changes = dict[tuple[int, str], list[FileChanged]]()
    ended = dict[tuple[int, str], float]()
    for entry in entries:
        event = entry.event
        if isinstance(event, MessageSent) and event.sender == "user":
            request = event.content
        elif isinstance(event, FileChanged) and event.run not in undone:
            requests[event.run] = request
            at = event.run, event.path
            changes.setdefault(at, []).append(event)
            ended[at] = entry.at
    # the same bytes again are no change
    times = [
        ended[at]
        for at, of in changes.items()
        if of[-1].after != turning_point(of).before
    ]
    if not times:
        return None
    return _Change(session=session, events=events, requests=requests, at=max(times))


def _has_undone(
    journal: Journal,
    info: SessionInfo,
    is_here: Callable[[Sequence[Event | Unknown]], bool],
) -> bool:
    """Return whether a run of a session was undone."""
    from neuraxis.events import RunUndone

    events = [entry.event for entry in journal.read(info.session)]
    return any(isinstance(event, RunUndone) for event in events) and is_here(events)


def _undo(
    journal: Journal, last: _Change, path: Path, usual: Path, yes: bool
) -> Undone:
    from neuraxis.events import RunUndone
    from neuraxis.sandbox.files.history import FileHistory
    from neuraxis.sandbox.files.versions import VersionStore, versions_root
    from neuraxis.session.workspace import budget_of

    settings, where = settings_of(Choices()), _workspace(last.events)
    if where.resolve() != usual:
        echo(f"the files are in {one_line(str(where))}", err=True)
    session, budget = last.session, budget_of(settings)
    left, said = {*last.requests}, set[int]()

    def record(event: Event) -> None:
        journal.append(session, event, durable=True)
        if isinstance(event, RunUndone):
            left.discard(event.run)

    def say(run: int) -> None:
        if run and run not in said:
            said.add(run)
            request = last.requests.get(run)
            what = short(request) if request else "the calls"
            echo(f"undoing {what} of session {session}", err=True)

    def agrees(name: str) -> bool:
        run = max(left)  # `undo` takes the last one first
        say(run)
        return yes or _agrees(name, _lines_lost(files, last, run, name))

    store = VersionStore(versions_root(path, None), session, budget)
    files = FileHistory(where, store, record)
    files.replay(last.events)
    undone = files.undo(agrees)
    say(undone.run)
    return undone


def _lines_lost(files: FileHistory, last: _Change, run: int, name: str) -> list[str]:
    """Return the lines that a file would lose, formatted for display."""
    from neuraxis import call_errors
    from neuraxis.events import FileChanged
    from neuraxis.parsing import encodings
    from neuraxis.sandbox.files.history import turning_point
    from neuraxis.sandbox.files.removed_lines import lost_lines, text_of

    changes = [
        event
        for event in last.events
        if isinstance(event, FileChanged) and (event.run, event.path) == (run, name)
    ]
    digest = turning_point(changes).before
    before = files.store.get(digest) if digest else None
    old = encodings.text_of(before or b"")
    text, why = text_of(files.workspace, name)
    if why:
        return [call_errors.lines_not_shown(name, why)]
    return lost_lines(name, text, old[0].splitlines() if old else ())


def _workspace(events: Sequence[Event | Unknown]) -> Path:
    from neuraxis.events import SessionStarted

    for event in reversed(events):
        if isinstance(event, SessionStarted) and event.workspace:
            return Path(event.workspace)
    raise ConfigError("the session does not record its workspace")


def _agrees(name: str, lost: Iterable[str]) -> bool:
    from neuraxis.cli.approve import confirm, is_somebody_there

    if not is_somebody_there():
        return False
    for line in lost:
        echo(f"    {one_line(line)}", err=True)
    return confirm(f"{one_line(name)} was changed after the run. Undo it all the same?")


def show_undone(undone: Undone) -> int:
    """Print what was restored and what was not; return the exit code."""
    for what, names in (
        ("restored", undone.restored),
        ("removed", undone.removed),
        ("kept, changed after the run (--yes restores it)", undone.changed_since),
        ("lost, its old version was pruned", undone.lost),
        ("kept, refused by the system or blocked (undo again later)", undone.refused),
    ):
        for name in names:
            during = name in undone.changed_during
            text = " (as somebody left it during the run)" if during else ""
            echo(f"{what}: {one_line(name)}{text}")
    if not undone.run:
        echo(
            "nothing to undo: no run of this conversation changed a file, or each that "
            "did is undone",
            err=True,
        )
    return 1 if undone.changed_since or undone.lost or undone.refused else 0
