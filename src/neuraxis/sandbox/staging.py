"""A copy of the workspace that another user owns, and what came of it brought back.

Where the runtime is root, scripts run as an ordinary user on such a copy: nothing of the
real workspace changes owner, and only regular files and folders come back, read and
written without following a link. New files belong to the workspace's owner.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuraxis.sandbox.limits import MIB, CannotStart

MOST_BYTES, MOST_FILES = 1024 * MIB, 50_000
KEPT = frozenset({".git", ".ssh", "neuraxis.toml"})
"""Names at the top of the workspace that a script neither sees nor changes as root."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Known = dict[str, tuple[int, int]]
"""Path in the copy -> inode and time of change, which no script can set."""


@contextmanager
def staged(workspace: Path, uid: int) -> Iterator[Path]:
    """The copy, while the block runs; afterwards what changed is brought back.

    Raises:
        CannotStart: the workspace is too large to copy, or cannot be read.
    """
    outer = Path(tempfile.mkdtemp(prefix="neuraxis-"))
    try:
        os.chown(outer, -1, uid)
        outer.chmod(0o710)
        copy = outer / "workspace"
        copy.mkdir(0o700)
        known: Known = {}
        room = [MOST_BYTES, MOST_FILES]
        try:
            _copy_in(os.open(workspace, _FOLDER), os.open(copy, _FOLDER), uid, room)
        except OSError as error:
            raise CannotStart(f"the workspace cannot be copied ({error})") from error
        os.chown(copy, uid, uid)
        _remember(os.open(copy, _FOLDER), "", known)
        yield copy
        _bring_back(os.open(copy, _FOLDER), os.open(workspace, _FOLDER), "", known)
    finally:
        shutil.rmtree(outer, ignore_errors=True)


def _copy_in(source: int, target: int, uid: int, room: list[int], depth: int = 0) -> None:
    """Copy an open folder into another and close both."""
    try:
        for name in os.listdir(source):
            entry = os.stat(name, dir_fd=source, follow_symlinks=False)
            if depth == 0 and name in KEPT:
                continue
            room[0] -= entry.st_size
            room[1] -= 1
            if min(room) < 0 or depth > 100:
                raise CannotStart(
                    f"the workspace holds more than {MOST_BYTES // MIB} MiB or "
                    f"{MOST_FILES:,} files, too much to copy for a run by root; run "
                    "Neuraxis as an ordinary user"
                )
            mode = stat.S_IMODE(entry.st_mode) & 0o777
            if stat.S_ISDIR(entry.st_mode):
                os.mkdir(name, 0o700, dir_fd=target)
                below = os.open(name, _FOLDER, dir_fd=target)
                os.fchown(below, uid, uid)
                os.fchmod(below, mode | 0o700)
                _copy_in(
                    os.open(name, _FOLDER, dir_fd=source), below, uid, room, depth + 1
                )
            elif stat.S_ISREG(entry.st_mode):
                _copy_file(source, name, target, name, (uid, uid, mode | 0o600))
            elif stat.S_ISLNK(entry.st_mode):
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
                os.chown(name, uid, uid, dir_fd=target, follow_symlinks=False)
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
            size = os.fstat(read).st_size
            while size > 0:
                sent = os.sendfile(write, read, None, min(size, 16 * MIB))
                if not sent:
                    break
                size -= sent
            os.fchown(write, uid, gid)
            os.fchmod(write, mode)
            entry = os.fstat(read)
            os.utime(write, ns=(entry.st_atime_ns, entry.st_mtime_ns))
        finally:
            os.close(write)
    finally:
        os.close(read)


def _remember(folder: int, path: str, known: Known) -> None:
    try:
        for name in os.listdir(folder):
            entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
            known[path + name] = (entry.st_ino, entry.st_ctime_ns)
            if stat.S_ISDIR(entry.st_mode):
                below = os.open(name, _FOLDER, dir_fd=folder)
                _remember(below, path + name + "/", known)
    finally:
        os.close(folder)


def _bring_back(copy: int, workspace: int, path: str, known: Known) -> None:
    """Make the workspace's folder like the copy's, and close both."""
    try:
        here = os.fstat(workspace)
        names = set(os.listdir(copy))
        for name in sorted(names):
            if not path and name in KEPT:
                continue
            entry = os.stat(name, dir_fd=copy, follow_symlinks=False)
            if stat.S_ISDIR(entry.st_mode):
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=workspace)
                    os.chown(name, here.st_uid, here.st_gid, dir_fd=workspace)
                with suppress(NotADirectoryError, OSError):
                    target = os.open(name, _FOLDER, dir_fd=workspace)
                    below = os.open(name, _FOLDER, dir_fd=copy)
                    _bring_back(below, target, path + name + "/", known)
            elif stat.S_ISREG(entry.st_mode):
                if known.get(path + name) != (entry.st_ino, entry.st_ctime_ns):
                    _replace(copy, name, workspace, here)
        for name in _gone(path, names, known):
            _remove(workspace, name)
    finally:
        os.close(copy)
        os.close(workspace)


def _gone(path: str, names: set[str], known: Known) -> list[str]:
    """Names that were copied into this folder and are there no more."""
    return [
        key[len(path) :]
        for key in known
        if key.startswith(path)
        and "/" not in key[len(path) :]
        and key[len(path) :] not in names
    ]


def _replace(copy: int, name: str, workspace: int, folder: os.stat_result) -> None:
    """Put a changed file in place, by renaming, with the owner and mode it had."""
    owner = (folder.st_uid, folder.st_gid, 0o644)
    with suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=workspace, follow_symlinks=False)
        if stat.S_ISDIR(old.st_mode):
            return
        if stat.S_ISREG(old.st_mode):
            owner = (old.st_uid, old.st_gid, stat.S_IMODE(old.st_mode) & 0o777)
    new = f".neuraxis-{os.urandom(6).hex()}"
    try:
        _copy_file(copy, name, workspace, new, owner)
        os.replace(new, name, src_dir_fd=workspace, dst_dir_fd=workspace)
    except OSError:
        with suppress(OSError):
            os.unlink(new, dir_fd=workspace)
        raise


def _remove(workspace: int, name: str) -> None:
    """Remove what the script removed; a folder only when it is empty by then."""
    with suppress(OSError):
        entry = os.stat(name, dir_fd=workspace, follow_symlinks=False)
        if stat.S_ISDIR(entry.st_mode):
            below = os.open(name, _FOLDER, dir_fd=workspace)
            try:
                for inner in os.listdir(below):
                    _remove(below, inner)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=workspace)
        else:
            os.unlink(name, dir_fd=workspace)
