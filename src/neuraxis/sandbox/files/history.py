"""File history: permission for changes, old versions, and undo.

One rule: a file that the runtime did not write, or that somebody changed since, is
replaced as a whole, moved or deleted only with an approval. Appending to it and
changing a passage need no approval if the user's request names it. The policy calls
`risk` before a call runs; `call_files` calls it again before the file changes.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.events import Event, FileChanged, MessageSent, RunUndone, Unknown
from neuraxis.sandbox.files import operations, workspace
from neuraxis.sandbox.files.exchange import ChangedMeanwhile
from neuraxis.sandbox.files.named_files import is_called, is_named
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import VersionStore, pieces_of
from neuraxis.sandbox.files.walk import walk_tree

Use = Literal["write", "change", "move", "remove"]
"""Use of a file: replaced as a whole, changed in part, moved or deleted."""


_TICK = 2_000_000_000
"""Minimum age of a file's last change before its digest is cached, in ns."""


class Undone(Struct, frozen=True, kw_only=True):
    """Result of `undo`, by paths in the workspace."""

    restored: tuple[str, ...] = ()
    """Files that have their old content again."""
    removed: tuple[str, ...] = ()
    """Files and folders that the run had made."""
    changed_since: tuple[str, ...] = ()
    """Not restored: changed after the run."""
    lost: tuple[str, ...] = ()
    """Not restored: their old version was pruned."""
    refused: tuple[str, ...] = ()
    """Not restored yet: refused by the system, or blocked by what is there now."""
    changed_during: tuple[str, ...] = ()
    """Of `restored` and `removed`: back only to how somebody left them in the run."""
    run: int = 0
    """Number of the run whose changes these are, as in `FileChanged`; 0: none."""


def turning_point(changes: Sequence[FileChanged]) -> FileChanged:
    """Return the change of a run before which `undo` stops.

    The first, unless somebody changed the file during the run: then the one that met
    their newest version.

    Args:
        changes: all that one run made to one file, in order.
    """
    found, left = changes[0], {changes[0].after}
    for change in changes[1:]:
        # after a change that failed, or beside another one, the file holds what this
        # run left earlier, or found: that is nobody's edit
        if change.before != found.before and change.before not in left:
            found = change
        left.add(change.after)
    return found


class OldVersion(Struct, frozen=True, kw_only=True):
    """What a change found, which is all that it may replace."""

    digest: str = ""
    """Empty: there was no file."""
    mode: int = 0
    """Its permissions."""
    stored: bool = False
    """Whether it was stored, with other content than the new one."""


class FileHistory:
    """The changes of one session to the files of its workspace.

    Args:
        workspace: the folder.
        store: where old versions are stored.
        emit: reports a change to the journal, before it is made.
    """

    def __init__(
        self,
        workspace: Path,
        store: VersionStore,
        emit: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.workspace = workspace
        self.store = store
        self.emit = emit
        self._lock = threading.RLock()
        self._run = 1
        self._changes: dict[tuple[int, str], list[FileChanged]] = {}
        self._undone: set[int] = set()
        self.untold: list[str] = []
        """Files of undone runs of which the next request tells the model."""
        self._allowed: set[tuple[str, str, str]] = set()
        self._left: dict[str, str] = {}
        self._written: dict[str, str] | None = None
        self._digests: dict[str, tuple[tuple[int, ...], str]] = {}

    def begin(self) -> None:
        """Begin another run: `undo` reverts the last one that changed files."""
        self._run += 1

    def go_on(self) -> None:
        """Continue the last run, which was cut off, unless it was undone."""
        if self._run in self._undone:
            self.begin()

    # --- permission ----------------------------------------------------------------

    def is_own(self, path: str) -> bool:
        """Return whether the runtime wrote the file and nobody changed it since."""
        written = self._written_digests().get(path)
        return bool(written) and self.digest_now(path) == written

    def is_as_left(self, path: str) -> bool:
        """Return whether a file is as this session left it."""
        return self._left.get(path) == self.digest_now(path)

    def note_left(self, path: str) -> None:
        """Note how a call left a file that it wrote itself."""
        if not self._run_changes(path):  # else somebody may have changed it since
            self._left[path] = self.digest_now(path)

    def is_users(self, path: str) -> bool:
        """Return whether a file exists that is not the runtime's own."""
        path = self._normal_path(operations.spelled(path))
        status = operations.look(self.workspace, path)
        return status is not None and not self._is_all_own(path, status.st_mode)

    def risk(self, path: str, use: Use, words: Sequence[str] = ()) -> str:
        """Return why this needs an approval, in words; empty: it needs none.

        Args:
            path: the file.
            use: what would be done to it.
            words: the user's, of this request.
        """
        path = self._normal_path(operations.spelled(path))
        if not self.is_users(path):
            return ""
        if use == "change" and (
            is_named(path, words, without_folder=True)
            or is_called(path, words, self.workspace)
        ):
            return ""
        was_ours = bool(self._written_digests().get(path))
        return call_errors.file_of_the_user(path, use, was_ours=was_ours)

    def way_out(self, path: str, use: Use, target: str) -> str:
        """Return what the command `target` may do instead, in words."""
        is_text = operations.is_text(self.workspace, path)
        return call_errors.file_way_out(use, target, is_text=is_text)

    def digest_now(self, path: str) -> str:
        """Return a file's digest, computed once while the file does not change.

        Empty: there is no file.
        """
        status = operations.look(self.workspace, path)
        if status is None:
            return ""
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        cached_stamp, digest = self._digests.get(path, ((), ""))
        if cached_stamp != stamp:
            digest = operations.digest_of(self.workspace, path)
            # a change within one tick of the file system's clock is invisible
            if time.time_ns() - max(stamp[2:]) > _TICK:
                self._digests[path] = stamp, digest
        return digest

    def _normal_path(self, path: str) -> str:
        """Return the normal form of a path that other programs read."""
        if {"", ".", ".."}.isdisjoint(path.split("/")):
            return path
        root = os.path.realpath(self.workspace)
        full = os.path.realpath(os.path.join(root, path))
        return os.path.relpath(full, root) if Path(full).is_relative_to(root) else path

    def _is_all_own(self, path: str, mode: int) -> bool:
        """Return whether the runtime wrote all of a file or folder."""
        if not stat.S_ISDIR(mode):
            return not stat.S_ISREG(mode) or self.is_own(path)
        return all(
            self.is_own(os.path.relpath(os.path.join(at, name), self.workspace))
            for at, _, names in walk_tree(self.workspace / path)
            for name in names
        )

    def wrote_all_of(self, folder: str) -> bool:
        """Whether a folder is not there, or holds only the runtime's files."""
        found = operations.look(self.workspace, folder)
        if found is None:
            return True
        return stat.S_ISDIR(found.st_mode) and self._is_all_own(folder, found.st_mode)

    def digest(self, path: str) -> str:
        """Return the digest of a file as the user left it.

        Changes of this run do not count; empty: there was no file.
        """
        path = operations.spelled(path)
        current = self.digest_now(path)
        if not self._made_by_run(path, current):
            return current
        return turning_point(self._run_changes(path)).before

    def is_new(self, path: str) -> bool:
        """Return whether this run made the file, and nobody changed it since."""
        path = operations.spelled(path)
        current = self.digest_now(path)
        return self._made_by_run(path, current) and not self.digest(path)

    def allow(self, call_id: str, path: str) -> None:
        """Record that the user approved this change to the file."""
        path = operations.spelled(path)
        current = self.digest_now(path)
        self._allowed.add((call_id, path, current))

    def is_allowed(self, call_id: str, path: str) -> bool:
        """Return whether the user approved this change to the current file."""
        current = self.digest_now(path)
        return (call_id, operations.spelled(path), current) in self._allowed

    # --- changes -------------------------------------------------------------------

    def change(
        self,
        call_id: str,
        path: str,
        kind: str,
        after: str,
        *,
        whole: bool,
        found: str | None = None,
        gone: Container[str] | None = None,
    ) -> OldVersion:
        """Store the old version and report the change, before it is made.

        Args:
            call_id: id of the call that makes it.
            path: in the workspace.
            kind: kind of change, for the journal.
            after: the digest of the new content; empty: the file will be gone.
            whole: whether all of the new content is the runtime's.
            found: digest of the file that the change was permitted for, or that the
                new content was made of; None: any.
            gone: paths that the same call deletes first, so that a file can replace a
                folder, and a folder a file.

        Returns:
            The old version.

        Raises:
            FileRefused: the old version cannot be stored.
            ChangedMeanwhile: it is not the one that was found.
        """
        with self._lock:
            old = self._store_old(path, after, makes_room=gone is not None)
            before = old.digest
            if found is not None and found != before:
                gone_by = "moved" if kind == "move" else "deleted"
                raise ChangedMeanwhile(path, "written" if after else gone_by)
            is_own, was_own = (
                bool(after) and whole,
                before == self._written_digests().get(path, ""),
            )
            for folder in operations.missing_folders(
                self.workspace, path, gone=gone or ()
            ):
                self._report(call_id, folder, "folder", after="folder")
            self._report(
                call_id, path, kind, before=before, after=after,
                mode=old.mode, own=is_own, was_own=was_own and before != "",
            )  # fmt: skip
        return old

    def _store_old(self, path: str, after: str, *, makes_room: bool) -> OldVersion:
        """Store what a change replaces, unless this run wrote it."""
        status = operations.look(self.workspace, path)
        if status is None or (makes_room and stat.S_ISDIR(status.st_mode)):
            return OldVersion()
        if not stat.S_ISREG(status.st_mode):
            raise FileRefused(f"{path!r} is no regular file; it is not changed.")
        before, is_other = self.digest_now(path), False
        if not self._made_by_run(path, before):
            with operations.opened(self.workspace, path) as fd:
                before = self.store.put(pieces_of(fd), status.st_size, path)
            is_other = before != after
        mode = stat.S_IMODE(status.st_mode) & 0o777
        return OldVersion(digest=before, mode=mode, stored=is_other)

    def _made_by_run(self, path: str, digest: str) -> bool:
        """Return whether this run wrote the current content."""
        changes = self._run_changes(path)
        return bool(changes) and changes[-1].after == digest != ""

    def _run_changes(self, path: str) -> list[FileChanged]:
        return self._changes.get((self._run, path), [])

    def folder(self, call_id: str, path: str) -> None:
        """Report that folders will be made."""
        missing = operations.missing_folders(self.workspace, path, itself=True)
        for name in missing:
            self._report(call_id, name, "folder", after="folder")

    def _report(
        self,
        call_id: str,
        path: str,
        kind: str,
        *,
        before: str = "",
        after: str = "",
        mode: int = 0,
        own: bool = False,
        was_own: bool = False,
    ) -> None:
        event = FileChanged(
            call=call_id, path=path, run=self._run, kind=kind, before=before,
            after=after, mode=mode, own=own, was_own=was_own,
        )  # fmt: skip
        self.emit(event)
        self._add(event)
        if kind != "folder":
            self._note_written(path, after if own else "")

    def _add(self, event: FileChanged) -> None:
        self._changes.setdefault((event.run, event.path), []).append(event)
        self._left[event.path] = event.after

    def _written_digests(self) -> dict[str, str]:
        if self._written is None:
            self._written = self.store.written_in(self.workspace)
        return self._written

    def _note_written(self, path: str, digest: str) -> None:
        written = self._written_digests()
        if written.get(path, "") != digest:
            written[path] = digest
            self.store.note_written(self.workspace, {path: digest})

    def replay(self, events: Iterable[Event | Unknown]) -> None:
        """Restore the changes of an earlier part of this session."""
        is_last = False  # whether the last request changed files
        for event in events:
            if isinstance(event, FileChanged):
                is_last = True
                self._add(event)
                self._run = max(self._run, event.run)
                if event.kind != "folder":
                    self._written_digests()[event.path] = (
                        event.after if event.own else ""
                    )
            elif isinstance(event, RunUndone):
                self._undone.add(event.run)
                self.untold += event.files
            elif isinstance(event, MessageSent) and event.sender == "user":
                is_last = False
                self.untold.clear()
        # the index has what another session wrote since
        self._written_digests().update(self.store.written_in(self.workspace))
        if not is_last:
            self.begin()

    # --- undo ----------------------------------------------------------------------

    def undo(self, agree: Callable[[str], bool] = lambda path: False) -> Undone:
        """Restore the files that the last run changed.

        A version that somebody made during the run is never passed: the file goes
        back to the newest one.

        Args:
            agree: called for each path that was changed since; True: restore it.
        """
        with self._lock:
            runs = {run for run, _ in self._changes} - self._undone
            self.begin()
            # skip runs that left every file as it was
            for run in sorted(runs, reverse=True):
                if outcomes := self._undo_run(run, agree):
                    paths_by_outcome = {
                        outcome: tuple(paths) for outcome, paths in outcomes.items()
                    }
                    return Undone(**paths_by_outcome, run=run)
        return Undone()

    def _undo_run(self, run: int, agree: Callable[[str], bool]) -> dict[str, list[str]]:
        """Restore the files of one run; return what became of them."""
        histories = [change for (of, _), change in self._changes.items() if of == run]
        changes = [change for history in histories for change in history]
        files = [change for change in changes if change.kind != "folder"]
        by_path: dict[str, list[FileChanged]] = {}
        for change in files:
            by_path.setdefault(change.path, []).append(change)
        start = {path: turning_point(of) for path, of in by_path.items()}
        last = {path: of[-1] for path, of in by_path.items()}
        folders = {change.path for change in changes if change.kind == "folder"}
        outcomes: dict[str, list[str]] = {}

        def restore(change_: FileChanged) -> None:
            try:
                outcome = self._restore(change_, last[change_.path].after, agree)
            except ChangedMeanwhile:
                outcome = "changed_since"
            except FileRefused:
                outcome = "refused"
            if outcome:
                outcomes.setdefault(outcome, []).append(change_.path)
            is_whole = change_.before == by_path[change_.path][0].before
            if outcome in {"restored", "removed"} and not is_whole:
                outcomes.setdefault("changed_during", []).append(change_.path)

        # new files are removed first: they may be where something else was
        for path in last:
            if not start[path].before:
                restore(start[path])
        kept = [path for path in last if start[path].before]
        for path in sorted(folders, key=len, reverse=True):
            # a new folder stays where a file in it comes back
            if any(name.startswith(f"{path}/") for name in kept):
                continue
            if self._remove_folder(path):
                outcomes.setdefault("removed", []).append(path)
        for path in kept:
            restore(start[path])
        # what is still to restore can be restored later
        if outcomes.keys().isdisjoint(("changed_since", "refused")):
            self._undone.add(run)
            files = *outcomes.get("restored", ()), *outcomes.get("removed", ())
            self.emit(RunUndone(run=run, files=files))
            self.untold += files
        return outcomes

    def _restore(
        self, change: FileChanged, after: str, agree: Callable[[str], bool]
    ) -> str:
        path = change.path
        status = operations.look(self.workspace, path)
        current = self.digest_now(path)
        if current == change.before and (current or status is None):
            return ""
        if (current != after or (not current and status is not None)) and not agree(
            path
        ):
            return "changed_since"
        if current:  # keep the changed content, too
            with operations.opened(self.workspace, path) as fd:
                size = 0 if status is None else status.st_size
                self.store.put(pieces_of(fd), size, path)
        # what cannot be read is replaced only where somebody agreed
        expected = current if current or status is None else None
        if not change.before:
            operations.remove(self.workspace, path, expected)
            self._note_written(path, "")
            return "removed"
        data = self.store.get(change.before)
        if data is None:
            return "lost"
        # this content was here before, so no quota applies
        workspace.write_bytes(
            self.workspace, path, data,
            quota=workspace.UNLIMITED, before=lambda _: expected, was_there=True,
        )  # fmt: skip
        operations.set_mode(self.workspace, path, change.mode)
        self._note_written(path, change.before if change.was_own else "")
        return "restored"

    def _remove_folder(self, path: str) -> bool:
        status = operations.look(self.workspace, path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return False
        try:
            operations.remove(self.workspace, path)
        except FileRefused:
            return False  # it has another file by now
        return True
