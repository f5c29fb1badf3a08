"""Old versions of files, stored by their digest, within a budget.

Each is a file with mode 0600 in the session's folder below one root, so that `undo`
brings it back also from another process. A session without a folder stores them in
memory, and they end with it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from neuraxis.formatting import file_name, sha256
from neuraxis.sandbox.files.paths import FileRefused

BUDGET = 1024 * 1024 * 1024
"""Bytes of all stored versions without the setting `files.versions_bytes`."""
_INDEX = "written"
_NOTES = 1_000
"""Maximum outdated lines of the index before it is rewritten."""


class VersionStore:
    """Old versions of one session's files.

    Args:
        root: the folder of all sessions; None: versions are in memory.
        session: the id of the session, from which its folder is named.
        budget: bytes of all versions below `root`; the oldest are pruned first.
        journaled: whether the changes are in a journal that outlives the process.
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
        self._memory_bytes = 0
        self._room = -1
        """Bytes that may be stored before all sessions' versions are counted again."""

    @property
    def is_durable(self) -> bool:
        """Return whether another process can restore the versions."""
        return self._folder is not None and self._journaled

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
            digest = sha256(data)
            self._memory_bytes += len(data) - len(self._memory.pop(digest, b""))
            self._memory[digest] = data  # the newest are last
            while self._memory_bytes > self._budget:
                oldest = next(iter(self._memory))
                self._memory_bytes -= len(self._memory.pop(oldest))
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
        import hashlib  # see `formatting.sha256`

        self._make(folder)
        sha, temporary = hashlib.sha256(), folder / f".{os.urandom(8).hex()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(fd, "wb") as stream:
                for piece in pieces:
                    sha.update(piece)
                    stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(folder / sha.hexdigest())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return sha.hexdigest()

    def get(self, digest: str) -> bytes | None:
        """Return the version of this digest; None: pruned or damaged."""
        data = self._memory.get(digest)
        if data is None and self._folder is not None:
            with contextlib.suppress(OSError):
                data = (self._folder / digest).read_bytes()
        if data is None or sha256(data) != digest:
            return None
        return data

    def _prune(self, newest: Path) -> int:
        """Delete the oldest versions of all sessions above the budget.

        Returns:
            The bytes that may be stored before this is called again. Counting all
            versions for each new one would take quadratic time.
        """
        assert self._root is not None
        versions: list[tuple[int, int, Path]] = []
        for path in self._root.glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                if path != newest and not path.name.startswith("."):
                    versions.append((status.st_mtime_ns, status.st_size, path))
        total = newest.stat().st_size + sum(size for _, size, _ in versions)
        least = total if total <= self._budget else self._budget * 7 // 8
        for _, size, path in sorted(versions):
            if total <= least:
                break
            path.unlink(missing_ok=True)
            total -= size
        return min(self._budget - total, self._budget // 8)

    # --- what the runtime wrote, known to later sessions of the same journal --------

    def written_in(self, workspace: Path) -> dict[str, str]:
        """Return path -> digest of files that the runtime wrote."""
        index = self._index(workspace)
        if index is None:
            return {}
        digests: dict[str, str] = {}
        try:
            lines = index.read_bytes().splitlines()
        except OSError:
            return {}
        for line in lines:
            with contextlib.suppress(
                ValueError
            ):  # a line that was cut off while it was written
                entry: Any = json.loads(line)
                if isinstance(entry, dict):
                    pairs = cast("dict[Any, Any]", entry).items()
                    digests |= {str(path): str(digest) for path, digest in pairs}
        digests = {path: digest for path, digest in digests.items() if digest}
        if len(lines) > 2 * len(digests) + _NOTES:
            with contextlib.suppress(OSError):
                temporary = index.with_name(f".{os.urandom(8).hex()}")
                _append(temporary, digests)
                temporary.replace(index)
        return digests

    def note_written(self, workspace: Path, changed: Mapping[str, str]) -> None:
        """Store digests of written files; an empty one forgets it.

        Each note is a line at the end: rewriting all of them for each file would take
        quadratic time.
        """
        index = self._index(workspace)
        if index is None:
            return
        # it may fail: without the index the user is asked once more
        with contextlib.suppress(OSError):
            self._make(index.parent)
            _append(index, changed)

    def _index(self, workspace: Path) -> Path | None:
        if self._root is None:
            return None
        name = sha256(os.fsencode(os.path.realpath(workspace)))
        return self._root / f"{_INDEX}-{name[:32]}.json"

    def _make(self, folder: Path) -> None:
        assert self._root is not None
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(
            mode=0o700, exist_ok=True
        )  # the mode applies to the last folder only


def _append(index: Path, digests: Mapping[str, str]) -> None:
    fd = os.open(index, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(fd, "ab", buffering=0) as stream:
        stream.write(f"\n{json.dumps(digests)}".encode())


def versions_root(
    journal: object,
    asset_folder: str | Path | None,
    given: str | Path | None = None,
) -> Path | None:
    """Return the folder of old versions, next to the journal; None: memory."""
    if given is not None:
        return Path(given).absolute()
    path = getattr(journal, "path", journal)
    if isinstance(path, str | Path) and path != "memory":
        return Path(path).absolute().parent / "versions"
    return None if asset_folder is None else Path(asset_folder).absolute() / "versions"


def pieces_of(fd: int) -> Iterator[bytes]:
    """Yield the content of an open file in pieces."""
    while piece := os.read(fd, 1024 * 1024):
        yield piece


def digest_of(fd: int) -> str:
    """Return the SHA-256 digest of an open file."""
    import hashlib  # see `formatting.sha256`

    sha = hashlib.sha256()
    for piece in pieces_of(fd):
        sha.update(piece)
    return sha.hexdigest()
