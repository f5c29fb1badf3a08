"""One process at a time goes on with a session; the system lets go of a killed one's.

Two would number their calls alike: results and assets of the one would stand for those
of the other. A claim is a lock on one byte of a file beside the journal.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import zlib
from dataclasses import field
from pathlib import Path

from neuraxis.later import dataclass

_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)


@dataclass(slots=True, eq=False)
class _File:
    """An open file; `places` are the locked bytes, each with how many claims it has."""

    number: int
    users: int = 0
    places: dict[int, int] = field(default_factory=dict[int, int])


# A process that closes a file loses all its locks on it, also those it took through
# another opening: so each file is opened once, and closed by its last user.
_open: dict[str, _File] = {}
_lock = threading.Lock()


class Claims:
    """The sessions that this process writes to. Where files have no locks: any.

    Args:
        path: of the file; made when it is needed, and left: it stays empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = ""
        self._places: set[int] = set()

    def take(self, session: str) -> bool:
        """Whether the session is this process' from now on, until `close`."""
        try:
            import fcntl
        except ImportError:
            return True  # Windows
        place = zlib.crc32(session.encode(errors="replace")) >> 1
        with _lock:
            try:
                file = self._file()
            except OSError:
                return True  # what is wrong with the folder the journal tells itself
            if place in self._places:
                return True
            try:
                fcntl.lockf(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except OSError as error:
                return error.errno not in _HELD  # any other: there are no locks here
            self._places.add(place)
            file.places[place] = file.places.get(place, 0) + 1
        return True

    def _file(self) -> _File:
        if not self._key:
            key = os.path.realpath(self._path)
            if key not in _open:
                _open[key] = _File(os.open(key, os.O_RDWR | os.O_CREAT, 0o600))
            _open[key].users += 1
            self._key = key
        return _open[self._key]

    def close(self) -> None:
        """Let go of them."""
        if not self._key:
            return
        import fcntl

        with _lock, contextlib.suppress(OSError):
            key, places = self._key, self._places
            self._key, self._places = "", set()
            file = _open[key]
            file.users -= 1
            if not file.users:
                del _open[key]
                os.close(file.number)
                return
            for place in places:
                file.places[place] -= 1
                if not file.places[place]:
                    del file.places[place]
                    fcntl.lockf(file.number, fcntl.LOCK_UN, 1, place)
