"""Writer thread of a journal, and the rows it writes.

All callers that wait at the same time share one transaction and one flush of the disk.
The thread starts when it is needed, ends when it is idle, and has no reference to the
journal, so that an unused journal can be garbage-collected.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from neuraxis.errors import StorageError
from neuraxis.journal.database import Database

Row = tuple[str, int, float, str, str]
"""Session, number of the event in it, time, type, body."""
_INSERT = (
    "INSERT INTO events SELECT "
    + ", ".join(f"json_extract(value, '$[{column}]')" for column in range(5))
    + " FROM json_each(?)"
)
"""All rows in one JSON text, which SQLite splits without holding the GIL. After each
statement the thread must wait for the GIL, up to 5 ms while the event loop is busy."""

_MAX_BUFFERED = 500
"""Number of buffered rows at which they are written."""
_PAUSE_SECONDS = 0.1
"""Seconds after which `write_soon` writes, unless a caller waits sooner."""
_IDLE_SECONDS = 5.0
"""Seconds without work after which the thread ends."""


_Waiting = dict[asyncio.AbstractEventLoop, list[tuple[str, asyncio.Future[None]]]]
"""Futures of waiting callers, with their session, by event loop."""


class Writer:
    """Write rows in order; safe for several threads and event loops.

    Args:
        database: used only by this writer.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.overtaken: dict[str, int] = {}
        """Our last number of each session that another process wrote to."""
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._rows: list[Row] = []
        self._being_written: list[Row] = []
        """The rows that are being written."""
        self._waiting: _Waiting = {}
        self._last_unwritten: dict[str, int] = {}
        """Number of the last unwritten row of each session."""
        self._thread: threading.Thread | None = None
        self._is_due_now = self._is_due_soon = False
        """Whether the thread must write now, or after a pause."""
        self._stopped = False

    def add(self, row: Row) -> None:
        """Buffer a row until the next commit."""
        with self._lock:
            self._rows.append(row)
            self._last_unwritten[row[0]] = row[1]
            if len(self._rows) >= _MAX_BUFFERED:
                self._write_now()

    def write_soon(self) -> None:
        """Write the buffered rows after a short pause."""
        with self._lock:
            if not self._is_due_soon:
                self._is_due_soon = True
                self._wake_up()

    def _write_if_waiting(self) -> None:
        """Write now, if a caller still waits."""
        with self._lock:
            if self._waiting:
                self._write_now()

    async def settled(self, session: str) -> None:
        """Wait until all rows of a session are on disk.

        Raises:
            StorageError: they cannot be written.
        """
        with self._lock:
            if session not in self._last_unwritten:
                return
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            waiting = self._waiting.setdefault(loop, [])
            if not waiting:
                # later, so that callers of the same moment share the transaction
                loop.call_soon(self._write_if_waiting)
            waiting.append((session, future))
        await future

    def pending(self, session: str) -> list[Row]:
        """Return the rows of a session that are not on disk yet."""
        with self._lock:
            if session not in self._last_unwritten:
                return []
            return [
                row for row in (*self._being_written, *self._rows) if row[0] == session
            ]

    def write(self) -> None:
        """Write all rows now, in this thread.

        Raises:
            StorageError: they cannot be written, and stay in the buffer.
        """
        with self._writing:
            with self._lock:
                rows, self._rows = self._rows, []
                waiting, self._waiting = self._waiting, {}
                self._being_written = rows
                self._is_due_now = self._is_due_soon = False
            failed: dict[str, StorageError] = {}
            try:
                if rows:
                    failed = self._write_rows(rows)
            except StorageError as error:
                with self._lock:
                    self._rows, self._being_written = rows + self._rows, []
                _wake_waiting(waiting, {session: error for session, *_ in rows})
                raise
            with self._lock:
                self._being_written = []
                for session, number in {row[0]: row[1] for row in rows}.items():
                    if self._last_unwritten.get(session) == number or session in failed:
                        self._last_unwritten.pop(session, None)
                if failed:
                    self._rows = [row for row in self._rows if row[0] not in failed]
            _wake_waiting(waiting, failed)
            for error in failed.values():
                raise error

    def close(self) -> None:
        """Write the buffered rows and close the file.

        Raises:
            StorageError: they cannot be written.
        """
        with self._lock:
            self._stopped = True
            is_writer_thread = self._thread is threading.current_thread()
            self._wake.notify()
        if is_writer_thread:
            return  # garbage-collected in this thread, which closes the file at its end
        try:
            self.write()
        finally:
            with self._writing:
                self.database.close()

    # --- the thread --------------------------------------------------------------

    def _write_now(self) -> None:
        if not self._is_due_now:
            self._is_due_now = True
            self._wake_up()

    def _wake_up(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="neuraxis-journal", daemon=True
            )
            self._thread.start()
        else:
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._is_due_now and not self._stopped:
                    if self._wake.wait(
                        _PAUSE_SECONDS if self._is_due_soon else _IDLE_SECONDS
                    ):
                        continue
                    if self._is_due_soon:
                        break
                    self._thread = None
                    return
                stopped, self._is_due_now = self._stopped, False
            # the waiting callers get the error; the rows are tried again later
            with contextlib.suppress(StorageError):
                if self._rows or self._waiting:
                    self.write()
            if stopped:
                with self._writing:
                    self.database.close()
                return

    def _write_rows(self, rows: Sequence[Row]) -> dict[str, StorageError]:
        """Write rows; return the sessions whose rows are dropped, with the reason.

        Raises:
            StorageError: nothing can be written.
        """
        connection = self.database.open()
        try:
            try:
                _insert(connection, rows)
            except sqlite3.IntegrityError as error:
                overtaken = self._overtaken(connection, rows)
                if not overtaken:
                    raise write_error(self.database.path, error) from error
                _insert(connection, [row for row in rows if row[0] not in overtaken])
                self.overtaken |= overtaken
                return {session: overtaken_error(session) for session in overtaken}
        except sqlite3.Error as error:
            raise write_error(self.database.path, error) from error
        return {}

    def _overtaken(
        self, connection: sqlite3.Connection, rows: Sequence[Row]
    ) -> dict[str, int]:
        """Return sessions that another process wrote to, with our last number."""
        overtaken: dict[str, int] = {}
        for session in dict.fromkeys(row[0] for row in rows):
            first = next(row[1] for row in rows if row[0] == session)
            if last_number(connection, session) >= first:
                overtaken[session] = first - 1
        return overtaken

    # --- around a fork -----------------------------------------------------------

    def before_fork(self) -> None:
        """Close all SQLite connections; `after_fork` must follow."""
        with contextlib.suppress(StorageError):  # the next event reports it
            self.write()
        self._writing.acquire()
        self._lock.acquire()
        self.database.close()

    def after_fork(self, *, child: bool) -> None:
        """Continue; in the child, drop the parent's rows and thread."""
        if child:
            self._rows, self._being_written, self._waiting = [], [], {}
            self._last_unwritten = {}
            self._thread = None
            self._is_due_now = self._is_due_soon = False
            self._wake = threading.Condition(self._lock)
        self._lock.release()
        self._writing.release()


def last_number(connection: sqlite3.Connection, session: str) -> int:
    """Return the number of a session's last event, or 0."""
    query = "SELECT max(seq) FROM events WHERE session = ?"
    return int(connection.execute(query, (session,)).fetchone()[0] or 0)


def write_error(path: Path, error: Exception, what: str = "written") -> StorageError:
    """Return the error of a file that cannot be written or read."""
    return StorageError(f"the journal {path} cannot be {what}: {error}")


def overtaken_error(session: str) -> StorageError:
    """Return the error of a session that another process wrote to."""
    return StorageError(
        f"session {session} went on elsewhere since it was read here; open it again"
    )


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert rows with one statement, which is one transaction."""
    connection.execute(_INSERT, (msgspec.json.encode(rows).decode(),))


def _wake_waiting(waiting: _Waiting, failed: dict[str, StorageError]) -> None:
    """Wake the waiting callers, with one call per event loop."""
    for loop, waiting_in_loop in waiting.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_settle, waiting_in_loop, failed)


def _settle(
    waiting: Sequence[tuple[str, asyncio.Future[None]]], failed: dict[str, StorageError]
) -> None:
    for session, future in waiting:
        if future.done():
            continue
        error = failed.get(session)
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(StorageError(str(error)))
