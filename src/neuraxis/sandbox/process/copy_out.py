"""Bring the changes of a script back into the workspace.

Only regular files and folders come back, read and written without following a link; new
ones belong to the workspace's owner. At anything else (a link, something unreadable or
nested too deeply) nothing below it is changed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from neuraxis.formatting import quote
from neuraxis.sandbox.files import attributes, exchange
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import digest_of
from neuraxis.sandbox.files.walk import Folder
from neuraxis.sandbox.process.copy_in import (
    DEEPEST,
    FOLDER,
    READ,
    Copy,
    copy_file,
    is_too_deep,
)

Choose = Callable[[Sequence[tuple[str, str]], Path], Mapping[str, str]]
"""Choose which changed paths of the copy are brought back.

Each has its new digest; empty: it was deleted. A chosen one has the digest of what it
replaces: if something else is there by then, that stays.
"""
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


class _CopyBack(Struct):
    """State of bringing one copy's changes back."""

    state: Copy
    not_kept: list[str]
    """Sentences about changes that could not be brought back."""
    files: set[str] = set()
    """Paths of everything in the copy except folders."""
    stays: set[str] = set()
    """Paths that cannot be brought back: the old content stays, also below them."""
    chosen: Mapping[str, str] | None = None
    """Paths of the changes to bring back, and what they replace; None: all."""

    def leave(self, path: str, reason: object) -> None:
        """Record that a change cannot be brought back."""
        if isinstance(reason, FileRefused):
            self.not_kept.append(str(reason).rstrip("."))
            return
        # the system's errors contain paths and descriptors that mean nothing to users
        text = (reason.strerror or "refused") if isinstance(reason, OSError) else reason
        self.not_kept.append(f"{quote(path)}: {text}")

    def comes_back(self, path: str) -> bool:
        """Return whether a change of the script is brought back."""
        return self.chosen is None or path in self.chosen

    def replaced(self, path: str) -> str | None:
        """Return what a change may replace, as in `exchange`."""
        return None if self.chosen is None else self.chosen[path]

    def stays_below(self, path: str) -> bool:
        """Whether a path or a folder above it stays."""
        while path:
            if path in self.stays:
                return True
            path = path.rpartition("/")[0]
        return False

    def was_folder(self, path: str) -> bool:
        """Return whether a folder was copied from this path."""
        return f"{path}/" in self.state.stamps


def bring_back(
    copy: Path, workspace: Path, state: Copy, not_kept: list[str], choose: Choose | None
) -> None:
    """Make the workspace equal to the copy, as chosen.

    Args:
        copy: the folder as the script left it.
        workspace: the real folder.
        state: what was copied, and the remaining quota.
        not_kept: receives what could not be brought back.
        choose: chooses the changed files; None: all.
    """
    back = _CopyBack(state=state, not_kept=not_kept)
    digests: dict[str, str] = {}
    _scan(os.open(copy, FOLDER), "", back, None if choose is None else digests)
    if choose is not None:
        changed = sorted([*_rewritten(digests, workspace, back), *_deleted(back)])
        back.chosen = choose(changed, copy) if changed else {}
    _apply(os.open(copy, FOLDER), os.open(workspace, FOLDER), "", back)


def _scan(
    folder: int, path: str, back: _CopyBack, digests: dict[str, str] | None
) -> None:
    """Find what changed in an open folder; close it."""
    stamps = back.state.stamps.get(path, {})
    try:
        for name in os.listdir(folder):
            at = path + name
            if back.state.leaves_out(at):
                continue
            try:
                entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(entry.st_mode):
                    if is_too_deep(at):
                        raise OSError(0, f"more than {DEEPEST} nested folders")
                    subfolder = os.open(name, FOLDER, dir_fd=folder)
                    _scan(subfolder, f"{at}/", back, digests)
                    continue
                back.files.add(at)
                if stamps.get(name) == (entry.st_ino, entry.st_ctime_ns):
                    continue
                if not stat.S_ISREG(entry.st_mode):
                    raise OSError(0, "only files and folders are kept")
                if digests is not None:
                    digests[at] = _digest(name, folder)
            except OSError as error:
                back.leave(at, error)
                back.stays.add(at)
    finally:
        os.close(folder)


def _rewritten(
    digests: dict[str, str], workspace: Path, back: _CopyBack
) -> Iterator[tuple[str, str]]:
    """Yield the files with new content."""
    for path, digest in digests.items():
        folder, _, name = path.rpartition("/")
        stamps = back.state.stamps.get(f"{folder}/" if folder else "", {})
        with suppress(OSError):
            if name in stamps and digest == _digest(workspace / path):
                continue
        yield path, digest


def _deleted(back: _CopyBack) -> Iterator[tuple[str, str]]:
    """Yield the copied files that were deleted."""
    for prefix, stamps in back.state.stamps.items():
        for name in stamps:
            path = prefix + name
            is_gone = path not in back.files and not back.was_folder(path)
            if is_gone and not back.stays_below(path):
                yield path, ""


def _digest(path: Path | str, folder: int | None = None) -> str:
    """Return the digest of a regular file; empty for other files."""
    file = os.open(path, READ, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        return digest_of(file)
    finally:
        os.close(file)


def _apply(copy: int, workspace: int, path: str, back: _CopyBack) -> None:
    """Make the workspace's folder equal to the copy's and close both."""
    stamps = back.state.stamps.get(path, {})
    try:
        owner = os.fstat(workspace)
        entries = {name: _is_folder(copy, name) for name in sorted(os.listdir(copy))}
        for name in stamps:
            at = path + name
            if name not in entries:
                _remove(workspace, name, path, back)
            elif entries[name] != back.was_folder(at) and at not in back.stays:
                _clear_other_kind(workspace, name, path, back)
        for name, is_folder in entries.items():
            at = path + name
            if back.state.leaves_out(at) or at in back.stays:
                continue
            try:
                if is_folder:
                    _folder_back(copy, name, workspace, path, back)
                    continue
                entry = os.stat(name, dir_fd=copy, follow_symlinks=False)
                changed = stamps.get(name) != (entry.st_ino, entry.st_ctime_ns)
                if stat.S_ISREG(entry.st_mode) and changed and back.comes_back(at):
                    if not back.state.count(entry.st_size):
                        raise OSError(0, "the limit of what a script may write")
                    _replace(copy, name, workspace, owner, at, back)
            except (OSError, FileRefused) as error:
                back.leave(at, error)
    finally:
        os.close(copy)
        os.close(workspace)


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _folder_back(
    copy: int, name: str, workspace: int, path: str, back: _CopyBack
) -> None:
    parent = os.fstat(workspace)
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=workspace)
        os.chown(name, *_owner(parent), dir_fd=workspace)
        if not back.state.count(0):
            raise OSError(0, "the limit of what a script may write")
    target = os.open(name, FOLDER, dir_fd=workspace)
    try:
        source = os.open(name, FOLDER, dir_fd=copy)
    except OSError:
        os.close(target)
        raise
    _apply(source, target, f"{path}{name}/", back)


def _owner(entry: os.stat_result) -> tuple[int, int]:
    """Return the owner for files brought back; only root can change it."""
    return (entry.st_uid, entry.st_gid) if os.geteuid() == 0 else (-1, -1)


def _replace(
    copy: int,
    name: str,
    workspace: int,
    folder: os.stat_result,
    at: str,
    back: _CopyBack,
) -> None:
    """Replace a changed file by renaming; keep its attributes."""
    old = None
    with suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=workspace, follow_symlinks=False)
    replaces = old is not None and stat.S_ISREG(old.st_mode)
    mode = 0o600 if replaces else 0o644
    new = exchange.temporary_name()
    try:
        copy_file(copy, name, workspace, new, (*_owner(folder), mode))
        if replaces:
            file = os.open(new, READ, dir_fd=workspace)
            try:
                attributes.hand_on(_open(workspace), name, file)
            finally:
                os.close(file)
    except (OSError, FileRefused):
        with suppress(OSError):
            os.unlink(new, dir_fd=workspace)
        raise
    exchange.replace(_open(workspace), new, name, back.replaced(at), at)


def _open(folder: int) -> Folder:
    return Folder(path=Path(), fd=folder)  # the path of an open folder is not used


def _clear_other_kind(workspace: int, name: str, path: str, back: _CopyBack) -> None:
    """Remove what the script replaced with another kind of file."""
    at = path + name
    if not back.was_folder(at):
        if not back.comes_back(at):
            back.stays.add(at)  # so the script's folder is not brought back, either
    elif back.chosen is None and not _is_known(workspace, name, path, back):
        back.stays.add(at)
        back.leave(at, "the folder there holds other files")
    _remove(workspace, name, path, back)


def _is_known(folder: int, name: str, path: str, back: _CopyBack) -> bool:
    """Return whether a workspace folder contains only copied files."""
    if name not in back.state.stamps.get(path, {}):
        return False
    if not _is_folder(folder, name):
        return True
    subfolder = os.open(name, FOLDER, dir_fd=folder)
    try:
        at = f"{path}{name}/"
        return all(
            _is_known(subfolder, inner, at, back) for inner in os.listdir(subfolder)
        )
    finally:
        os.close(subfolder)


def _remove(workspace: int, name: str, path: str, back: _CopyBack) -> None:
    """Remove files that the script removed from its copy."""
    at = path + name
    if at in back.state.left_out or at in back.stays:
        return
    try:
        if not _is_folder(workspace, name):
            if back.comes_back(at):
                exchange.remove(_open(workspace), name, back.replaced(at), at)
            return
        subfolder = os.open(name, FOLDER, dir_fd=workspace)
        try:
            for inner in back.state.stamps.get(f"{at}/", {}):
                _remove(subfolder, inner, f"{at}/", back)
        finally:
            os.close(subfolder)
        os.rmdir(name, dir_fd=workspace)
    except FileNotFoundError:
        return
    except FileRefused as error:
        back.stays.add(at)
        back.leave(at, error)
    except OSError as error:
        if error.errno not in _NOT_EMPTY:  # not allowed, or another program's file
            back.leave(at, error)
