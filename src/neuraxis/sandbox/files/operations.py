"""File operations in a workspace, which follow no links.

As in `workspace.py`, each path is checked as text and walked from the workspace's
descriptor. `history.py` decides whether a file may be changed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Generator
from contextlib import contextmanager
from pathlib import Path

from neuraxis.parsing.encodings import text_of
from neuraxis.sandbox.files import exchange, versions
from neuraxis.sandbox.files.paths import FileRefused, parts_of
from neuraxis.sandbox.files.walk import (
    FLAGS,
    Folder,
    check_case,
    lstat,
    missing,
    parent_folder,
)

_BEGINNING = 4_096
"""Bytes that are examined to see whether a file is a text."""


def spelled(path: str, *, folder: bool = False) -> str:
    """Return a path in its normal form, if it has one."""
    try:
        return "/".join(parts_of(path, folder=folder))
    except FileRefused:
        return path


def look(workspace: Path, path: str) -> os.stat_result | None:
    """Return the status of a path; None: it does not exist."""
    try:
        parts = parts_of(path)
        with parent_folder(workspace, parts, create=False, hint=False) as folder:
            return lstat(folder, parts[-1])
    except (FileRefused, OSError):
        return None


@contextmanager
def opened(workspace: Path, path: str, *, hint: bool = True) -> Generator[int]:
    """Return a descriptor of a regular file.

    `hint`: an error of a missing file names similar ones.

    Raises:
        FileRefused: it is missing, a link, or not a regular file.
    """
    parts = parts_of(path)
    with parent_folder(workspace, parts, create=False, hint=hint) as folder:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | FLAGS
        try:
            fd = os.open(folder.name(parts[-1]), flags, dir_fd=folder.fd)
        except FileNotFoundError:
            raise missing(folder, "/".join(parts), hint=hint) from None
        except OSError as error:
            raise _failed(path, "opened", error) from None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileRefused(f"{path!r} is no regular file.")
            yield fd
        finally:
            os.close(fd)


def digest(workspace: Path, path: str, *, hint: bool = True) -> str:
    """Return the SHA-256 digest of a regular file.

    Raises:
        FileRefused: as `opened`.
    """
    with opened(workspace, path, hint=hint) as fd:
        return versions.digest_of(fd)


def digest_of(workspace: Path, path: str) -> str:
    """Return the SHA-256 digest of a regular file; empty: there is none."""
    try:
        return digest(workspace, path, hint=False)
    except (FileRefused, OSError):
        return ""


def is_text(workspace: Path, path: str) -> bool:
    """Return whether a regular file begins like a text."""
    try:
        with opened(workspace, path, hint=False) as fd:
            return text_of(os.read(fd, _BEGINNING)) is not None
    except (FileRefused, OSError):
        return False


def missing_folders(
    workspace: Path, path: str, *, itself: bool = False, gone: Container[str] = ()
) -> list[str]:
    """Return a path's missing folders, the outermost first.

    `gone`: files that will be deleted before.
    """
    parts = parts_of(path)
    folders = ["/".join(parts[:n]) for n in range(1, len(parts) + itself)]
    return [
        folder
        for folder in folders
        if folder in gone or look(workspace, folder) is None
    ]


def make_folder(workspace: Path, path: str) -> None:
    """Make a folder and its missing parents.

    Raises:
        FileRefused: a file has its name, or the place is not allowed.
    """
    status = look(workspace, path)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        raise FileRefused(f"{path!r} is a file, not a folder.")
    with parent_folder(workspace, (*parts_of(path), "-"), create=True):
        pass


def move(workspace: Path, path: str, new: str, expected: str | None = None) -> None:
    """Rename a regular file; missing folders are made.

    `expected`: what it replaces, as in `exchange`.

    Raises:
        FileRefused: either path is not allowed, or the system refuses.
    """
    parts, to = parts_of(path), parts_of(new)
    with (
        parent_folder(workspace, parts, create=False) as source,
        parent_folder(workspace, to, create=True) as target,
    ):
        status = _regular(source, parts[-1], path)
        is_other = parts[:-1] != to[:-1] or parts[-1].casefold() != to[-1].casefold()
        if is_other:
            check_case(target, to[-1], new)
        if lstat(target, to[-1]) is not None:
            replaced = _regular(target, to[-1], new)
            if os.path.samestat(status, replaced):
                if is_other and status.st_nlink > 1:  # both names would stay
                    raise FileRefused(
                        f"{path!r} and {new!r} are two names of one file (hard "
                        f"link); delete {path!r} instead."
                    )
                expected = None  # only the name's case changes: nothing is replaced
        try:
            exchange.move(source, parts[-1], target, to[-1], expected, new)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise FileRefused(
                    f"{path!r} could not be moved: {new!r} is on another disk. Copy it "
                    "to there, then delete it here."
                ) from None
            raise _failed(path, "moved", error) from None


def remove(workspace: Path, path: str, expected: str | None = None) -> None:
    """Delete a regular file, or an empty folder.

    `expected`: the file, as in `exchange`.

    Raises:
        FileRefused: it is missing, not empty, or the system refuses.
    """
    parts = parts_of(path)
    with parent_folder(workspace, parts, create=False) as folder:
        status = lstat(folder, parts[-1])
        if status is None:
            raise missing(folder, "/".join(parts))
        try:
            if stat.S_ISDIR(status.st_mode):
                os.rmdir(folder.name(parts[-1]), dir_fd=folder.fd)
            else:
                _regular(folder, parts[-1], path)
                exchange.remove(folder, parts[-1], expected, path)
        except OSError as error:
            is_full = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
            reason = "it holds files" if is_full else error.strerror
            raise FileRefused(f"{path!r} could not be deleted: {reason}.") from None


def set_mode(workspace: Path, path: str, mode: int) -> None:
    """Set a regular file's permissions to its old version's."""
    if os.name != "posix":
        return
    with opened(workspace, path) as fd:
        os.fchmod(fd, mode)


def _regular(folder: Folder, part: str, shown: str) -> os.stat_result:
    status = lstat(folder, part)
    if status is None:
        raise missing(folder, shown)
    if stat.S_ISLNK(status.st_mode):
        raise FileRefused(f"{shown!r} is a link; only files themselves are changed.")
    if stat.S_ISDIR(status.st_mode):
        raise FileRefused(f"{shown!r} is a folder; name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{shown!r} is no regular file.")
    return status


def _failed(path: str, done: str, error: OSError) -> FileRefused:
    return FileRefused(f"{path!r} could not be {done}: {error.strerror or 'refused'}.")
