"""Open workspace folders part by part without following symbolic links.

Each folder is opened from the descriptor of the one above it with `O_NOFOLLOW`, so the
checked folder is the used one. If the platform has no `dir_fd` (Windows), a folder is
its path, checked for links and reparse points before use.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from unicodedata import normalize

from msgspec import Struct

from neuraxis.formatting import did_you_mean, nearest
from neuraxis.sandbox.files.paths import (
    MOST_PARTS,
    FileRefused,
    folded,
    is_ordinary,
    is_reserved,
)

HAS_DIR_FDS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_NEAR = 1000
"""Maximum number of names that are compared for a hint."""
_LOOKS_THE_SAME = (
    " There is one whose name looks the same but is made of other letters (Unicode); "
    "refer to its name in the answer of list_files."
)
_REPARSE = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT: links, junctions, cloud stubs
FLAGS = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
"""Flags of every open: close on exec, no symbolic links, binary."""


class Folder(Struct, frozen=True, kw_only=True):
    """An open folder: a descriptor, or a path where `dir_fd` is missing."""

    path: Path
    fd: int | None

    def name(self, part: str) -> str:
        """Return the path to pass to a call of `os` with `dir_fd=fd`."""
        return part if self.fd is not None else str(self.path / part)


@contextlib.contextmanager
def parent_folder(
    workspace: Path, parts: tuple[str, ...], *, create: bool, hint: bool = True
) -> Generator[Folder]:
    """Open the parent folder of a path without following symbolic links.

    `hint`: an error of a missing folder names similar ones.
    """
    root = workspace.resolve()
    shown = "/".join(parts).removesuffix("/-")
    with contextlib.ExitStack() as stack:
        if create:
            try:
                root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _refused("the workspace", "made", error) from None
        try:
            folder = _open_folder(root, None, str(root), "the workspace")
        except FileNotFoundError:
            raise _not_there("the workspace", "file or folder", ()) from None
        stack.callback(_close, folder)
        for at, part in enumerate(parts[:-1], 1):
            if create:
                _make_folder(folder, part, shown)
            try:
                inner = _open_folder(folder.path / part, folder, part, shown)
            except FileNotFoundError:
                raise missing(folder, "/".join(parts[:at]), shown, hint) from None
            folder = inner
            stack.callback(_close, folder)
        yield folder


def missing(
    folder: Folder, path: str, shown: str = "", hint: bool = True
) -> FileRefused:
    """Return the error of a missing file or folder.

    Args:
        folder: the open folder that should contain it.
        path: what is missing, relative to the workspace.
        shown: the requested file, if one of its folders is missing.
        hint: whether to look for similar names.
    """
    parent, _, part = path.rpartition("/")
    kind = "file or folder" if shown else "file"
    names = _names(folder) if hint else []
    if any(normalize("NFC", name) == normalize("NFC", part) for name in names):
        return _not_there(shown or path, kind, (), _LOOKS_THE_SAME)
    close = nearest(part, names) if names else ()
    similar = tuple(f"{parent}/{one}".lstrip("/") for one in close)
    hint_text = did_you_mean([repr(one) for one in similar])
    return _not_there(shown or path, kind, similar, hint_text)


def _not_there(
    shown: str, kind: str, similar: tuple[str, ...], hint: str = ""
) -> FileRefused:
    error = FileRefused(f"{shown!r}: there is no such {kind}.{hint}")
    error.near = similar
    return error


def _names(folder: Folder) -> list[str]:
    """Return the first names in a folder that may be shown."""
    try:
        with os.scandir(folder.path if folder.fd is None else folder.fd) as entries:
            names = [entry.name for entry in islice(entries, _NEAR)]
    except OSError:
        return []
    return sorted(name for name in names if is_ordinary(name))


def _close(folder: Folder) -> None:
    if folder.fd is not None:
        os.close(folder.fd)


def _open_folder(path: Path, parent: Folder | None, part: str, shown: str) -> Folder:
    """Open a folder in another one.

    Raises:
        FileNotFoundError: it does not exist.
        FileRefused: it is not a folder, or cannot be opened.
    """
    try:
        if not HAS_DIR_FDS:
            check_plain(path, shown)
            if not path.is_dir():
                raise NotADirectoryError
            return Folder(path=path, fd=None)
        flags = os.O_RDONLY | os.O_DIRECTORY | FLAGS
        fd = os.open(part, flags, dir_fd=parent.fd if parent else None)
        return Folder(path=path, fd=fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        # A link gives ELOOP on some systems and ENOTDIR on others.
        raise FileRefused(
            f"{shown!r}: on the way, {path.name!r} is no folder of the workspace but "
            f"a link or a file ({error.strerror or 'refused'})."
        ) from None


def _make_folder(folder: Folder, part: str, shown: str) -> None:
    check_case(folder, part, shown)
    try:
        os.mkdir(folder.name(part), dir_fd=folder.fd)
    except FileExistsError:
        return
    except OSError as error:
        raise _refused(part, "made", error) from None


def _refused(name: str, done: str, error: OSError) -> FileRefused:
    return FileRefused(f"{name!r} could not be {done}: {error.strerror or 'refused'}.")


def check_plain(path: Path, shown: str) -> None:
    """Refuse a link, a junction or another reparse point."""
    status = os.lstat(path)
    attributes = getattr(status, "st_file_attributes", 0)
    if stat.S_ISLNK(status.st_mode) or attributes & _REPARSE:
        raise FileRefused(f"{shown!r}: links are not followed.")


def lstat(folder: Folder, part: str) -> os.stat_result | None:
    """Return the `lstat` of a name, or None if missing."""
    try:
        return os.stat(folder.name(part), dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(part, "looked at", error) from None


def walk(
    folder: Folder, prefix: tuple[str, ...], unusable: list[str]
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each regular file below a folder with its size; skip links.

    `unusable`: gets the names that no command takes, hidden and protected ones apart.
    """
    try:
        with os.scandir(folder.path if folder.fd is None else folder.fd) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return
    for name in names:
        parts = (*prefix, name)
        if len(parts) > MOST_PARTS or not is_ordinary(name):
            if not is_reserved(name):
                unusable.append(name)
            continue
        try:
            status = lstat(folder, name)
        except FileRefused:
            continue
        if status is None:
            continue
        if stat.S_ISREG(status.st_mode):
            yield parts, status.st_size
        elif stat.S_ISDIR(status.st_mode):
            try:
                inner = _open_folder(folder.path / name, folder, name, name)
            except (FileRefused, FileNotFoundError):
                continue
            try:
                yield from walk(inner, parts, unusable)
            finally:
                _close(inner)


def walk_tree(top: str | Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder, its folders and its other names, as `os.walk` does.

    Unlike it (before Python 3.12), this does not recurse: a tree may be nested deeper
    than Python's limit. No link is followed; names may be taken out of the folders.
    """
    pending = [os.fspath(top)]
    while pending:
        at = pending.pop()
        folders: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(at) as entries:
                for entry in entries:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    (folders if is_folder else names).append(entry.name)
        except OSError:
            continue  # unreadable, or its path is too long for the system
        yield at, folders, names
        pending += [os.path.join(at, name) for name in reversed(folders)]


def usage(folder: Folder, depth: int = MOST_PARTS) -> Iterator[int]:
    """Return the sizes of regular files below a folder, for the quota.

    Names that start with a dot are not counted: no command of this package can write
    them, and the user's `.git` or `.venv` does not count against the model.
    """
    subfolders: list[str] = []
    try:
        with os.scandir(folder.path if folder.fd is None else folder.fd) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_file(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False).st_size
                elif entry.is_dir(follow_symlinks=False):
                    subfolders.append(entry.name)
    except OSError:
        return
    for name in subfolders if depth else ():
        try:
            inner = _open_folder(folder.path / name, folder, name, name)
        except (FileRefused, FileNotFoundError):
            continue
        try:
            yield from usage(inner, depth - 1)
        finally:
            _close(inner)


def check_case(folder: Folder, part: str, shown: str) -> None:
    """Refuse a name that differs only in case or Unicode form."""
    folded_name = folded(part)
    try:
        with os.scandir(folder.path if folder.fd is None else folder.fd) as entries:
            clashes = [
                entry.name for entry in entries if folded(entry.name) == folded_name
            ]
    except OSError as error:
        raise _refused(shown, "written", error) from None
    if clashes and part not in clashes:
        by_case = clashes[0].casefold() == part.casefold()
        accents = "" if by_case else " or in the form of its accents"
        raise FileRefused(
            f"{shown!r}: there is already a name that differs only in upper and lower "
            f"case{accents}; use that one, as list_files tells it."
        )
