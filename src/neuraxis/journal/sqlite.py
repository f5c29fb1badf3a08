"""Journal in a SQLite file: WAL, one row per event.

Events are appended to a buffer and written by one thread (`writer.py`), many in one
transaction. To be sure that an event is on disk, await `settled`. Other events are
written with the next ones, when the journal is garbage-collected, and at the end of the
process. A session can be open once (`session_lock.py`).

SQLite connections must not be used after a fork: files are closed before it, and
reopened in both processes when needed.
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
from neuraxis.journal.memory import calls_title, short_title
from neuraxis.journal.session_lock import Claims
from neuraxis.journal.writer import Writer, last_number, overtaken_error, write_error
from neuraxis.specs import Json

_journals: weakref.WeakSet[SqliteJournal] = weakref.WeakSet()
"""All open journals, for forks and for the end of the process."""
_journals_lock = threading.Lock()


class SqliteJournal:
    """Journal in one file, safe for several threads and processes.

    Raises:
        StorageError: from every method, if the file cannot be written or read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._next_numbers: dict[str, int] = {}
        self._last_read: dict[str, int] = {}
        self._opened: set[str] = set()
        """Claimed sessions."""
        self._claims = Claims(path.with_name(f"{path.name}-locks"))
        # a second connection, so that readers do not wait for the writer
        self._file = Database(path)
        self._file.open()
        self._writer = Writer(Database(path))
        self._closed = False
        with _journals_lock:
            _journals.add(self)

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise StorageError(
                f"the journal {self.path} was closed, as `Session.close` does; "
                "Session.open(ID, journal=…) continues an earlier session"
            )
        return self._file.open()

    def claim(self, session: str, *, is_new: bool = False) -> None:
        """Open a session until `release`; nothing else may open it.

        Args:
            session: its id.
            is_new: whether the id was made a moment ago: its events are numbered
                from 1, without a look into the file.

        Raises:
            SessionBusy: it is open already.
        """
        with self._lock:
            if session in self._opened or not self._claims.take(session):
                raise SessionBusy(_is_open(session))
            self._opened.add(session)
            if is_new:
                self._next_numbers[session] = 1

    def release(self, session: str) -> None:
        """Close a session, so that it can be opened elsewhere.

        Raises:
            StorageError: its buffered events cannot be written.
        """
        try:
            if self._writer.pending(session):
                self._writer.write()
        finally:
            with self._lock:
                self._opened.discard(session)
                self._next_numbers.pop(session, None)
                self._last_read.pop(session, None)
                self._claims.release(session)

    def append(self, session: str, event: Event, *, durable: bool = False) -> None:
        """Store the event; `durable`: on disk, with all before it, on return."""
        kind, body = TYPES[event.__class__], to_text(event)
        with self._lock:
            if self._writer.overtaken:
                self._reset_if_overtaken(session)
            seq = self._next_numbers.get(session)
            if seq is None or self._closed:
                seq = self._first_number(session)
            self._next_numbers[session] = seq + 1
            self._writer.add((session, seq, time.time(), kind, body))
        if durable:
            self._writer.write()
        elif kind == "call_finished":
            self._writer.write_soon()  # while the next reply of the model is awaited

    async def settled(self, session: str) -> None:
        """Wait until all appended events of a session are on disk.

        Raises:
            StorageError: they cannot be written.
        """
        await self._writer.settled(session)

    def flush(self) -> None:
        """Write the buffered events."""
        self._writer.write()

    def _first_number(self, session: str) -> int:
        """Return the number of the first event that this journal writes."""
        connection = self._open()
        if not self._claims.take(session):
            raise StorageError(_is_open(session))
        try:
            last_stored = last_number(connection, session)
        except sqlite3.Error as error:
            raise write_error(self.path, error) from error
        if self._last_read.get(session, last_stored) != last_stored:
            raise overtaken_error(session)
        return last_stored + 1

    def _reset_if_overtaken(self, session: str) -> None:
        """Forget a session's counters if another process wrote to it."""
        last_own = self._writer.overtaken.pop(session, None)
        if last_own is not None:
            self._last_read[session] = last_own
            self._next_numbers.pop(session, None)

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
                raise write_error(self.path, error, "read") from error
            last = rows[-1][0] if rows else 0
            # what was written meanwhile is in both
            rows += [(row[1], row[2], row[4]) for row in waiting if row[1] > last]
            if rows:
                self._last_read[session] = rows[-1][0]
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
        """Return all sessions, the most recently used first."""
        self._writer.write()
        with self._lock:
            connection = self._open()
            try:
                rows = connection.execute(
                    "SELECT session, min(at), max(at), count(*), coalesce((SELECT body "
                    "FROM events AS e WHERE e.session = events.session AND e.type = "
                    "'message' AND json_extract(body, '$.sender') = 'user' "
                    "ORDER BY seq LIMIT 1), (SELECT body FROM events AS e "
                    "WHERE e.session = events.session AND e.type = 'plan_checked' "
                    "ORDER BY seq LIMIT 1)), (SELECT body FROM events AS e "
                    "WHERE e.session = events.session AND e.type IN ('message', "
                    "'session_finished') ORDER BY seq DESC LIMIT 1) FROM events GROUP "
                    "BY session ORDER BY max(at) DESC"
                ).fetchall()
            except (sqlite3.Error, UnicodeError) as error:
                raise write_error(self.path, error, "read") from error
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
            StorageError: also if other readers keep the write-ahead log, which has the
                events, too, from being emptied.
        """
        self._writer.write()
        with self._lock:
            connection = self._open()
            self._next_numbers.pop(session, None)
            self._last_read.pop(session, None)
            try:
                connection.execute("DELETE FROM events WHERE session = ?", (session,))
                checkpoint = connection.execute(
                    "PRAGMA wal_checkpoint(TRUNCATE)"
                ).fetchone()
            except sqlite3.Error as error:
                raise write_error(self.path, error) from error
        if checkpoint[0]:
            raise StorageError(
                f"session {session} is deleted, but {self.path.name}-wal beside the "
                "journal still holds its text, since somebody else reads the journal; "
                "it goes when everybody has closed the journal"
            )

    def close(self) -> None:
        """Write the buffered events and close the file."""
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
        try:  # noqa: SIM105 - at the end of the interpreter there is no `contextlib`
            self.close()
        except Exception:  # noqa: BLE001 - `__init__` may have failed
            pass

    # --- around a fork -----------------------------------------------------------

    def before_fork(self) -> None:
        """Close all SQLite connections; `after_fork` must follow."""
        self._lock.acquire()
        self._writer.before_fork()
        self._file.close()

    def after_fork(self, *, child: bool) -> None:
        """Continue; in the child, the sessions still belong to the parent."""
        self._writer.after_fork(child=child)
        if child:
            self._last_read |= {
                name: seq - 1 for name, seq in self._next_numbers.items()
            }
            self._next_numbers = {}
            self._opened = set()
            self._claims = Claims(self._claims.folder)
        self._lock.release()


def _is_open(session: str) -> str:
    return (
        f"session {session} is open already, here or in another process; close it "
        "there, or begin another session"
    )


def _title(event: Mapping[str, Json]) -> str:
    """Return the title from the user's first message, or the first plan."""
    if "steps" in event:
        return calls_title(event["steps"])
    return short_title(str(event.get("content", "")))


def _state(event: Mapping[str, Json]) -> str:
    """Return how a request ended, from its last event."""
    return str(event.get("outcome", "unfinished"))


_forked: list[SqliteJournal] = []


def _before_fork() -> None:
    _journals_lock.acquire()
    _forked.extend(_journals)
    for journal in _forked:
        journal.before_fork()


def _after_fork(*, child: bool) -> None:
    for journal in _forked:
        journal.after_fork(child=child)
    _forked.clear()
    _journals_lock.release()


def _write_all() -> None:
    with _journals_lock:
        journals = list(_journals)
    for journal in journals:
        with contextlib.suppress(
            StorageError
        ):  # the process ends: nothing can report it
            journal.flush()


atexit.register(_write_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=partial(_after_fork, child=False),
        after_in_child=partial(_after_fork, child=True),
    )
