"""Store KV cache states of constant prompts between runs.

Reading a prompt takes the model ten milliseconds a token; a saved state is restored in
two. A state is a file, named by a digest of everything that it depends on: the text,
the model file, the binding's version, the machine. It has no text of a user. C code
reads it and crashes the whole process if it is damaged, so that code gets only bytes
with a correct checksum. No failure here is an error: a state that cannot be loaded is
made again.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_MAGIC = b"neuraxis state 1\n"
_HEAD = len(_MAGIC) + 32 + 32
"""Magic bytes, key, checksum."""
_STALE = 3600
"""Seconds after which a temporary file belongs to a dead process."""


class States:
    """KV states of one model in a folder private to its owner.

    Args:
        folder: created when needed.
        model: identifies the model file and its options.
        max_bytes: maximum bytes of all states; the oldest are removed first.
    """

    def __init__(self, folder: Path, model: str, max_bytes: int) -> None:
        self.folder = folder
        self._model = f"{model}\n{platform.machine()}\n"
        self._most = max_bytes

    def load(self, text: str) -> bytes | None:
        """Load the state of a text; None if missing or damaged."""
        path, key = self._place(text)
        try:
            if not self._is_private():
                return None
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size > _HEAD + self._most:
                    return None
                head, payload = file.read(_HEAD), file.read()
            if head != _MAGIC + key + _checksum(key, payload):
                path.unlink(missing_ok=True)
                return None
            os.utime(path)  # used most recently, so removed last
        except OSError:
            return None
        return payload

    def store(self, text: str, payload: bytes) -> bool:
        """Store a state atomically; return whether it was stored."""
        if not payload or len(payload) > self._most:
            return False
        path, key = self._place(text)
        try:
            with self.passing() as work:
                work.write_bytes(_MAGIC + key + _checksum(key, payload) + payload)
                work.replace(path)
            self._remove_oldest()
        except OSError:
            return False
        return True

    @contextmanager
    def lent(self, text: str) -> Generator[Path | None]:
        """Lend C code a copy of a state; None if missing.

        It is moved aside meanwhile: if that code crashes the process, the next one
        finds no state and makes it again.

        Raises:
            OSError: it cannot be moved aside; another process may be using it.
        """
        payload = self.load(text)
        if payload is None:
            yield None
            return
        path, _ = self._place(text)
        aside = path.with_suffix(".lent")
        with self.passing() as file:
            file.write_bytes(payload)
            path.replace(aside)
            yield file
            aside.replace(path)

    @contextmanager
    def passing(self) -> Generator[Path]:
        """Yield a temporary file in the folder of the states.

        Raises:
            OSError: the folder cannot be made, or others may write to it.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_private():
            raise OSError(f"{self.folder}: others may write to it")
        path = self.folder / f"{secrets.token_hex(16)}.passing"
        try:
            yield path
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _place(self, text: str) -> tuple[Path, bytes]:
        key = hashlib.sha256(f"{self._model}{text}".encode("utf-8", "replace"))
        return self.folder / f"{key.hexdigest()}.state", key.digest()

    def _is_private(self) -> bool:
        """Return whether only this user can write to the folder."""
        status = self.folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return False
        if os.name != "posix":
            return True  # on Windows the access list of the user's folder protects it
        return status.st_uid == os.getuid() and not status.st_mode & 0o077

    def _remove_oldest(self) -> None:
        """Remove the least recently used states, and files of dead processes."""
        states: list[tuple[float, int, Path]] = []
        for path in self.folder.iterdir():
            with suppress(OSError):  # another process may have removed it
                status = path.stat()
                if path.suffix == ".state":
                    states.append((status.st_mtime, status.st_size, path))
                elif status.st_mtime < time.time() - _STALE:
                    path.unlink(missing_ok=True)
        room = self._most
        for _, size, path in sorted(states, reverse=True):
            room -= size
            if room < 0:
                path.unlink(missing_ok=True)


def _checksum(key: bytes, payload: bytes) -> bytes:
    digest = hashlib.sha256(key)
    digest.update(payload)
    return digest.digest()
