"""Workspace: read, write and list files with checked paths.

Every path is checked as text by `paths.parts_of`, then walked one part at a time from
an open descriptor of the workspace with `O_NOFOLLOW`: no symbolic link is followed, in
the middle or at the end, and a folder that is exchanged for a link between check and
use makes the walk fail instead of leading outside. Only regular files are opened
(`O_NONBLOCK`, then `fstat`: a pipe cannot hold the reader up); a file with a second
hard link is not read, since its other name may lie outside. Writing makes a new file
beside the target and renames it over, so the target is whole or untouched and a hard
link's other name keeps the old content; what somebody saved meanwhile stays
(`exchange.py`).

Where the platform has no `dir_fd` (Windows), each part is checked for links and
reparse points first and opened by name after: safe against what lies there, not
against another program of the same user that exchanges a folder in between.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from neuraxis.sandbox.files import attributes, exchange
from neuraxis.sandbox.files.paths import (
    FileRefused,
    parts_of,
    relative_hint,
)
from neuraxis.sandbox.files.walk import (
    FLAGS,
    Folder,
    check_case,
    check_plain,
    lstat,
    missing,
    parent_folder,
    usage,
    walk,
)

__all__ = [
    "FileRefused",
    "Listing",
    "Quota",
    "list_files",
    "read_bytes",
    "read_text",
    "runnable",
    "write_bytes",
]

MIB = 1024 * 1024
READ_LIMIT = 10 * MIB
SCRIPT_LIMIT = MIB


class Quota(Struct, frozen=True, kw_only=True):
    """Write quota: bytes of a file, bytes of all files, file count."""

    file_bytes: int = 10 * MIB
    total_bytes: int = 1024 * MIB
    files: int = 50_000


UNLIMITED = Quota(file_bytes=1 << 62, total_bytes=1 << 62, files=1 << 62)
"""Quota without limits, for which no files are counted."""


class Listing(Struct, frozen=True, kw_only=True):
    """Sorted names relative to the workspace; `more`: the list was cut.

    `unusable`: how many files and folders are left out since no command takes their
    names; hidden and protected ones are not counted.
    """

    files: tuple[str, ...]
    more: bool = False
    unusable: int = 0


def read_bytes(workspace: Path, path: str, *, limit: int = READ_LIMIT) -> bytes:
    """Return the content of a regular file of at most `limit` bytes."""
    parts = _parts(workspace, path)
    with parent_folder(workspace, parts, create=False) as folder:
        return _read(folder, parts[-1], "/".join(parts), limit)


def read_text(workspace: Path, path: str, *, limit: int = READ_LIMIT) -> str:
    """Return the content as text: UTF-8, without its byte order mark."""
    return as_text(read_bytes(workspace, path, limit=limit), path)


def as_text(data: bytes, path: str) -> str:
    """Return a file's content as text: UTF-8, without its byte order mark.

    Raises:
        FileRefused: it is not UTF-8 text.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRefused(
            f"{path!r} is not a text file in UTF-8 (byte {error.start} of "
            f"{len(data)} is none)."
        ) from error


def write_bytes(
    workspace: Path,
    path: str,
    data: bytes,
    *,
    quota: Quota | None = None,
    before: Callable[[str], str | None] | None = None,
    was_there: bool = False,
) -> str:
    """Write a file atomically and create missing folders.

    Args:
        workspace: the folder.
        path: as the model wrote it.
        data: the content.
        quota: how much may be written.
        before: called with the checked path before anything is written; it may refuse,
            and returns what may be replaced, as in `exchange`.
        was_there: this is an old version, which comes back beside similar names and
            over a write-protected file, too.

    Raises:
        FileRefused: the path, the place or the amount is not allowed.
    """
    limits = quota or Quota()
    parts = _parts(workspace, path)
    shown = "/".join(parts)
    if len(data) > limits.file_bytes:
        raise FileRefused(
            f"{shown!r}: {len(data)} bytes; at most {limits.file_bytes} a file."
        )
    if limits != UNLIMITED:
        _check_quota(workspace, parts, len(data), limits)
    expected = None if before is None else before(shown)
    with parent_folder(workspace, parts, create=True) as folder:
        replaces = _check_target(folder, parts[-1], shown, was_there=was_there)
        temporary = _write_new(folder, parts[-1], shown, data, replaces=replaces)
        try:
            exchange.replace(folder, temporary, parts[-1], expected, shown)
            if folder.fd is not None and not expected:  # else the exchange did
                os.fsync(folder.fd)
        except OSError as error:
            raise _failed(shown, error) from None
    return shown


def runnable(workspace: Path, path: str) -> str:
    """Return the relative path of a Python script that is readable."""
    parts = _parts(workspace, path)
    if not parts[-1].casefold().endswith(".py"):
        raise FileRefused(f"{path!r}: only files whose name ends in .py are run.")
    text = read_text(workspace, path, limit=SCRIPT_LIMIT)
    if "\0" in text:
        raise FileRefused(f"{path!r} holds a NUL character: it is no Python source.")
    return "/".join(parts)


def list_files(
    workspace: Path, folder: str = "", pattern: str = "", *, most: int = 1000
) -> Listing:
    """List regular files below a folder, without links and protected names.

    `pattern` is matched with the file name, or with the whole path if it has a `/`;
    `**` means any number of folders.
    """
    parts = _parts(workspace, folder, folder=True)
    if len(pattern) > 200 or pattern.count("**") > 4:
        raise FileRefused("The pattern is too long: give something like '*.txt'.")
    if not parts and not workspace.exists():
        return Listing(files=())  # the folder does not exist before the first write
    names, unusable = list[str](), list[str]()
    with parent_folder(workspace, (*parts, "-"), create=False) as start:
        for relative, _ in walk(start, parts, unusable):
            if _matches(relative, pattern):
                names.append("/".join(relative))
                if len(names) > most:
                    break
    return Listing(
        files=tuple(sorted(names[:most])),
        more=len(names) > most,
        unusable=len(unusable),
    )


# --- text to parts -------------------------------------------------------------


def _parts(workspace: Path, path: str, *, folder: bool = False) -> tuple[str, ...]:
    try:
        return parts_of(path, folder=folder)
    except FileRefused as error:
        if hint := relative_hint(path, str(workspace)):
            raise FileRefused(f"{error} Here: {hint!r}.") from None
        raise


def _matches(parts: tuple[str, ...], pattern: str) -> bool:
    if not pattern:
        return True
    if "/" not in pattern:
        return fnmatchcase(parts[-1], pattern)
    return _match_parts(parts, tuple(pattern.split("/")))


def _match_parts(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_match_parts(parts[i:], wanted[1:]) for i in range(len(parts) + 1))
    return (
        bool(parts)
        and fnmatchcase(parts[0], wanted[0])
        and _match_parts(parts[1:], wanted[1:])
    )


# --- reading -------------------------------------------------------------------


def _read(folder: Folder, part: str, shown: str, limit: int) -> bytes:
    fd = _open_file(folder, part, shown)
    try:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise FileRefused(f"{shown!r} is a folder, not a file.")
        if not stat.S_ISREG(status.st_mode):
            raise FileRefused(f"{shown!r} is no regular file.")
        if status.st_nlink > 1:
            raise FileRefused(
                f"{shown!r} has a second name (hard link), which may lie outside the "
                "workspace; it is not read. Copy it to a new file."
            )
        if status.st_size > limit:
            raise FileRefused(
                f"{shown!r} has {status.st_size} bytes; at most {limit} are read."
            )
        pieces: list[bytes] = []
        remaining = limit + 1
        while remaining > 0 and (piece := os.read(fd, min(remaining, MIB))):
            pieces.append(piece)
            remaining -= len(piece)
    except OSError as error:
        raise FileRefused(
            f"{shown!r} could not be read: {error.strerror or 'refused'}."
        ) from None
    finally:
        os.close(fd)
    if remaining <= 0:
        raise FileRefused(f"{shown!r} grew beyond {limit} bytes while it was read.")
    return b"".join(pieces)


def _open_file(folder: Folder, part: str, shown: str) -> int:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | FLAGS
    try:
        if folder.fd is None:
            check_plain(folder.path / part, shown)
        return os.open(folder.name(part), flags, dir_fd=folder.fd)
    except FileNotFoundError:
        raise missing(folder, shown) from None
    except OSError as error:
        status = lstat(folder, part)
        reason = error.strerror or "refused"
        if status is not None and stat.S_ISLNK(status.st_mode):
            reason = "it is a link, and links are not followed"
        raise FileRefused(f"{shown!r} could not be opened: {reason}.") from None


# --- writing -------------------------------------------------------------------


def _check_quota(
    workspace: Path, parts: tuple[str, ...], size: int, quota: Quota
) -> None:
    """Check what the workspace would hold with this file, new or replaced."""
    if not workspace.is_dir():
        return
    total, files = size, 1
    with contextlib.suppress(FileRefused):  # a missing folder has no old version
        with parent_folder(workspace, parts, create=False) as folder:
            status = lstat(folder, parts[-1])
        if status is not None and stat.S_ISREG(status.st_mode):
            total, files = total - status.st_size, 0
    with parent_folder(workspace, ("-",), create=False) as root:
        for there in usage(root):
            total += there
            files += 1
            if total > quota.total_bytes:
                raise FileRefused(
                    f"The workspace is full: at most {quota.total_bytes} bytes in all."
                )
            if files > quota.files:
                raise FileRefused(
                    f"The workspace is full: at most {quota.files} files."
                )


def _check_target(folder: Folder, part: str, shown: str, *, was_there: bool) -> bool:
    """Return whether a file of that name is replaced."""
    if not was_there:
        check_case(folder, part, shown)
    status = lstat(folder, part)
    if status is None:
        return False
    if stat.S_ISLNK(status.st_mode):
        raise FileRefused(f"{shown!r} is a link, and links are not written through.")
    if stat.S_ISDIR(status.st_mode):
        raise FileRefused(f"{shown!r} is a folder; give the name of a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{shown!r} is no regular file and is not overwritten.")
    if not (was_there or status.st_mode & 0o222):
        raise FileRefused(f"{shown!r} is write-protected.")
    return True


def _write_new(
    folder: Folder, part: str, shown: str, data: bytes, *, replaces: bool
) -> str:
    """Write a file under a temporary name; return that."""
    temporary = exchange.temporary_name()
    mode = 0o600 if replaces else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS
    try:
        fd = os.open(folder.name(temporary), flags, mode, dir_fd=folder.fd)
        try:
            with os.fdopen(fd, "wb") as stream:
                stream.write(data)
                stream.flush()
                if replaces:  # what a model wrote is not executed by its name
                    attributes.hand_on(folder, part, stream.fileno(), bits=0o666)
                os.fsync(stream.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(folder.name(temporary), dir_fd=folder.fd)
            raise
    except OSError as error:
        raise _failed(shown, error) from None
    return temporary


def _failed(shown: str, error: OSError) -> FileRefused:
    return FileRefused(
        f"{shown!r} could not be written: {error.strerror or 'refused'}."
    )
