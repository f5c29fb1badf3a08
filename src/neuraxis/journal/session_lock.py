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
from pathlib import Path

from msgspec import Struct, field

_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)


class _File(Struct, eq=False):
    """An open file; `places` are the locked bytes, each with how many claims it has."""

    number: int
    users: int = 0
    places: dict[int, int] = field(default_factory=dict[int, int])

    def gives_back(self, place: int) -> bool:
        """Whether nobody here has the place any more."""
        self.places[place] -= 1
        if not self.places[place]:
            del self.places[place]
        return place not in self.places


# A process that closes a file loses all its locks on it, also those it took through
# another opening: so each file is opened once, and closed by its last user.
_open: dict[str, _File] = {}
# a journal that is forgotten gives its claims back wherever it is collected: also in
# the middle of another one's claim
_lock = threading.RLock()


class Claims:
    """The sessions that this process writes to. Where files have no locks: any.

    Args:
        path: of the file; made when it is needed, and left: it stays empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
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
            file.places[place] = file.places.get(place, 0) + 1
            try:
                fcntl.lockf(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except OSError as error:
                file.gives_back(place)
                return error.errno not in _HELD  # any other: there are no locks here
            self._places.add(place)
        return True

    def _file(self) -> _File:
        while not self._key:
            key = os.path.realpath(self.path)
            file = _open.get(key)
            if file is None:
                file = _open[key] = _File(os.open(key, os.O_RDWR | os.O_CREAT, 0o600))
            file.users += 1
            if _open.get(key) is file:  # else its last user was collected just now
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
                if file.gives_back(place):
                    fcntl.lockf(file.number, fcntl.LOCK_UN, 1, place)


def _in_child() -> None:
    """A forked process has the files open, and none of the locks."""
    global _lock  # another thread may have had it
    _lock = threading.RLock()
    for file in _open.values():
        with contextlib.suppress(OSError):
            os.close(file.number)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
