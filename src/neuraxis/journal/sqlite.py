"""Journal in a SQLite file: WAL, one row an event.

Events are appended to a buffer and written by one thread (`writer.py`), many in one
transaction; whoever promises that one is on disk awaits `settled`. What nobody waited
for is written with the next, when the journal is forgotten, and at the end of the
process. A session is open once (`session_lock.py`).

SQLite must not be carried into a forked process: each file is closed before a fork, and
opened again, on both sides, when it is needed.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from neuraxis.errors import SessionBusy, StorageError
from neuraxis.events import (
    TYPES,
    Event,
    from_json,
    to_text,
)
from neuraxis.journal import Entry, SessionInfo
from neuraxis.journal.database import Database
from neuraxis.journal.memory import short_title, title_of_calls
from neuraxis.journal.session_lock import Claims
from neuraxis.journal.writer import Writer, last_number, went_on, write_failed
from neuraxis.specs import Json

_known: weakref.WeakSet[SqliteJournal] = weakref.WeakSet()
"""Those that there are, for the moment of a fork and for the end of the process."""
_knowing = threading.Lock()


class SqliteJournal:
    """One file, many sessions, safe for several threads and processes.

    Raises:
        StorageError: from every method, where the file cannot be written or read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._next: dict[str, int] = {}
        self._read_to: dict[str, int] = {}
        self._owned: set[str] = set()
        """The sessions that somebody opened, and did not close."""
        self._claims = Claims(path.with_name(f"{path.name}-locks"))
        # readers do not wait for who writes, so they have a connection of their own
        self._file = Database(path)
        self._file.open()
        self._writer = Writer(Database(path))
        self._closed = False
        with _knowing:
            _known.add(self)

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise StorageError(
                f"the journal {self.path} was closed, as `Session.close` does; "
                "Session.open(ID, journal=…) continues an earlier session"
            )
        return self._file.open()

    def claim(self, session: str) -> None:
        """Open a session here and nowhere else, until `release`.

        Raises:
            SessionBusy: it is open already.
        """
        with self._lock:
            if session in self._owned or not self._claims.take(session):
                raise SessionBusy(_is_open(session))
            self._owned.add(session)

    def release(self, session: str) -> None:
        """Close a session, so that somebody else may open it.

        Raises:
            StorageError: what it appended cannot be written.
        """
        try:
            if self._writer.pending(session):
                self._writer.write()
        finally:
            with self._lock:
                self._owned.discard(session)
                self._next.pop(session, None)
                self._read_to.pop(session, None)
                self._claims.release(session)

    def append(self, session: str, event: Event, *, durable: bool = False) -> None:
        """Store the event.

        `durable`: it and all before it are on disk on return.
        """
        kind, body = TYPES[event.__class__], to_text(event)
        with self._lock:
            if self._writer.lost:
                self._forget(session)
            seq = self._next.get(session)
            if seq is None or self._closed:
                seq = self._begin(session)
            self._next[session] = seq + 1
            self._writer.add((session, seq, time.time(), kind, body))
        if durable:
            self._writer.write()
        elif kind == "call_finished":
            self._writer.nudge()  # nobody waits for it, and the model is asked next

    async def settled(self, session: str) -> None:
        """Wait until all that was appended to a session is on disk.

        Raises:
            StorageError: it cannot be written.
        """
        await self._writer.settled(session)

    def flush(self) -> None:
        """Write what is still held back."""
        self._writer.write()

    def _begin(self, session: str) -> int:
        """The number of the first event that is written here."""
        db = self._open()
        if not self._claims.take(session):
            raise StorageError(_is_open(session))
        try:
            last = last_number(db, session)
        except sqlite3.Error as error:
            raise write_failed(self.path, error) from error
        if self._read_to.get(session, last) != last:
            raise went_on(session)
        return last + 1

    def _forget(self, session: str) -> None:
        """Begin anew with a session that was written to elsewhere."""
        ours = self._writer.lost.pop(session, None)
        if ours is not None:
            self._read_to[session] = ours
            self._next.pop(session, None)

    def read(self, session: str) -> Sequence[Entry]:
        """All events of a session, oldest first."""
        waiting = self._writer.pending(session)
        with self._lock:
            db = self._open()
            try:
                rows = db.execute(
                    "SELECT seq, at, body FROM events WHERE session = ? ORDER BY seq",
                    (session,),
                ).fetchall()
            except (sqlite3.Error, UnicodeError) as error:
                raise write_failed(self.path, error, "read") from error
            last = rows[-1][0] if rows else 0
            # what was written meanwhile is in both
            rows += [(row[1], row[2], row[4]) for row in waiting if row[1] > last]
            if rows:
                self._read_to[session] = rows[-1][0]
        return [
            Entry(seq=seq, at=at, event=from_json(self._read_body(body)))
            for seq, at, body in rows
        ]

    def _read_body(self, body: str) -> Mapping[str, Json]:
        try:
            written: Json = json.loads(body)
        except (TypeError, ValueError, RecursionError) as error:
            raise StorageError(
                f"the journal {self.path} is damaged: {error}"
            ) from error
        if not isinstance(written, dict):
            raise StorageError(f"the journal {self.path} is damaged: no event")
        return cast("dict[str, Json]", written)

    def sessions(self) -> Sequence[SessionInfo]:
        """All sessions, the last used first."""
        self._writer.write()
        with self._lock:
            db = self._open()
            try:
                rows = db.execute(
                    "SELECT session, min(at), max(at), count(*), coalesce((SELECT body "
                    "FROM events AS e WHERE e.session = events.session AND e.type = "
                    "'message' ORDER BY seq LIMIT 1), (SELECT body FROM events AS e "
                    "WHERE e.session = events.session AND e.type = 'plan_checked' "
                    "ORDER BY seq LIMIT 1)), (SELECT body FROM events AS e "
                    "WHERE e.session = events.session AND e.type IN ('message', "
                    "'session_finished') ORDER BY seq DESC LIMIT 1) FROM events GROUP "
                    "BY session ORDER BY max(at) DESC"
                ).fetchall()
            except (sqlite3.Error, UnicodeError) as error:
                raise write_failed(self.path, error, "read") from error
        return [
            SessionInfo(
                session=session,
                started=first,
                ended=last,
                events=count,
                title="" if body is None else _title(self._read_body(body)),
                state="" if end is None else _state(self._read_body(end)),
            )
            for session, first, last, count, body, end in rows
        ]

    def delete(self, session: str) -> None:
        """Delete all events of a claimed session, and overwrite their bytes.

        Raises:
            StorageError: also if others read the file for so long that its log, in
                which the events stand, too, cannot be emptied.
        """
        self._writer.write()
        with self._lock:
            db = self._open()
            self._next.pop(session, None)
            self._read_to.pop(session, None)
            try:
                db.execute("DELETE FROM events WHERE session = ?", (session,))
                done = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error as error:
                raise write_failed(self.path, error) from error
        if done[0]:
            raise StorageError(
                f"session {session} is deleted, but {self.path.name}-wal beside the "
                "journal still holds its text, since somebody else reads the journal; "
                "it goes when everybody has closed the journal"
            )

    def close(self) -> None:
        """Write what is buffered and close the file."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._writer.close()
            finally:
                self._file.close()
                self._claims.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # also where it was never opened
            self.close()

    # --- around a fork -----------------------------------------------------------

    def before_fork(self) -> None:
        """Leave nothing of SQLite open; `after_fork` is to follow."""
        self._lock.acquire()
        self._writer.before_fork()
        self._file.close()

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child the sessions are still the parent's."""
        self._writer.after_fork(child=child)
        if child:
            self._read_to |= {name: seq - 1 for name, seq in self._next.items()}
            self._next = {}
            self._owned = set()
            self._claims = Claims(self._claims.folder)
        self._lock.release()


def _is_open(session: str) -> str:
    return (
        f"session {session} is open already, here or in another process; close it "
        "there, or begin another session"
    )


def _title(event: Mapping[str, Json]) -> str:
    """Return the title by the first message, else the first plan."""
    if "steps" in event:
        return title_of_calls(event["steps"])
    return short_title(str(event.get("content", "")))


def _state(event: Mapping[str, Json]) -> str:
    """Return how a request ended, from its last message or its end."""
    return str(event.get("outcome", "unfinished"))


_forked: list[SqliteJournal] = []


def _before_fork() -> None:
    _knowing.acquire()
    _forked.extend(_known)
    for journal in _forked:
        journal.before_fork()


def _after_fork(*, child: bool) -> None:
    for journal in _forked:
        journal.after_fork(child=child)
    _forked.clear()
    _knowing.release()


def _write_all() -> None:
    with _knowing:
        known = list(_known)
    for journal in known:
        with contextlib.suppress(StorageError):  # nobody is left to be told
            journal.flush()


atexit.register(_write_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=partial(_after_fork, child=False),
        after_in_child=partial(_after_fork, child=True),
    )
