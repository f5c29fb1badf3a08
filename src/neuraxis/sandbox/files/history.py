"""File history: permission for changes, old versions, and undo.

One rule: a file that the runtime did not write, or that somebody changed since, is
replaced as a whole, moved or deleted only with an approval. Appending to it and
changing a passage are free where the user's request names it. The policy asks `risk`
before a call runs; `call_files` asks again when the file is about to change.
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
from neuraxis.events import Event, FileChanged, RunUndone, Unknown
from neuraxis.sandbox.files import operations, workspace
from neuraxis.sandbox.files.named_files import is_called, is_named
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import VersionStore, pieces_of
from neuraxis.sandbox.files.walk import walk_tree

Use = Literal["write", "change", "move", "remove"]
"""What is done to a file: replaced as a whole, changed in part, moved or deleted."""


_TICK = 2_000_000_000
"""Nanoseconds between a file's last change and a digest of it that is kept."""


class Undone(Struct, frozen=True, kw_only=True):
    """What `undo` did, by paths in the workspace."""

    restored: tuple[str, ...] = ()
    """Files that have their old content again."""
    removed: tuple[str, ...] = ()
    """Files and folders that the run had made."""
    changed_since: tuple[str, ...] = ()
    """Left as they are: somebody changed them after the run."""
    lost: tuple[str, ...] = ()
    """Left as they are: their old version was pruned."""
    refused: tuple[str, ...] = ()
    """Left as they are: the system, or what lies there now, does not let them."""
    run: int = 0
    """Number of the run whose changes these are, as in `FileChanged`; 0: none."""


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
        self._allowed: set[tuple[str, str, str]] = set()
        self._written: dict[str, str] | None = None
        self._digests: dict[str, tuple[tuple[int, ...], str]] = {}

    def begin(self) -> None:
        """Begin another run: `undo` takes back the last one that changed files."""
        self._run += 1

    # --- may it happen -------------------------------------------------------------

    def is_own(self, path: str) -> bool:
        """Whether the runtime wrote the file and nobody changed it since."""
        written = self._known().get(path)
        return bool(written) and self._digest_of(path) == written

    def is_users(self, path: str) -> bool:
        """Whether a file is there that is not the runtime's own."""
        path = self._inside(operations.spelled(path))
        found = operations.look(self.workspace, path)
        return found is not None and not self._is_all_own(path, found.st_mode)

    def risk(self, path: str, use: Use, words: Sequence[str] = ()) -> str:
        """Why this needs an approval, in words; empty: it needs none.

        Args:
            path: the file.
            use: what would be done to it.
            words: the user's, of this request.
        """
        path = self._inside(operations.spelled(path))
        if not self.is_users(path):
            return ""
        if use == "change" and (
            is_named(path, words, without_folder=True)
            or is_called(path, words, self.workspace)
        ):
            return ""
        ours, earlier = bool(self._known().get(path)), self.store.knows_earlier
        return call_errors.file_of_the_user(path, use, was_ours=ours, earlier=earlier)

    def way_out(self, path: str, use: Use, target: str) -> str:
        """What the command `target` may do instead, in words."""
        is_text = operations.is_text(self.workspace, path)
        return call_errors.file_way_out(use, target, is_text=is_text)

    def _digest_of(self, path: str) -> str:
        """Return a file's digest, computed once while the file does not change."""
        found = operations.look(self.workspace, path)
        if found is None:
            return ""
        about = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        at, digest = self._digests.get(path, ((), ""))
        if at != about:
            digest = operations.digest_of(self.workspace, path)
            # a change within one tick of the file system's clock would not show
            if time.time_ns() - max(about[2:]) > _TICK:
                self._digests[path] = about, digest
        return digest

    def _inside(self, path: str) -> str:
        """Return the normal form of a path that other programs read."""
        if {"", ".", ".."}.isdisjoint(path.split("/")):
            return path
        root = os.path.realpath(self.workspace)
        full = os.path.realpath(os.path.join(root, path))
        return os.path.relpath(full, root) if full.startswith(root) else path

    def _is_all_own(self, path: str, mode: int) -> bool:
        """Whether the runtime wrote a file, or all that a folder holds."""
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
        """Return the digest of a file as the person left it.

        What this run changed since does not count; empty: there was none.
        """
        path = operations.spelled(path)
        now = self._digest_of(path)
        return self._first(path).before if self._made(path, now) else now

    def is_new(self, path: str) -> bool:
        """Whether this run made the file, and nobody changed it since."""
        path = operations.spelled(path)
        now = self._digest_of(path)
        return self._made(path, now) and not self._first(path).before

    def allow(self, call_id: str, path: str) -> None:
        """Note that a person approved this change to the file."""
        path = operations.spelled(path)
        now = self._digest_of(path)
        self._allowed.add((call_id, path, now))

    def is_allowed(self, call_id: str, path: str) -> bool:
        """Whether a person approved this change to the file as it is."""
        now = self._digest_of(path)
        return (call_id, operations.spelled(path), now) in self._allowed

    # --- what happened -------------------------------------------------------------

    def change(
        self,
        call_id: str,
        path: str,
        kind: str,
        after: str,
        *,
        whole: bool,
        gone: Container[str] | None = None,
    ) -> bool:
        """Store the old version and report the change, before it is made.

        Args:
            call_id: of the call that makes it.
            path: in the workspace.
            kind: what is done, for the journal.
            after: the digest of the new content; empty: the file will be gone.
            whole: all of the new content is the runtime's.
            gone: what the same call deletes first, so that a file can come where a
                folder was, and a folder where a file was.

        Returns:
            Whether an old version was stored that the new one is not.

        Raises:
            FileRefused: the old version cannot be stored.
        """
        with self._lock:
            before, mode, stored = "", 0, False
            found = operations.look(self.workspace, path)
            makes_room = gone is not None and found and stat.S_ISDIR(found.st_mode)
            if found is not None and not makes_room:
                if not stat.S_ISREG(found.st_mode):
                    raise FileRefused(
                        f"{path!r} is no regular file; it is not changed."
                    )
                mode = stat.S_IMODE(found.st_mode) & 0o777
                before = self._digest_of(path)
                if not self._made(path, before):
                    with operations.opened(self.workspace, path) as fd:
                        before = self.store.put(pieces_of(fd), found.st_size, path)
                    stored = before != after
            own, was_own = bool(after) and whole, before == self._known().get(path, "")
            for folder in operations.missing_folders(
                self.workspace, path, gone=gone or ()
            ):
                self._report(call_id, folder, "folder", after="folder")
            self._report(
                call_id, path, kind, before=before, after=after,
                mode=mode, own=own, was_own=was_own and before != "",
            )  # fmt: skip
        return stored

    def _made(self, path: str, digest: str) -> bool:
        """Whether this run made the file what it is."""
        changes = self._of_run(path)
        return bool(changes) and changes[-1].after == digest != ""

    def _first(self, path: str) -> FileChanged:
        return self._of_run(path)[0]

    def _of_run(self, path: str) -> list[FileChanged]:
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
            self._note(path, after if own else "")

    def _add(self, event: FileChanged) -> None:
        self._changes.setdefault((event.run, event.path), []).append(event)

    def _known(self) -> dict[str, str]:
        if self._written is None:
            self._written = self.store.written_in(self.workspace)
        return self._written

    def _note(self, path: str, digest: str) -> None:
        known = self._known()
        if known.get(path, "") != digest:
            known[path] = digest
            self.store.note_written(self.workspace, {path: digest})

    def replay(self, events: Iterable[Event | Unknown]) -> None:
        """Take up what an earlier part of this session changed."""
        for event in events:
            if isinstance(event, FileChanged):
                self._add(event)
                self._run = max(self._run, event.run)
                if event.kind != "folder":
                    self._known()[event.path] = event.after if event.own else ""
            elif isinstance(event, RunUndone):
                self._undone.add(event.run)
        # what another session wrote since stands in the index
        self._known().update(self.store.written_in(self.workspace))
        self.begin()

    # --- undo ----------------------------------------------------------------------

    def undo(self, agree: Callable[[str], bool] = lambda path: False) -> Undone:
        """Restore the files that the last run changed.

        Args:
            agree: asked for each path that somebody changed since; True: restore it.
        """
        with self._lock:
            runs = {run for run, _ in self._changes} - self._undone
            self.begin()
            # one that left every file as it was is not the one to undo
            for run in sorted(runs, reverse=True):
                if done := self._undo_run(run, agree):
                    by_outcome = {
                        became: tuple(paths) for became, paths in done.items()
                    }
                    return Undone(**by_outcome, run=run)
        return Undone()

    def _undo_run(self, run: int, agree: Callable[[str], bool]) -> dict[str, list[str]]:
        """Restore the files of one run; return what became of them."""
        listed = [each for (of, _), each in self._changes.items() if of == run]
        changes = [each for one in listed for each in one]
        files = [each for each in changes if each.kind != "folder"]
        first = {each.path: each for each in reversed(files)}
        last = {each.path: each for each in files}
        folders = {each.path for each in changes if each.kind == "folder"}
        done: dict[str, list[str]] = {}

        def restore(then: FileChanged) -> None:
            try:
                became = self._restore(then, last[then.path].after, agree)
            except FileRefused:
                became = "refused"
            if became:
                done.setdefault(became, []).append(then.path)

        # what was made goes first, since it may stand where something else was
        for path in last:
            if not first[path].before:
                restore(first[path])
        for path in sorted(folders, key=len, reverse=True):
            if self._remove_folder(path):
                done.setdefault("removed", []).append(path)
        for path in last:
            if first[path].before:
                restore(first[path])
        # one that still waits for an answer can be asked about again
        if "changed_since" not in done:
            self._undone.add(run)
            self.emit(RunUndone(run=run))
        return done

    def _restore(
        self, then: FileChanged, after: str, agree: Callable[[str], bool]
    ) -> str:
        path = then.path
        found = operations.look(self.workspace, path)
        now = self._digest_of(path)
        if now == then.before and (now or found is None):
            return ""
        if (now != after or (not now and found is not None)) and not agree(path):
            return "changed_since"
        if now:  # also what somebody changed since can be found again
            with operations.opened(self.workspace, path) as fd:
                size = 0 if found is None else found.st_size
                self.store.put(pieces_of(fd), size, path)
        if not then.before:
            operations.remove(self.workspace, path)
            self._note(path, "")
            return "removed"
        data = self.store.get(then.before)
        if data is None:
            return "lost"
        # these bytes lay here before
        workspace.write_bytes(self.workspace, path, data, quota=workspace.UNLIMITED)
        operations.set_mode(self.workspace, path, then.mode)
        self._note(path, then.before if then.was_own else "")
        return "restored"

    def _remove_folder(self, path: str) -> bool:
        found = operations.look(self.workspace, path)
        if found is None or not stat.S_ISDIR(found.st_mode):
            return False
        try:
            operations.remove(self.workspace, path)
        except FileRefused:
            return False  # somebody put a file into it
        return True
