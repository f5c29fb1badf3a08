"""Bring the changes of a script back into the workspace.

Only regular files and folders come back, read and written without following a link;
new ones belong to the workspace's owner. Where something else stands, a link for
instance, or what cannot be read or is nested too deep, nothing below it is changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from neuraxis.formatting import quote
from neuraxis.sandbox.files.versions import pieces_of
from neuraxis.sandbox.process.copy_in import (
    DEEPEST,
    FOLDER,
    READ,
    Copy,
    copy_file,
    is_too_deep,
)

Choose = Callable[[Sequence[tuple[str, str]], Path], Collection[str]]
"""Takes each changed path with its new digest (empty: deleted) and the copy's folder,
gives those that may come back."""
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


class _Way(Struct):
    """State of one way back."""

    state: Copy
    not_kept: list[str]
    """Sentences on what could not be brought back, and why."""
    files: set[str] = set()
    """Paths of all that is no folder in the copy."""
    stays: set[str] = set()
    """Paths in the copy that cannot come back: what was there stays, also below."""
    chosen: Collection[str] | None = None
    """Paths of the changes that come back; None: all."""

    def leave(self, path: str, why: object) -> None:
        """Note that a change cannot be brought back."""
        # the system's errors name paths and descriptors that say nothing to a reader
        reason = (why.strerror or "refused") if isinstance(why, OSError) else why
        self.not_kept.append(f"{quote(path)}: {reason}")

    def comes_back(self, path: str) -> bool:
        """Whether a change of the script comes back."""
        return self.chosen is None or path in self.chosen

    def stays_below(self, path: str) -> bool:
        """Whether a path or a folder above it stays."""
        while path:
            if path in self.stays:
                return True
            path = path.rpartition("/")[0]
        return False

    def was_folder(self, path: str) -> bool:
        """Whether a folder was copied from this path."""
        return f"{path}/" in self.state.known


def bring_back(
    copy: Path, workspace: Path, state: Copy, not_kept: list[str], choose: Choose | None
) -> None:
    """Make the workspace equal to the copy, as chosen.

    Args:
        copy: what the script left.
        workspace: the real folder.
        state: what was copied, and how much may come back.
        not_kept: filled with what could not be brought back.
        choose: chooses the changed files; None: all.
    """
    way = _Way(state=state, not_kept=not_kept)
    digests: dict[str, str] = {}
    _scan(os.open(copy, FOLDER), "", way, None if choose is None else digests)
    if choose is not None:
        changed = sorted([*_rewritten(digests, workspace, way), *_deleted(way)])
        way.chosen = frozenset(choose(changed, copy)) if changed else frozenset()
    _apply(os.open(copy, FOLDER), os.open(workspace, FOLDER), "", way)


def _scan(folder: int, path: str, way: _Way, digests: dict[str, str] | None) -> None:
    """Find what changed in an open folder; close it."""
    known = way.state.known.get(path, {})
    try:
        for name in os.listdir(folder):
            at = path + name
            if way.state.leaves_out(at):
                continue
            try:
                entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(entry.st_mode):
                    if is_too_deep(at):
                        raise OSError(0, f"more than {DEEPEST} nested folders")
                    below = os.open(name, FOLDER, dir_fd=folder)
                    _scan(below, f"{at}/", way, digests)
                    continue
                way.files.add(at)
                if known.get(name) == (entry.st_ino, entry.st_ctime_ns):
                    continue
                if not stat.S_ISREG(entry.st_mode):
                    raise OSError(0, "only files and folders are kept")
                if digests is not None:
                    digests[at] = _digest(name, folder)
            except OSError as error:
                way.leave(at, error)
                way.stays.add(at)
    finally:
        os.close(folder)


def _rewritten(
    digests: dict[str, str], workspace: Path, way: _Way
) -> Iterator[tuple[str, str]]:
    """Yield the files whose content is new."""
    for path, digest in digests.items():
        folder, _, name = path.rpartition("/")
        known = way.state.known.get(f"{folder}/" if folder else "", {})
        with suppress(OSError):
            if name in known and digest == _digest(workspace / path):
                continue
        yield path, digest


def _deleted(way: _Way) -> Iterator[tuple[str, str]]:
    """Yield the files that were copied and are gone."""
    for prefix, known in way.state.known.items():
        for name in known:
            path = prefix + name
            is_gone = path not in way.files and not way.was_folder(path)
            if is_gone and not way.stays_below(path):
                yield path, ""


def _digest(path: Path | str, folder: int | None = None) -> str:
    """Return the digest of a regular file; empty: it is none."""
    file = os.open(path, READ, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        sha = hashlib.sha256()
        for piece in pieces_of(file):
            sha.update(piece)
        return sha.hexdigest()
    finally:
        os.close(file)


def _apply(copy: int, workspace: int, path: str, way: _Way) -> None:
    """Make the workspace's folder equal to the copy's and close both."""
    known = way.state.known.get(path, {})
    try:
        here = os.fstat(workspace)
        there = {name: _is_folder(copy, name) for name in sorted(os.listdir(copy))}
        for name in known:
            at = path + name
            if name not in there:
                _remove(workspace, name, path, way)
            elif there[name] != way.was_folder(at) and at not in way.stays:
                _make_room(workspace, name, path, way)
        for name, is_folder in there.items():
            at = path + name
            if way.state.leaves_out(at) or at in way.stays:
                continue
            try:
                if is_folder:
                    _folder_back(copy, name, workspace, path, way)
                    continue
                entry = os.stat(name, dir_fd=copy, follow_symlinks=False)
                changed = known.get(name) != (entry.st_ino, entry.st_ctime_ns)
                if stat.S_ISREG(entry.st_mode) and changed and way.comes_back(at):
                    if not way.state.count(entry.st_size):
                        raise OSError(0, "the limit of what a script may write")
                    _replace(copy, name, workspace, here)
            except OSError as error:
                way.leave(at, error)
    finally:
        os.close(copy)
        os.close(workspace)


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _folder_back(copy: int, name: str, workspace: int, path: str, way: _Way) -> None:
    here = os.fstat(workspace)
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=workspace)
        os.chown(name, *_owner(here), dir_fd=workspace)
        if not way.state.count(0):
            raise OSError(0, "the limit of what a script may write")
    target = os.open(name, FOLDER, dir_fd=workspace)
    try:
        below = os.open(name, FOLDER, dir_fd=copy)
    except OSError:
        os.close(target)
        raise
    _apply(below, target, f"{path}{name}/", way)


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
        copy_file(copy, name, workspace, new, owner)
        os.replace(new, name, src_dir_fd=workspace, dst_dir_fd=workspace)
    except OSError:
        with suppress(OSError):
            os.unlink(new, dir_fd=workspace)
        raise


def _make_room(workspace: int, name: str, path: str, way: _Way) -> None:
    """Remove what the script replaced by something of another kind."""
    at = path + name
    if not way.was_folder(at):
        if not way.comes_back(at):
            way.stays.add(at)  # nor does the folder that it made
    elif way.chosen is None and not _is_known(workspace, name, path, way):
        way.stays.add(at)
        way.leave(at, "the folder there holds other files")
    _remove(workspace, name, path, way)


def _is_known(folder: int, name: str, path: str, way: _Way) -> bool:
    """Whether a folder of the workspace holds nothing that was not copied."""
    if name not in way.state.known.get(path, {}):
        return False
    if not _is_folder(folder, name):
        return True
    below = os.open(name, FOLDER, dir_fd=folder)
    try:
        at = f"{path}{name}/"
        return all(_is_known(below, inner, at, way) for inner in os.listdir(below))
    finally:
        os.close(below)


def _remove(workspace: int, name: str, path: str, way: _Way) -> None:
    """Remove files that the script removed, if the copy had them."""
    at = path + name
    if at in way.state.left_out or at in way.stays:
        return
    try:
        if not _is_folder(workspace, name):
            if way.comes_back(at):
                os.unlink(name, dir_fd=workspace)
            return
        below = os.open(name, FOLDER, dir_fd=workspace)
        try:
            for inner in way.state.known.get(f"{at}/", {}):
                _remove(below, inner, f"{at}/", way)
        finally:
            os.close(below)
        os.rmdir(name, dir_fd=workspace)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in _NOT_EMPTY:  # what may not go, or is somebody else's
            way.leave(at, error)
