"""Journal protocol: an append-only event store, and `open_journal`.

`append` stores events in order; `read` returns them.
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
    """Summary of one session in a journal."""

    session: str
    """The session's id."""
    started: float
    """Seconds since 1970 of the first event."""
    ended: float
    """Seconds since 1970 of the last event."""
    events: int
    """Number of stored events."""
    title: str
    """Beginning of the user's first message; without one, the commands called."""
    state: str = ""
    """How the last request ended, such as `answered`; empty: there was none.

    `waiting`: a question is open. `ready`: all are answered or expired, and `resume`
    continues. `cancelled`; `unfinished`: being answered now, or cut off.
    """


class Entry(Struct, frozen=True, kw_only=True):
    """A stored event with its number in the session and its time."""

    seq: int
    at: float
    event: Event | Unknown


class Journal(Protocol):
    """Append-only store of events; one journal holds many sessions.

    Its errors are `StorageError`, and `SessionBusy` of `claim`.
    """

    def claim(self, session: str, *, is_new: bool = False) -> None:
        """Open a session; raise if it is open elsewhere.

        `is_new`: its id was made a moment ago, so nothing is stored under it.
        """
        ...

    def release(self, session: str) -> None:
        """Close a claimed session, once its events are on disk."""
        ...

    def append(self, session: str, event: Event, *, durable: bool = False) -> None:
        """Store the event; `durable`: it is on disk when this returns."""
        ...

    async def settled(self, session: str) -> None:
        """Wait until all appended events of a session are on disk."""
        ...

    def read(self, session: str) -> Sequence[Entry]:
        """Return all events of a session, oldest first; empty if unknown."""
        ...

    def sessions(self) -> Sequence[SessionInfo]:
        """Return all sessions, the most recently used first."""
        ...

    def delete(self, session: str) -> None:
        """Delete all events of a claimed session for good."""
        ...

    def close(self) -> None:
        """Write buffered events and close the file."""
        ...


def flush(journal: Journal) -> None:
    """Write buffered events, if the journal supports it.

    Events that cannot be written stay in the buffer; the next event reports it.
    """
    write = getattr(journal, "flush", None)
    if write is not None:
        with contextlib.suppress(StorageError):
            write()


def release(journal: Journal, session: str, close: bool) -> None:
    """Release a session in its journal, and `close` the session's own journal.

    A failure to write is ignored.
    """
    with contextlib.suppress(StorageError):
        journal.release(session)
    if close:
        journal.close()


def open_journal(where: str | Path | Journal | None) -> Journal:
    """Open a journal by path, or in memory for `None` and `"memory"`.

    A journal object is returned unchanged.

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
            f"in it, such as {Path(where) / 'journal.db'}: journal=... in a program, "
            "--journal on the command line"
        )
    return SqliteJournal(Path(where))
