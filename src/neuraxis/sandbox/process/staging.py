"""Copy the workspace for one run and bring the changes back.

Where the runtime is root, scripts run as an ordinary user on such a copy: nothing of
the real workspace changes owner. Only regular files and folders come back, read and
written without following a link; new ones belong to the workspace's owner. A copy
also keeps what is in `GUARDED` from a script where a sandbox cannot make it read only.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field

from neuraxis.sandbox.files import paths
from neuraxis.sandbox.process.job import GUARDED, MIB, CannotStart, Limits

_log = logging.getLogger(__name__)

MOST_BYTES, MOST_FILES, DEEPEST = 1024 * MIB, 50_000, 100
STALE = 60
"""Seconds after which an unlocked copy counts as abandoned."""
_PREFIX = "neuraxis-run-"


def _flag(*names: str) -> int:
    """Return an open flag by name, or 0 on Windows."""
    return functools.reduce(lambda all_, name: all_ | getattr(os, name, 0), names, 0)


_FOLDER = _flag("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_READ = _flag("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")
_WRITE = _flag("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")

Choose = Callable[[Sequence[tuple[str, str]], Path], Collection[str]]
"""Takes each changed path with its new digest (empty: deleted) and the copy's folder,
gives those that may come back."""
Stamp = tuple[int, int]
"""Inode and change time, which no script can set."""


class _Copy(Struct):
    """State of one copy."""

    uid: int
    """Owner and group of the copy; -1: the user of this process."""
    left_out: frozenset[str]
    """Paths that are neither copied nor brought back."""
    bytes_left: int
    files_left: int
    lost: list[str] = field(default_factory=list[str])
    """Paths that could not be brought back, and why."""
    known: dict[str, dict[str, Stamp]] = field(
        default_factory=dict[str, dict[str, Stamp]]
    )
    """Folder (with a slash at its end, or empty) -> what was copied into it."""
    chosen: Collection[str] | None = None
    """Paths of the changes that come back; None: all."""

    def comes_back(self, path: str) -> bool:
        """Whether a change of the script comes back."""
        return self.chosen is None or path in self.chosen


@contextmanager
def staged(
    workspace: Path,
    uid: int | None,
    limits: Limits,
    left_out: Collection[str] = (),
    choose: Choose | None = None,
) -> Generator[Path]:
    """Provide a copy during the block; bring changes back afterwards.

    Args:
        workspace: the real folder.
        uid: the owner of the copy; None: the user this process has.
        limits: no more is brought back than they allow.
        left_out: paths in the workspace that stay out of it, beside `GUARDED`.
        choose: chooses the changed files that are brought back; None: all.

    Raises:
        CannotStart: the workspace is too large to copy, or cannot be read.
    """
    import fcntl

    _clear()
    outer = Path(tempfile.mkdtemp(prefix=_PREFIX))
    held = os.open(outer, _FOLDER)
    fcntl.flock(held, fcntl.LOCK_SH)
    owner = -1 if uid is None else uid
    state = _Copy(
        uid=owner,
        left_out=frozenset({*GUARDED, *left_out}),
        bytes_left=MOST_BYTES,
        files_left=MOST_FILES,
    )
    try:
        os.chown(outer, -1, owner)
        outer.chmod(0o710)
        copy = outer / "workspace"
        copy.mkdir(0o700)
        try:
            _copy_in(os.open(workspace, _FOLDER), os.open(copy, _FOLDER), "", state)
        except OSError as error:
            raise CannotStart(f"the workspace cannot be copied ({error})") from error
        os.chown(copy, owner, owner)
        yield copy
        if choose is not None:
            changed = sorted(_changes(copy, workspace, state))
            chosen = choose(changed, copy) if changed else ()
            state.chosen = frozenset(chosen)
        state.bytes_left, state.files_left = limits.disk, limits.files
        _bring_back(os.open(copy, _FOLDER), os.open(workspace, _FOLDER), "", state)
        if state.lost:
            some = "; ".join(state.lost[:3])
            _log.warning(
                "%d files of a script were not brought back: %s", len(state.lost), some
            )
    finally:
        shutil.rmtree(outer, ignore_errors=True)
        os.close(held)


def _clear() -> None:
    """Remove copies whose process was killed; copies in use are locked."""
    import fcntl

    with os.scandir(tempfile.gettempdir()) as entries:
        found = [entry for entry in entries if entry.name.startswith(_PREFIX)]
    for entry in found:
        with suppress(OSError):
            about = entry.stat(follow_symlinks=False)
            if about.st_uid != os.geteuid() or time.time() - about.st_mtime < STALE:
                continue
            folder = os.open(entry.path, _FOLDER)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(folder)


def _count(state: _Copy, size: int) -> bool:
    """Subtract a file from the remaining quota; False if too large."""
    if size > state.bytes_left or state.files_left < 1:
        return False
    state.bytes_left -= size
    state.files_left -= 1
    return True


def _copy_in(source: int, target: int, path: str, state: _Copy) -> None:
    """Copy an open folder into another and close both."""
    uid = state.uid
    known = state.known.setdefault(path, {})
    try:
        for name in os.listdir(source):
            entry = os.stat(name, dir_fd=source, follow_symlinks=False)
            if path + name in state.left_out or paths.is_reserved(name):
                continue
            if not _count(state, entry.st_size) or path.count("/") > DEEPEST:
                raise CannotStart(
                    f"the workspace holds more than {MOST_BYTES // MIB} MiB or "
                    f"{MOST_FILES:,} files, too much to copy for a script; use a "
                    "folder with less in it as the workspace"
                )
            mode = stat.S_IMODE(entry.st_mode) & 0o777
            if stat.S_ISDIR(entry.st_mode):
                os.mkdir(name, 0o700, dir_fd=target)
                below = os.open(name, _FOLDER, dir_fd=target)
                os.fchown(below, uid, uid)
                os.fchmod(below, mode | 0o700)
                read = os.open(name, _FOLDER, dir_fd=source)
                _copy_in(read, below, f"{path}{name}/", state)
            elif stat.S_ISREG(entry.st_mode):
                _copy_file(source, name, target, name, (uid, uid, mode | 0o600))
            elif stat.S_ISLNK(entry.st_mode):
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
                os.chown(name, uid, uid, dir_fd=target, follow_symlinks=False)
            else:
                continue
            copied = os.stat(name, dir_fd=target, follow_symlinks=False)
            known[name] = (copied.st_ino, copied.st_ctime_ns)
    finally:
        os.close(source)
        os.close(target)


def _copy_file(
    source: int, name: str, target: int, new: str, owner: tuple[int, int, int]
) -> None:
    uid, gid, mode = owner
    read = os.open(name, _READ, dir_fd=source)
    try:
        write = os.open(new, _WRITE, 0o600, dir_fd=target)
        try:
            entry = os.fstat(read)
            left = entry.st_size
            while left > 0 and (
                sent := os.sendfile(write, read, None, min(left, 16 * MIB))
            ):
                left -= sent
            os.fchown(write, uid, gid)
            os.fchmod(write, mode)
            os.utime(write, ns=(entry.st_atime_ns, entry.st_mtime_ns))
        finally:
            os.close(write)
    finally:
        os.close(read)


def _bring_back(copy: int, workspace: int, path: str, state: _Copy) -> None:
    """Make the workspace's folder equal to the copy's and close both."""
    known = state.known.get(path, {})
    try:
        here = os.fstat(workspace)
        names = sorted(os.listdir(copy))
        for name in names:
            if path + name in state.left_out or path.count("/") > DEEPEST:
                continue
            if paths.is_reserved(name):
                continue
            try:
                entry = os.stat(name, dir_fd=copy, follow_symlinks=False)
                if stat.S_ISDIR(entry.st_mode):
                    _folder_back(copy, name, workspace, path, state)
                elif (
                    stat.S_ISREG(entry.st_mode)
                    and known.get(name) != (entry.st_ino, entry.st_ctime_ns)
                    and state.comes_back(path + name)
                ):
                    if not _count(state, entry.st_size):
                        raise OSError("the limit of what a script may write")
                    _replace(copy, name, workspace, here)
            except OSError as error:
                state.lost.append(f"{path}{name}: {error}")
        for name in known.keys() - set(names):
            _remove(workspace, name, path, state)
    finally:
        os.close(copy)
        os.close(workspace)


def _changes(copy: Path, workspace: Path, state: _Copy) -> Iterator[tuple[str, str]]:
    """Return the files a script changed, with their new digests."""
    top = len(os.fspath(copy)) + 1
    there: set[str] = set()
    for folder, folders, names, fd in os.fwalk(copy, follow_symlinks=False):
        prefix = folder[top:] and f"{folder[top:]}/"
        folders[:] = [
            one
            for one in folders
            if prefix + one not in state.left_out and not paths.is_reserved(one)
        ]
        known = state.known.get(prefix, {})
        for name in names:
            path = prefix + name
            there.add(path)
            entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if path in state.left_out or paths.is_reserved(name):
                continue
            if not stat.S_ISREG(entry.st_mode):
                continue
            if known.get(name) != (entry.st_ino, entry.st_ctime_ns):
                digest = _digest(name, fd)
                if name not in known or digest != _digest(workspace / path):
                    yield path, digest
    for prefix, known in state.known.items():
        for name in known:
            path = prefix + name
            if path not in there and f"{path}/" not in state.known:
                yield path, ""


def _digest(path: Path | str, folder: int | None = None) -> str:
    """Return the digest of a regular file, or nothing."""
    try:
        fd = os.open(path, _READ, dir_fd=folder)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folder_back(copy: int, name: str, workspace: int, path: str, state: _Copy) -> None:
    here = os.fstat(workspace)
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=workspace)
        os.chown(name, *_owner(here), dir_fd=workspace)
        if not _count(state, 0):
            raise OSError("the limit of what a script may write")
    target = os.open(name, _FOLDER, dir_fd=workspace)
    try:
        below = os.open(name, _FOLDER, dir_fd=copy)
    except OSError:
        os.close(target)
        raise
    _bring_back(below, target, f"{path}{name}/", state)


def _owner(entry: os.stat_result) -> tuple[int, int]:
    """Return the owner for files brought back; only root can change it."""
    return (entry.st_uid, entry.st_gid) if os.geteuid() == 0 else (-1, -1)


def _replace(copy: int, name: str, workspace: int, folder: os.stat_result) -> None:
    """Replace a changed file by renaming; keep its owner and mode."""
    owner = (*_owner(folder), 0o644)
    with suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=workspace, follow_symlinks=False)
        if stat.S_ISREG(old.st_mode):
            owner = (*_owner(old), stat.S_IMODE(old.st_mode) & 0o777)
    new = f".neuraxis-{os.urandom(6).hex()}"
    try:
        _copy_file(copy, name, workspace, new, owner)
        os.replace(new, name, src_dir_fd=workspace, dst_dir_fd=workspace)
    except OSError:
        with suppress(OSError):
            os.unlink(new, dir_fd=workspace)
        raise


def _remove(workspace: int, name: str, path: str, state: _Copy) -> None:
    """Remove files that the script removed, if the copy had them."""
    if path + name in state.left_out:
        return
    with suppress(OSError):
        entry = os.stat(name, dir_fd=workspace, follow_symlinks=False)
        if not stat.S_ISDIR(entry.st_mode) and not state.comes_back(path + name):
            return
        if stat.S_ISDIR(entry.st_mode):
            below = os.open(name, _FOLDER, dir_fd=workspace)
            try:
                for inner in state.known.get(f"{path}{name}/", {}):
                    _remove(below, inner, f"{path}{name}/", state)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=workspace)
        else:
            os.unlink(name, dir_fd=workspace)
