"""Claims: a session is open in one `Session` at a time.

Two would number their calls alike: results and assets of the one would stand for those
of the other. A process locks one file of its own in a folder beside the journal; each
session that it has open is a link to that file, named by a digest of the session's id.
Of a process that was killed the system releases the lock, and the links stand for
nothing. So one more claim costs the same however many there are.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
_LINKS = 30_000
"""To one file; file systems allow some ten thousands."""
_TRIES = 10


class _Folder(Struct, eq=False):
    """Lock files that this process holds in a folder."""

    users: int = 0
    files: dict[str, int] = {}
    """By path, their descriptors; the last one gets the next links."""
    links: int = 0
    holders: dict[str, Claims] = {}
    """By session."""


_open: dict[str, _Folder] = {}
# a journal that is forgotten gives its claims back wherever it is collected: also in
# the middle of another one's claim
_lock = threading.RLock()


class Claims:
    """Sessions that one journal has open.

    Without file locks: in this process.

    Args:
        folder: of the lock files; made when it is needed, and left.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ""

    def take(self, session: str) -> bool:
        """Claim a session, until `release` or `close`; whether it was free."""
        with _lock:
            folder = self._join()
            holder = folder.holders.get(session)
            if holder is not None:
                return holder is self
            if not _link(_name(self._key, session), self._key, folder):
                return False
            folder.holders[session] = self
        return True

    def release(self, session: str) -> None:
        """Release one claim, if it is held."""
        with _lock:
            folder = _open.get(self._key)
            if folder is None or folder.holders.get(session) is not self:
                return
            del folder.holders[session]
            with contextlib.suppress(OSError):
                os.unlink(_name(self._key, session))

    def close(self) -> None:
        """Release all of them."""
        with _lock:
            folder = _open.get(self._key)
            if not self._key or folder is None:
                return
            for session, holder in list(folder.holders.items()):
                if holder is self:
                    self.release(session)
            key, self._key = self._key, ""
            folder.users -= 1
            if not folder.users:
                del _open[key]
                for path, file in folder.files.items():
                    with contextlib.suppress(OSError):
                        os.unlink(path)
                        os.close(file)

    def _join(self) -> _Folder:
        if not self._key:
            key = os.path.realpath(self.folder)
            _open.setdefault(key, _Folder()).users += 1
            self._key = key
        return _open[self._key]


def _name(folder: str, session: str) -> str:
    """The path that stands for a session."""
    digest = blake2b(session.encode(errors="surrogatepass"), digest_size=16)
    return os.path.join(folder, digest.hexdigest())


def _link(path: str, key: str, folder: _Folder) -> bool:
    """Make the link of a session; whether no other process has it."""
    try:
        import fcntl
    except ImportError:
        return True  # Windows
    try:
        for _ in range(_TRIES):
            try:
                os.link(_own_file(key, folder), path)
            except FileExistsError:
                pass
            else:
                folder.links += 1
                return True
            with contextlib.suppress(FileNotFoundError):  # closed just now
                file = os.open(path, os.O_RDWR)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # who has the lock of a dead process may remove its link, if it is
                    # still that: another one may have been faster
                    if os.path.samestat(os.stat(path), os.fstat(file)):
                        os.unlink(path)
                finally:
                    os.close(file)
    except OSError as error:
        # any other: there are no locks here, or the journal says what is wrong
        return error.errno not in _HELD
    return False


def _own_file(key: str, folder: _Folder) -> str:
    """The file of this process that gets the next link, locked."""
    if not folder.files or folder.links >= _LINKS:
        import fcntl

        os.makedirs(key, mode=0o700, exist_ok=True)
        path = os.path.join(key, f"process-{os.getpid()}-{os.urandom(8).hex()}")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        folder.files[path], folder.links = file, 0
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return next(reversed(folder.files))


def _in_child() -> None:
    """Forget the parent's claims in a forked process."""
    global _lock  # another thread may have had it
    _lock = threading.RLock()
    for folder in _open.values():
        for file in folder.files.values():
            with contextlib.suppress(OSError):
                os.close(file)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
