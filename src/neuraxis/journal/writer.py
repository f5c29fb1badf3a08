"""Writer thread of a journal, and the rows it writes.

All who wait at the same moment share one transaction and one flush of the disk. The
thread is made when it is needed, ends when nothing came for a while, and holds nothing
of the journal, so that a forgotten journal is collected.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from neuraxis.errors import StorageError
from neuraxis.journal.database import Database

Row = tuple[str, int, float, str, str]
"""Session, number in it, time, type, body."""
_INSERT = (
    "INSERT INTO events SELECT "
    + ", ".join(f"json_extract(value, '$[{column}]')" for column in range(5))
    + " FROM json_each(?)"
)
"""All rows in one text, which SQLite takes apart while the event loop goes on. After
each statement the thread waits for the interpreter: a busy loop keeps it for 5 ms."""

_MANY = 500
"""Rows that are written although nobody waits for them."""
_LULL = 0.1
"""Seconds until rows are written that nobody waits for; mostly somebody does sooner."""
_IDLE = 5.0
"""Seconds without work after which the thread ends."""


_Waiting = dict[asyncio.AbstractEventLoop, list[tuple[str, asyncio.Future[None]]]]
"""Those who wait in each event loop, with their session."""


class Writer:
    """Write rows in their order; safe for several threads and event loops.

    Args:
        database: used by nobody else.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.lost: dict[str, int] = {}
        """Sessions that another process wrote to: the last number that is ours."""
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._rows: list[Row] = []
        self._going: list[Row] = []
        """Those that are being written."""
        self._waiting: _Waiting = {}
        self._due: dict[str, int] = {}
        """By session, the number of its last row that is not written."""
        self._thread: threading.Thread | None = None
        self._asked = self._nudged = False
        """Whether to write now, or after a lull."""
        self._stopped = False

    def add(self, row: Row) -> None:
        """Buffer a row until the next commit."""
        with self._lock:
            self._rows.append(row)
            self._due[row[0]] = row[1]
            if len(self._rows) >= _MANY:
                self._work_soon()

    def nudge(self) -> None:
        """Write soon what there is; nobody waits for it."""
        with self._lock:
            if not self._nudged:
                self._nudged = True
                self._wake_up()

    def _ask(self) -> None:
        """Write now, if somebody still waits."""
        with self._lock:
            if self._waiting:
                self._work_soon()

    async def settled(self, session: str) -> None:
        """Wait until all rows of a session are on disk.

        Raises:
            StorageError: they cannot be written.
        """
        with self._lock:
            if session not in self._due:
                return
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            here = self._waiting.setdefault(loop, [])
            if not here:
                loop.call_soon(self._ask)  # behind those who are about to wait, too
            here.append((session, future))
        await future

    def pending(self, session: str) -> list[Row]:
        """The rows of a session that are not on disk yet."""
        with self._lock:
            if session not in self._due:
                return []
            return [row for row in (*self._going, *self._rows) if row[0] == session]

    def write(self) -> None:
        """Write all rows now, in this thread.

        Raises:
            StorageError: they cannot be written, and wait further.
        """
        with self._writing:
            with self._lock:
                rows, self._rows = self._rows, []
                waiting, self._waiting = self._waiting, {}
                self._going = rows
                self._asked = self._nudged = False
            failed: dict[str, StorageError] = {}
            try:
                if rows:
                    failed = self._put(rows)
            except StorageError as error:
                with self._lock:
                    self._rows, self._going = rows + self._rows, []
                _answer(waiting, {session: error for session, *_ in rows})
                raise
            with self._lock:
                self._going = []
                for session, number in _last(rows):
                    if self._due.get(session) == number or session in failed:
                        self._due.pop(session, None)
                if failed:
                    self._rows = [row for row in self._rows if row[0] not in failed]
            _answer(waiting, failed)
            for error in failed.values():
                raise error

    def close(self) -> None:
        """Write what waits and close the file.

        Raises:
            StorageError: it cannot be written.
        """
        with self._lock:
            self._stopped = True
            own = self._thread is threading.current_thread()
            self._wake.notify()
        if own:
            return  # collected in the thread itself, which closes it in the end
        try:
            self.write()
        finally:
            with self._writing:
                self.database.close()

    # --- the thread --------------------------------------------------------------

    def _work_soon(self) -> None:
        if not self._asked:
            self._asked = True
            self._wake_up()

    def _wake_up(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="neuraxis-journal", daemon=True
            )
            self._thread.start()
        else:
            self._wake.notify()

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._asked and not self._stopped:
                    if self._wake.wait(_LULL if self._nudged else _IDLE):
                        continue
                    if self._nudged:
                        break
                    self._thread = None
                    return
                stopped, self._asked = self._stopped, False
            # whoever waits is told; the rows are tried again with the next
            with contextlib.suppress(StorageError):
                if self._rows or self._waiting:
                    self.write()
            if stopped:
                with self._writing:
                    self.database.close()
                return

    def _put(self, rows: Sequence[Row]) -> dict[str, StorageError]:
        """Write rows; by session, why its rows are dropped.

        Raises:
            StorageError: nothing can be written.
        """
        db = self.database.open()
        try:
            try:
                _insert(db, rows)
            except sqlite3.IntegrityError as error:
                taken = self._taken(db, rows)
                if not taken:
                    raise write_failed(self.database.path, error) from error
                _insert(db, [row for row in rows if row[0] not in taken])
                self.lost |= taken
                return {session: went_on(session) for session in taken}
        except sqlite3.Error as error:
            raise write_failed(self.database.path, error) from error
        return {}

    def _taken(self, db: sqlite3.Connection, rows: Sequence[Row]) -> dict[str, int]:
        """The sessions that were written to elsewhere, with our last number."""
        taken: dict[str, int] = {}
        for session in dict.fromkeys(row[0] for row in rows):
            first = next(row[1] for row in rows if row[0] == session)
            if last_number(db, session) >= first:
                taken[session] = first - 1
        return taken

    # --- around a fork -----------------------------------------------------------

    def before_fork(self) -> None:
        """Leave nothing of SQLite open; `after_fork` is to follow."""
        with contextlib.suppress(StorageError):  # told with the next event
            self.write()
        self._writing.acquire()
        self._lock.acquire()
        self.database.close()

    def after_fork(self, *, child: bool) -> None:
        """Go on; the rows and the thread are the parent's."""
        if child:
            self._rows, self._going, self._waiting = [], [], {}
            self._due = {}
            self._thread = None
            self._asked = self._nudged = False
            self._wake = threading.Condition(self._lock)
        self._lock.release()
        self._writing.release()


def last_number(db: sqlite3.Connection, session: str) -> int:
    """Return the number of a session's last event, or 0."""
    query = "SELECT max(seq) FROM events WHERE session = ?"
    return int(db.execute(query, (session,)).fetchone()[0] or 0)


def write_failed(path: Path, error: Exception, what: str = "written") -> StorageError:
    """The error of a file that cannot be written or read."""
    return StorageError(f"the journal {path} cannot be {what}: {error}")


def went_on(session: str) -> StorageError:
    """The error of a session that somebody else wrote to."""
    return StorageError(
        f"session {session} went on elsewhere since it was read here; open it again"
    )


def _insert(db: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert rows: one statement, which is a transaction of its own."""
    db.execute(_INSERT, (msgspec.json.encode(rows).decode(),))


def _last(rows: Iterable[Row]) -> Iterable[tuple[str, int]]:
    return {row[0]: row[1] for row in rows}.items()


def _answer(waiting: _Waiting, failed: dict[str, StorageError]) -> None:
    """Wake those who wait, with one call for each event loop."""
    for loop, here in waiting.items():
        with contextlib.suppress(RuntimeError):  # closed loop: nobody waits
            loop.call_soon_threadsafe(_settle, here, failed)


def _settle(
    here: Sequence[tuple[str, asyncio.Future[None]]], failed: dict[str, StorageError]
) -> None:
    for session, future in here:
        if future.done():
            continue
        error = failed.get(session)
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(StorageError(str(error)))
