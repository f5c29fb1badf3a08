"""One process at a time goes on with a session; the system lets go of a killed one's.

Two would number their calls alike: results and assets of the one would stand for those
of the other. A claim is a lock on one byte of a file beside the journal.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from pathlib import Path


class Claims:
    """The sessions that this process writes to. Where files have no locks: any.

    Args:
        path: of the file; made when it is needed, and left: it stays empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self, session: str) -> bool:
        """Whether the session is this process' from now on, until `close`."""
        try:
            import fcntl
        except ImportError:
            return True  # Windows
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            place = zlib.crc32(session.encode(errors="replace")) >> 1
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            # any other: no locks here; what else is wrong the journal tells itself
            return error.errno not in (errno.EAGAIN, errno.EWOULDBLOCK)
        return True

    def close(self) -> None:
        """Let go of them."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None
