"""Copy the workspace for one run.

Read and written by descriptors, without following a link. `GUARDED` names, and names
that may contain secrets or settings, are not copied.
"""

from __future__ import annotations

import functools
import os
import stat

from msgspec import Struct

from neuraxis.sandbox.files import paths
from neuraxis.sandbox.process.job import MIB, CannotStart

COPIED_BYTES, MOST_FILES, DEEPEST = 1024 * MIB, 50_000, 100


def _flag(*names: str) -> int:
    """Return an open flag by name, or 0 on Windows."""
    return functools.reduce(lambda all_, name: all_ | getattr(os, name, 0), names, 0)


FOLDER = _flag("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
READ = _flag("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")
_WRITE = _flag("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")

Stamp = tuple[int, int]
"""Inode and change time, which no script can set."""


class Copy(Struct):
    """State of one copy."""

    uid: int
    """Owner and group of the copy; -1: the user of this process."""
    left_out: frozenset[str]
    """Paths that are neither copied nor brought back."""
    bytes_left: int
    files_left: int
    stamps: dict[str, dict[str, Stamp]] = {}
    """Folder (with a trailing slash, or empty) -> stamps of its copied files."""

    def leaves_out(self, path: str) -> bool:
        """Whether a path is neither copied nor brought back."""
        return path in self.left_out or paths.is_reserved(path.rpartition("/")[2])

    def count(self, size: int) -> bool:
        """Subtract a file from the remaining quota; False if too large."""
        if size > self.bytes_left or self.files_left < 1:
            return False
        self.bytes_left -= size
        self.files_left -= 1
        return True


def is_too_deep(path: str) -> bool:
    """Whether a folder of this path is nested too deep."""
    return path.count("/") >= DEEPEST


def copy_in(source: int, target: int, path: str, state: Copy) -> None:
    """Copy an open folder into another and close both.

    Raises:
        CannotStart: it is too large.
    """
    uid = state.uid
    stamps = state.stamps.setdefault(path, {})
    try:
        for name in os.listdir(source):
            entry = os.stat(name, dir_fd=source, follow_symlinks=False)
            if state.leaves_out(path + name):
                continue
            is_folder = stat.S_ISDIR(entry.st_mode)
            deep = is_folder and is_too_deep(path + name)
            if deep or not state.count(entry.st_size):
                raise CannotStart(
                    f"the workspace holds more than {COPIED_BYTES // MIB} MiB, "
                    f"{MOST_FILES:,} files or {DEEPEST} nested folders, too much to "
                    "copy for a script; use a folder with less in it as the workspace"
                )
            mode = stat.S_IMODE(entry.st_mode) & 0o777
            if is_folder:
                os.mkdir(name, 0o700, dir_fd=target)
                subfolder = os.open(name, FOLDER, dir_fd=target)
                os.fchown(subfolder, uid, uid)
                os.fchmod(subfolder, mode | 0o700)
                read = os.open(name, FOLDER, dir_fd=source)
                copy_in(read, subfolder, f"{path}{name}/", state)
            elif stat.S_ISREG(entry.st_mode):
                copy_file(source, name, target, name, (uid, uid, mode | 0o600))
            elif stat.S_ISLNK(entry.st_mode):
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
                os.chown(name, uid, uid, dir_fd=target, follow_symlinks=False)
            else:
                continue
            copied = os.stat(name, dir_fd=target, follow_symlinks=False)
            stamps[name] = (copied.st_ino, copied.st_ctime_ns)
    finally:
        os.close(source)
        os.close(target)


def copy_file(
    source: int, name: str, target: int, new: str, owner: tuple[int, int, int]
) -> None:
    """Copy a regular file; `owner` is user, group and mode."""
    uid, gid, mode = owner
    read = os.open(name, READ, dir_fd=source)
    try:
        write = os.open(new, _WRITE, 0o600, dir_fd=target)
        try:
            entry = os.fstat(read)
            remaining = entry.st_size
            while remaining > 0 and (
                sent := os.sendfile(write, read, None, min(remaining, 16 * MIB))
            ):
                remaining -= sent
            os.fchown(write, uid, gid)
            os.fchmod(write, mode)
            os.utime(write, ns=(entry.st_atime_ns, entry.st_mtime_ns))
        finally:
            os.close(write)
    finally:
        os.close(read)
