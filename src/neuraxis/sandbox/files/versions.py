"""Old versions of files, stored by their digest, within a budget.

Each is a file with mode 0600 in the session's folder below one root, so that `undo`
brings it back also from another process. A session without a folder holds them in
memory, and they end with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from neuraxis.formatting import file_name
from neuraxis.sandbox.files.paths import FileRefused

BUDGET = 1024 * 1024 * 1024
"""Bytes of all stored versions without the setting `files.versions_bytes`."""
_INDEX = "written"
_NOTES = 1_000
"""Outdated lines of the index above which it is written anew."""


class VersionStore:
    """Old versions of one session's files.

    Args:
        root: the folder of all sessions; None: versions live in memory.
        session: the id of the session, from which its folder is named.
        budget: bytes of all versions below `root`; the oldest are pruned first.
        journaled: the changes are in a journal that outlives the process.
    """

    def __init__(
        self,
        root: Path | None = None,
        session: str = "",
        budget: int = BUDGET,
        *,
        journaled: bool = True,
    ) -> None:
        self._root = root
        self._folder = None if root is None else root / file_name(session)
        self._budget = budget
        self._journaled = journaled
        self._memory: dict[str, bytes] = {}
        self._room = -1
        """Bytes that may still come before all sessions' versions are counted."""

    @property
    def is_durable(self) -> bool:
        """Whether another process can bring the versions back."""
        return self._folder is not None and self._journaled

    @property
    def knows_earlier(self) -> bool:
        """Whether it is known what earlier sessions wrote."""
        return self._root is not None

    def put(self, pieces: Iterable[bytes], size: int, shown: str) -> str:
        """Store one version; return its digest.

        Raises:
            FileRefused: it is larger than the budget, or cannot be written.
        """
        if size > self._budget:
            raise FileRefused(
                f"{shown!r} has {size} bytes, and at most {self._budget} of old "
                "versions are stored, so that it could not be brought back. Write to "
                "another name; the user may raise files.versions_bytes."
            )
        if self._folder is None:
            data = b"".join(pieces)
            digest = hashlib.sha256(data).hexdigest()
            self._memory.pop(digest, None)  # the newest stand last
            self._memory[digest] = data
            while sum(map(len, self._memory.values())) > self._budget:
                del self._memory[next(iter(self._memory))]
            return digest
        try:
            digest = self._put(self._folder, pieces)
        except OSError as error:
            raise FileRefused(
                f"{shown!r} was not changed: its old version cannot be stored in "
                f"{self._folder.name!r} ({error.strerror or 'refused'})."
            ) from None
        self._room -= size
        if self._room < 0:
            self._room = self._prune(self._folder / digest)
        return digest

    def _put(self, folder: Path, pieces: Iterable[bytes]) -> str:
        self._make(folder)
        sha, beside = hashlib.sha256(), folder / f".{os.urandom(8).hex()}"
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(fd, "wb") as stream:
                for piece in pieces:
                    sha.update(piece)
                    stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(folder / sha.hexdigest())
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        return sha.hexdigest()

    def get(self, digest: str) -> bytes | None:
        """Return the version of this digest; None: pruned or damaged."""
        data = self._memory.get(digest)
        if data is None and self._folder is not None:
            with contextlib.suppress(OSError):
                data = (self._folder / digest).read_bytes()
        if data is None or hashlib.sha256(data).hexdigest() != digest:
            return None
        return data

    def _prune(self, newest: Path) -> int:
        """Delete the oldest versions of all sessions above the budget.

        Returns:
            The bytes that may come before this is called again. Counting all versions
            for each new one would take a square of the time.
        """
        assert self._root is not None
        found: list[tuple[int, int, Path]] = []
        for path in self._root.glob("*/*"):
            with contextlib.suppress(OSError):
                about = path.stat()
                if path != newest and not path.name.startswith("."):
                    found.append((about.st_mtime_ns, about.st_size, path))
        held = newest.stat().st_size + sum(size for _, size, _ in found)
        least = held if held <= self._budget else self._budget * 7 // 8
        for _, size, path in sorted(found):
            if held <= least:
                break
            path.unlink(missing_ok=True)
            held -= size
        return min(self._budget - held, self._budget // 8)

    # --- what the runtime wrote, known to later sessions of the same journal --------

    def written_in(self, workspace: Path) -> dict[str, str]:
        """Path -> digest of files that the runtime wrote."""
        index = self._index(workspace)
        if index is None:
            return {}
        known: dict[str, str] = {}
        try:
            lines = index.read_bytes().splitlines()
        except OSError:
            return {}
        for line in lines:
            with contextlib.suppress(ValueError):  # cut off as it was written
                found: Any = json.loads(line)
                if isinstance(found, dict):
                    pairs = cast("dict[Any, Any]", found).items()
                    known |= {str(path): str(digest) for path, digest in pairs}
        known = {path: digest for path, digest in known.items() if digest}
        if len(lines) > 2 * len(known) + _NOTES:
            with contextlib.suppress(OSError):
                beside = index.with_name(f".{os.urandom(8).hex()}")
                _append(beside, known)
                beside.replace(index)
        return known

    def note_written(self, workspace: Path, changed: Mapping[str, str]) -> None:
        """Store digests of written files; an empty one forgets it.

        Each note is a line at the end: to write all of them again for each file would
        take a square of the time.
        """
        index = self._index(workspace)
        if index is None:
            return
        # without the index the user is asked once more, so it may fail
        with contextlib.suppress(OSError):
            self._make(index.parent)
            _append(index, changed)

    def _index(self, workspace: Path) -> Path | None:
        if self._root is None:
            return None
        name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()
        return self._root / f"{_INDEX}-{name[:32]}.json"

    def _make(self, folder: Path) -> None:
        assert self._root is not None
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)  # a mode is for the last one only


def _append(index: Path, known: Mapping[str, str]) -> None:
    fd = os.open(index, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(fd, "ab", buffering=0) as stream:
        stream.write(f"\n{json.dumps(known)}".encode())


def versions_root(
    journal: object,
    asset_folder: str | Path | None,
    given: str | Path | None = None,
) -> Path | None:
    """Where old versions are stored: beside the journal's file, else in memory."""
    if given is not None:
        return Path(given).absolute()
    path = getattr(journal, "path", journal)
    if isinstance(path, str | Path) and path != "memory":
        return Path(path).absolute().parent / "versions"
    return None if asset_folder is None else Path(asset_folder).absolute() / "versions"


def pieces_of(fd: int) -> Iterator[bytes]:
    """The content of an open file, piece by piece."""
    while piece := os.read(fd, 1024 * 1024):
        yield piece
