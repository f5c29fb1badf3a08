"""A journal in one SQLite file: WAL, synchronous=FULL, one row for each event.

Events that need not survive a crash by themselves are held back and written in one
transaction with the next durable one, so that a run costs few disk flushes. What is
held back is at most what happened since the last effect (decision 8: a call with an
effect is on disk before it runs).
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from neuraxis.errors import StorageError
from neuraxis.events import Event, from_json, to_json
from neuraxis.journal import Entry, SessionInfo
from neuraxis.journal.claims import Claims
from neuraxis.specs import Json

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x4E585241  # "NXRA": tells a journal from any other database

_BUSY = 10.0
"""Seconds to wait for another process that writes."""

_ENCODER = json.JSONEncoder(default=str)

_TABLES = """
CREATE TABLE events (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
"""


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
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                # what was said is the person's own; what SQLite adds is made likewise
                path.touch(mode=0o600)
            self._db = sqlite3.connect(
                path, check_same_thread=False, isolation_level=None, timeout=_BUSY
            )
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise
        except (OSError, sqlite3.Error, UnicodeError) as error:
            raise StorageError(
                f"the journal {path} cannot be opened: {error}. Name another file "
                "with --journal, or use --journal memory"
            ) from error

    def _open(self) -> None:
        db = self._db
        if self._is_new():
            # All of it or nothing, and once: another process may begin the same file,
            # and one that is killed here must not leave a database that is no journal.
            db.execute("BEGIN IMMEDIATE")
            try:
                if self._is_new():
                    db.execute(_TABLES)
                    db.execute(f"PRAGMA application_id={_APPLICATION_ID}")
                    db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        self._use_wal()
        db.execute("PRAGMA synchronous=FULL")

    def _is_new(self) -> bool:
        """Whether the file is empty.

        Raises:
            StorageError: it is no journal, or one of a later version.
        """
        # one statement: two would see the file before and after another's beginning
        found, version, tables = self._db.execute(
            "SELECT (SELECT application_id FROM pragma_application_id), "
            "(SELECT user_version FROM pragma_user_version), "
            "(SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if found not in (0, _APPLICATION_ID) or (found == 0 and tables):
            raise StorageError(f"{self.path} is a database, but not a journal")
        if version > SCHEMA_VERSION:
            raise StorageError(
                f"the journal {self.path} was written by a later version "
                f"(format {version}, this one reads up to {SCHEMA_VERSION})"
            )
        return not tables

    def _use_wal(self) -> None:
        """Switch to WAL; SQLite does not wait for a lock here, so it is asked again."""
        ends = time.monotonic() + _BUSY
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                locked = "locked" in str(error) or "busy" in str(error)
                if not locked or time.monotonic() > ends:
                    raise
                time.sleep(0.01)
            else:
                return

    def append(self, session: str, event: Event, *, durable: bool = False) -> None:
        """Keep the event; `durable`: it and all before it are on disk on return."""
        written = to_json(event)
        # what a plugin answered may hold lone surrogates; JSON escapes keep them
        body = _ENCODER.encode(written)
        with self._lock:
            seq = self._next.get(session)
            if seq is None:
                seq = self._begin(session)
            self._next[session] = seq + 1
            self._held.append((session, seq, time.time(), str(written["type"]), body))
            if durable or len(self._held) >= 200:
                self._write()

    def _begin(self, session: str) -> int:
        """The number of the first event that is written here."""
        if not self._claims.take(session):
            raise StorageError(
                f"session {session} is open in another process; end it there, or "
                "begin another session"
            )
        try:
            row = self._db.execute(
                "SELECT max(seq) FROM events WHERE session = ?", (session,)
            ).fetchone()
        except sqlite3.Error as error:
            raise self._failed(error) from error
        last = int(row[0] or 0)
        if self._read_to.get(session, last) != last:
            raise StorageError(
                f"session {session} went on elsewhere since it was read here; open it "
                "again"
            )
        return last + 1

    def _write(self) -> None:
        if not self._held:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?)", self._held
                )
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._failed(error) from error
        self._held.clear()

    def _failed(self, error: Exception, what: str = "written") -> StorageError:
        return StorageError(f"the journal {self.path} cannot be {what}: {error}")

    def read(self, session: str) -> Sequence[Entry]:
        """All events of a session, oldest first."""
        with self._lock:
            self._write()
            try:
                rows = self._db.execute(
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
            try:
                rows = self._db.execute(
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
        """Write what is held back and close the file."""
        with self._lock:
            try:
                self._write()
            finally:
                self._db.close()
                self._claims.close()


def _title(message: Mapping[str, Json]) -> str:
    line = " ".join(str(message.get("content", "")).split())
    return line if len(line) <= 60 else line[:59] + "…"
