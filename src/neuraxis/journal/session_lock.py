"""Lock sessions, so that each is open in one `Session` only.

Two would use the same call ids for different calls. A process locks one file of its own
in a folder beside the journal. Each session that it opens is a hard link to that file,
named by a digest of the session's id. If the process is killed, the system releases the
lock, and the links become invalid. So the cost of a claim does not depend on the number
of open sessions.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

_LOCKED = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
_MAX_LINKS = 30_000
"""Maximum links to one file; file systems allow some ten thousands."""
_ATTEMPTS = 10


class _Folder(Struct, eq=False):
    """Lock files of this process in one folder."""

    users: int = 0
    files: dict[str, int] = {}
    """File descriptors by path; new links go to the last file."""
    links: int = 0
    holders: dict[str, Claims] = {}
    """The claims by session."""


_folders: dict[str, _Folder] = {}
# reentrant: the garbage collector may close a journal in the middle of another claim
_lock = threading.RLock()


class Claims:
    """Sessions that one journal has open.

    On Windows, without file locks, only this process is checked.

    Args:
        folder: holds the lock files; created when needed, and not removed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folder_path = ""

    def take(self, session: str) -> bool:
        """Claim a session until `release` or `close`; return whether it was free."""
        with _lock:
            folder = self._join()
            holder = folder.holders.get(session)
            if holder is not None:
                return holder is self
            if not _link(
                _link_path(self._folder_path, session), self._folder_path, folder
            ):
                return False
            folder.holders[session] = self
        return True

    def release(self, session: str) -> None:
        """Release one claim, if it is held."""
        with _lock:
            folder = _folders.get(self._folder_path)
            if folder is None or folder.holders.get(session) is not self:
                return
            del folder.holders[session]
            with contextlib.suppress(OSError):
                os.unlink(_link_path(self._folder_path, session))

    def close(self) -> None:
        """Release all claims."""
        with _lock:
            folder = _folders.get(self._folder_path)
            if not self._folder_path or folder is None:
                return
            for session, holder in list(folder.holders.items()):
                if holder is self:
                    self.release(session)
            key, self._folder_path = self._folder_path, ""
            folder.users -= 1
            if not folder.users:
                del _folders[key]
                for path, descriptor in folder.files.items():
                    with contextlib.suppress(OSError):
                        os.unlink(path)
                    with contextlib.suppress(OSError):
                        os.close(descriptor)

    def _join(self) -> _Folder:
        if not self._folder_path:
            path = os.path.realpath(self.folder)
            _folders.setdefault(path, _Folder()).users += 1
            self._folder_path = path
        return _folders[self._folder_path]


def _link_path(folder: str, session: str) -> str:
    """Return the path of a session's link."""
    digest = blake2b(session.encode(errors="surrogatepass"), digest_size=16)
    return os.path.join(folder, digest.hexdigest())


def _link(path: str, folder_path: str, folder: _Folder) -> bool:
    """Create a session's link; return False if another process has it."""
    try:
        import fcntl
    except ImportError:
        return True  # Windows
    try:
        for _ in range(_ATTEMPTS):
            try:
                os.link(_lock_file_for_link(folder_path, folder), path)
            except FileExistsError:
                pass
            else:
                folder.links += 1
                return True
            with contextlib.suppress(FileNotFoundError):  # released in the meantime
                descriptor = os.open(path, os.O_RDWR)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # the process is dead, so its link may be removed, unless another
                    # process has replaced it already
                    if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                        os.unlink(path)
                finally:
                    os.close(descriptor)
    except OSError as error:
        # other errors: there are no locks here, or opening the journal reports them
        return error.errno not in _LOCKED
    return False


def _lock_file_for_link(folder_path: str, folder: _Folder) -> str:
    """Return the locked file of this process that gets the next link."""
    if not folder.files or folder.links >= _MAX_LINKS:
        import fcntl

        os.makedirs(folder_path, mode=0o700, exist_ok=True)
        path = os.path.join(folder_path, f"process-{os.getpid()}-{os.urandom(8).hex()}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        folder.files[path], folder.links = descriptor, 0
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return next(reversed(folder.files))


def _in_child() -> None:
    """Forget the parent's claims in a forked process."""
    global _lock  # another thread may have had it
    _lock = threading.RLock()
    for folder in _folders.values():
        for descriptor in folder.files.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
    _folders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
