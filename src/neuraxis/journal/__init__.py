"""Where events go and come from: the seam, and the way to open one by name.

Events flow in through `append` in the order they happened; `read` gives them again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from neuraxis.errors import StorageError
from neuraxis.events import Event, Unknown


class SessionInfo(Struct, frozen=True, kw_only=True):
    """One line of `neuraxis sessions ls`."""

    session: str
    started: float
    """Seconds since 1970, of the first event."""
    ended: float
    """Of the last event."""
    events: int
    title: str
    """The beginning of the first thing the person said."""


class Entry(Struct, frozen=True, kw_only=True):
    """A stored event with its number in the session and its time."""

    seq: int
    at: float
    event: Event | Unknown


class Journal(Protocol):
    """Append-only; one journal holds many sessions. Errors are `StorageError`."""

    def append(self, session: str, event: Event, *, durable: bool = False) -> None:
        """Keep the event; `durable`: it is on disk when this returns."""
        ...

    def read(self, session: str) -> Sequence[Entry]:
        """All events of a session, oldest first; empty for an unknown one."""
        ...

    def sessions(self) -> Sequence[SessionInfo]:
        """All sessions, the last used first."""
        ...

    def close(self) -> None:
        """Write what is still held back and let go of the file."""
        ...


def flush(journal: Journal) -> None:
    """Let it write what it holds back, if it is one that can be told to.

    What cannot be written is held back further, and told with the next event.
    """
    write = getattr(journal, "flush", None)
    if write is not None:
        with contextlib.suppress(StorageError):
            write()


def leave(journal: Journal, *, own: bool) -> None:
    """Close a session's own journal; one that is shared goes on for the others.

    Raises:
        StorageError: what was held back cannot be written.
    """
    if own:
        journal.close()
    else:
        flush(journal)


def open_journal(where: str | Path | Journal | None) -> Journal:
    """`None` or `"memory"`: in memory; else the SQLite file at that path, or as given.

    Raises:
        StorageError: the file cannot be opened, or is no journal.
    """
    if not (where is None or isinstance(where, str | Path)):
        return where
    if where is None or where == "memory":
        from neuraxis.journal.memory import MemoryJournal

        return MemoryJournal()
    from neuraxis.journal.sqlite import SqliteJournal

    if Path(where).is_dir():
        raise StorageError(
            f"the journal {where or '.'} cannot be opened: it is a folder. Name a file "
            f"in it with --journal, such as {Path(where) / 'journal.db'}"
        )
    return SqliteJournal(Path(where))
