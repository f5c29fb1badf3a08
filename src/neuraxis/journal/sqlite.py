"""A journal in one SQLite file: WAL, synchronous=FULL, one row for each event.

Events that need not survive a crash by themselves are held back and written in one
transaction with the next durable one, so that a run costs few disk flushes. What is
held back is at most what happened since the last effect (decision 8: a call with an
effect is on disk before it runs). It is written too when the journal is forgotten, and
at the end of the process.

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

from neuraxis.errors import StorageError
from neuraxis.events import Event, from_json, to_json
from neuraxis.journal import Entry, SessionInfo
from neuraxis.journal.database import Database
from neuraxis.journal.session_lock import Claims
from neuraxis.specs import Json

_ENCODER = json.JSONEncoder(default=str)

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
        self._held: list[tuple[str, int, float, str, str]] = []
        self._next: dict[str, int] = {}
        self._read_to: dict[str, int] = {}
        self._claims = Claims(path.with_name(f"{path.name}-claims"))
        self._file = Database(path)
        self._file.open()
        self._closed = False
        with _knowing:
            _known.add(self)

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise StorageError(
                f"the journal {self.path} was closed, as `Session.close` does; make "
                "another session with session=… to go on with an earlier one"
            )
        return self._file.open()

    def append(self, session: str, event: Event, *, durable: bool = False) -> None:
        """Keep the event; `durable`: it and all before it are on disk on return."""
        written = to_json(event)
        # what a plugin answered may hold lone surrogates; JSON escapes keep them
        body = _ENCODER.encode(written)
        with self._lock:
            seq = self._next.get(session)
            if seq is None or self._closed:
                seq = self._begin(session)
            self._next[session] = seq + 1
            self._held.append((session, seq, time.time(), str(written["type"]), body))
            if durable or len(self._held) >= 200:
                self._write()

    def flush(self) -> None:
        """Write what is still held back."""
        with self._lock:
            self._write()

    def _begin(self, session: str) -> int:
        """The number of the first event that is written here."""
        db = self._open()
        if not self._claims.take(session):
            raise StorageError(
                f"session {session} is open in another process; end it there, or "
                "begin another session"
            )
        try:
            row = db.execute(
                "SELECT max(seq) FROM events WHERE session = ?", (session,)
            ).fetchone()
        except sqlite3.Error as error:
            raise self._failed(error) from error
        last = int(row[0] or 0)
        if self._read_to.get(session, last) != last:
            raise _went_on(session)
        return last + 1

    def _write(self) -> None:
        if not self._held:
            return
        db = self._open()
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", self._held)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except sqlite3.IntegrityError as error:
            self._let_go(db)
            raise self._failed(error) from error
        except sqlite3.Error as error:
            raise self._failed(error) from error
        self._held.clear()

    def _let_go(self, db: sqlite3.Connection) -> None:
        """Hold back nothing more of sessions that were written to elsewhere.

        Raises:
            StorageError: those are named; the others are written with the next event.
        """
        taken: list[str] = []
        for session in dict.fromkeys(row[0] for row in self._held):
            first = next(row[1] for row in self._held if row[0] == session)
            row = db.execute(
                "SELECT max(seq) FROM events WHERE session = ?", (session,)
            ).fetchone()
            if int(row[0] or 0) >= first:
                taken.append(session)
                # the next event finds that there are more than there were
                self._read_to[session] = first - 1
                del self._next[session]
        self._held = [row for row in self._held if row[0] not in taken]
        if taken:
            raise _went_on(taken[0])

    def _failed(self, error: Exception, what: str = "written") -> StorageError:
        return StorageError(f"the journal {self.path} cannot be {what}: {error}")

    def read(self, session: str) -> Sequence[Entry]:
        """All events of a session, oldest first."""
        with self._lock:
            self._write()
            db = self._open()
            try:
                rows = db.execute(
                    "SELECT seq, at, body FROM events WHERE session = ? ORDER BY seq",
                    (session,),
                ).fetchall()
            except (sqlite3.Error, UnicodeError) as error:
                raise self._failed(error, "read") from error
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
        with self._lock:
            self._write()
            db = self._open()
            try:
                rows = db.execute(
                    "SELECT session, min(at), max(at), count(*), (SELECT body FROM "
                    "events AS e WHERE e.session = events.session AND e.type = "
                    "'message' ORDER BY seq LIMIT 1) FROM events GROUP BY session "
                    "ORDER BY max(at) DESC"
                ).fetchall()
            except (sqlite3.Error, UnicodeError) as error:
                raise self._failed(error, "read") from error
        return [
            SessionInfo(
                session=session,
                started=first,
                ended=last,
                events=count,
                title="" if body is None else _title(self._read_body(body)),
            )
            for session, first, last, count, body in rows
        ]

    def close(self) -> None:
        """Write what is held back and close the file; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            try:
                self._write()
            finally:
                self._closed = True
                self._file.close()
                self._claims.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # also where it was never opened
            self.close()

    # --- around a fork -----------------------------------------------------------

    def before_fork(self) -> None:
        """Leave nothing of SQLite open; `after_fork` is to follow."""
        self._lock.acquire()
        if not self._closed:
            with contextlib.suppress(StorageError):  # told with the next event
                self._write()
            self._file.close()

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child the sessions are still the parent's."""
        if child:
            self._held = []
            self._read_to |= {name: seq - 1 for name, seq in self._next.items()}
            self._next = {}
            self._claims = Claims(self._claims.path)
        self._lock.release()


def _went_on(session: str) -> StorageError:
    return StorageError(
        f"session {session} went on elsewhere since it was read here; open it again"
    )


def _title(message: Mapping[str, Json]) -> str:
    line = " ".join(str(message.get("content", "")).split())
    return line if len(line) <= 60 else line[:59] + "…"


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
