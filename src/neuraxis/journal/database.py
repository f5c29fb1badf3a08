"""SQLite file of a journal, and its tables."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from neuraxis.errors import StorageError

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x4E585241  # "NXRA": tells a journal from any other database

_BUSY = 10.0
"""Seconds to wait for another process that writes."""
_STATEMENTS = 8
"""Kept by a connection, prepared: one that writes 500 rows takes 200 kB."""

# Rows lie in the order of writing, so that a commit of many sessions writes few pages;
# files of earlier versions have them in the order of the key, and are used as they are.
_TABLES = (
    """
    CREATE TABLE events (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        type TEXT NOT NULL,
        body TEXT NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX events_of_session ON events (session, seq)",
)


class Database:
    """One file; closed, it is opened again when it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """What the path led to when it was opened first."""

    def open(self) -> sqlite3.Connection:
        """The database.

        Raises:
            StorageError: it cannot be opened, is no journal, or the file is not any
                more the one that it was.
        """
        try:
            if self._open is None:
                self._open = self._connect()
            else:
                self._check()
        except (OSError, sqlite3.Error, UnicodeError) as error:
            raise StorageError(
                f"the journal {self.path} cannot be opened: {error}. Name another file "
                "or memory: journal=... in a program, --journal on the command line"
            ) from error
        return self._open

    def close(self) -> None:
        """Let go of the file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connect(self) -> sqlite3.Connection:
        if self._file is not None:
            self._check()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            # what was said is the person's own; what SQLite adds is made likewise
            self.path.touch(mode=0o600)
        db = sqlite3.connect(
            self.path,
            check_same_thread=False,
            isolation_level=None,
            timeout=_BUSY,
            cached_statements=_STATEMENTS,
        )
        try:
            self._prepare(db)
            found = self.path.stat()
        except BaseException:
            db.close()
            raise
        self._file = (found.st_dev, found.st_ino)
        return db

    def _check(self) -> None:
        """Raise if the file was deleted: SQLite would write on."""
        try:
            found = self.path.stat()
            same = self._file == (found.st_dev, found.st_ino)
        except FileNotFoundError:
            same = False
        if not same:
            raise StorageError(
                f"the journal {self.path} was deleted or replaced while it was in "
                "use; put that file back, or open the journal again, which begins an "
                "empty one"
            )

    def _prepare(self, db: sqlite3.Connection) -> None:
        if self._is_new(db):
            # All of it or nothing, and once: another process may begin the same file,
            # and one that is killed here must not leave a database that is no journal.
            db.execute("BEGIN IMMEDIATE")
            try:
                if self._is_new(db):
                    for table in _TABLES:
                        db.execute(table)
                    db.execute(f"PRAGMA application_id={_APPLICATION_ID}")
                    db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        _use_wal(db)
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA secure_delete=ON")  # what is deleted is gone for good

    def _is_new(self, db: sqlite3.Connection) -> bool:
        """Whether the file is empty.

        Raises:
            StorageError: it is no journal, or one of a later version.
        """
        # one statement: two would see the file before and after another's beginning
        found, version, tables = db.execute(
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


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to WAL, trying again while the file is locked."""
    ends = time.monotonic() + _BUSY
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            locked = "locked" in str(error) or "busy" in str(error)
            if not locked or time.monotonic() > ends:
                raise
            time.sleep(0.01)
        else:
            return
