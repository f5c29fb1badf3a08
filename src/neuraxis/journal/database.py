"""SQLite file of a journal, and its tables."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from neuraxis.errors import StorageError

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x4E585241  # "NXRA": distinguishes a journal from other databases

_BUSY = 10.0
"""Seconds to wait for another process that writes."""
_STATEMENTS = 8
"""Prepared statements cached by a connection: one that writes 500 rows takes 200 kB."""

# Rows are stored in the order of writing, so that a commit of many sessions writes few
# pages. Files of earlier versions have them in the order of the key; both work.
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
    """Connection to one file; after `close`, it is reopened when needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        """Device and inode of the file when it was first opened."""

    def open(self) -> sqlite3.Connection:
        """Return the open connection.

        Raises:
            StorageError: the file cannot be opened, is no journal, or was replaced.
        """
        try:
            if self._connection is None:
                self._connection = self._connect()
            else:
                self._check()
        except (OSError, sqlite3.Error, UnicodeError) as error:
            raise StorageError(
                f"the journal {self.path} cannot be opened: {error}. Name another file "
                "or memory: journal=... in a program, --journal on the command line"
            ) from error
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        if self._file_id is not None:
            self._check()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            # private to the user; SQLite creates its other files with the same mode
            self.path.touch(mode=0o600)
        connection = sqlite3.connect(
            self.path,
            check_same_thread=False,
            isolation_level=None,
            timeout=_BUSY,
            cached_statements=_STATEMENTS,
        )
        try:
            self._prepare(connection)
            info = self.path.stat()
        except BaseException:
            connection.close()
            raise
        self._file_id = (info.st_dev, info.st_ino)
        return connection

    def _check(self) -> None:
        """Raise if the file was deleted: SQLite would not notice."""
        try:
            info = self.path.stat()
            is_same = self._file_id == (info.st_dev, info.st_ino)
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise StorageError(
                f"the journal {self.path} was deleted or replaced while it was in "
                "use; put that file back, or open the journal again, which begins an "
                "empty one"
            )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self._is_new(connection):
            # In one transaction: another process may create the same file, and one that
            # is killed here must not leave a database that is no journal.
            connection.execute("BEGIN IMMEDIATE")
            try:
                if self._is_new(connection):
                    for table in _TABLES:
                        connection.execute(table)
                    connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        _use_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")  # overwrite deleted bytes

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """Return whether the file is empty.

        Raises:
            StorageError: it is no journal, or one of a later version.
        """
        # one statement: between two, another process may create the tables
        application_id, version, tables = connection.execute(
            "SELECT (SELECT application_id FROM pragma_application_id), "
            "(SELECT user_version FROM pragma_user_version), "
            "(SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if application_id not in (0, _APPLICATION_ID) or (
            application_id == 0 and tables
        ):
            raise StorageError(f"{self.path} is a database, but not a journal")
        if version > SCHEMA_VERSION:
            raise StorageError(
                f"the journal {self.path} was written by a later version "
                f"(format {version}, this one reads up to {SCHEMA_VERSION})"
            )
        return not tables


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, trying again while the file is locked."""
    deadline = time.monotonic() + _BUSY
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            locked = "locked" in str(error) or "busy" in str(error)
            if not locked or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
