"""Store KV cache states of constant prompts between runs.

Reading a text costs the model ten milliseconds a token; what it has read can be saved
and brought back in two. A state is a file named by a digest of all that it depends on:
the text, the model file, the binding's version, the machine. It holds no word of a
user. C code reads it and ends the whole process where it is damaged, so nothing
reaches that code but bytes whose checksum was right. No failure here is an error: a
state that cannot be had is made again.
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
"""The magic word, the key, the checksum."""
_STALE = 3600
"""Seconds after which a passing file belongs to a process that died."""


class States:
    """KV states of one model in a folder private to its owner.

    Args:
        folder: made when it is needed.
        model: what the states are of: the model file and how it is run.
        most: bytes that all states may take; the oldest go first.
    """

    def __init__(self, folder: Path, model: str, most: int) -> None:
        self.folder = folder
        self._model = f"{model}\n{platform.machine()}\n"
        self._most = most

    def load(self, text: str) -> bytes | None:
        """Load the state of a text; None if missing or damaged."""
        path, key = self._place(text)
        try:
            if not self._is_ours():
                return None
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size > _HEAD + self._most:
                    return None
                head, payload = file.read(_HEAD), file.read()
            if head != _MAGIC + key + _checksum(key, payload):
                path.unlink(missing_ok=True)
                return None
            os.utime(path)  # the last to be removed
        except OSError:
            return None
        return payload

    def store(self, text: str, payload: bytes) -> bool:
        """Keep a state, whole or not at all; whether it is kept."""
        if not payload or len(payload) > self._most:
            return False
        path, key = self._place(text)
        try:
            with self.passing() as work:
                work.write_bytes(_MAGIC + key + _checksum(key, payload) + payload)
                work.replace(path)
            self._make_room()
        except OSError:
            return False
        return True

    @contextmanager
    def lent(self, text: str) -> Generator[Path | None]:
        """Lend C code a copy of a state; None if missing.

        It is put aside meanwhile: where that code ends the process, the next one finds
        no state and makes it again.

        Raises:
            OSError: it cannot be put aside; another process may have it just now.
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
        """A file for a moment, in the folder of the states.

        Raises:
            OSError: the folder cannot be made, or others may write to it.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_ours():
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

    def _is_ours(self) -> bool:
        """Whether nobody else can have put a file there."""
        found = self.folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return False
        if os.name != "posix":
            return True  # the user's own folder has the user's own access list
        return found.st_uid == os.getuid() and not found.st_mode & 0o077

    def _make_room(self) -> None:
        """Remove the states used longest ago, and what dead processes left behind."""
        kept: list[tuple[float, int, Path]] = []
        for path in self.folder.iterdir():
            with suppress(OSError):  # another process removes files too
                found = path.stat()
                if path.suffix == ".state":
                    kept.append((found.st_mtime, found.st_size, path))
                elif found.st_mtime < time.time() - _STALE:
                    path.unlink(missing_ok=True)
        room = self._most
        for _, size, path in sorted(kept, reverse=True):
            room -= size
            if room < 0:
                path.unlink(missing_ok=True)


def _checksum(key: bytes, payload: bytes) -> bytes:
    found = hashlib.sha256(key)
    found.update(payload)
    return found.digest()
