"""File changes of one call: permitted, reported, stored.

A command changes files through its `CallFiles`: it asks the history whether the change
is permitted, reports it and stores the old version.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.formatting import quote
from neuraxis.sandbox.files import operations, workspace
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.sandbox.files.paths import FileRefused, parts_of
from neuraxis.sandbox.files.removed_lines import lost_lines, text_of
from neuraxis.sandbox.files.walk import walk_tree

_SHOWN = 10
"""Maximum files of a script whose lost lines are shown."""


class CallFiles(Struct, frozen=True, kw_only=True):
    """The way of one call to change files; `context.files` of a command."""

    history: FileHistory
    call_id: str
    warn: Callable[[str], None]
    target: str = "PLUGIN.COMMAND"
    """The call's command, as `plugin.command`."""
    ask: Callable[[Mapping[str, Sequence[str]], Sequence[str]], str] = (
        lambda held, lost: call_errors.NOBODY
    )
    """Asks a person about files that a script `changed`, `moved`, `deleted` or `made`,
    with the lines that they lose; returns why not, or nothing for a yes."""
    words: Sequence[str] = ()
    """The user's, of this request: what they name may be changed in part."""
    free: bool = False
    """The policy allows the call whatever it does."""
    note: Callable[[str, bool], None] = lambda path, there: None
    """Told of each file that a script made or changed; False: it deleted it."""
    holds: Callable[[str], bool] | None = None
    """Whether a new file of this name is asked about; None: no new file is."""
    moved: list[str] = []

    def write(
        self,
        path: str,
        data: bytes,
        quota: workspace.Quota,
        *,
        use: Use = "write",
        kind: str = "write",
    ) -> str:
        """Write a file atomically; return its path in the workspace.

        Raises:
            FileRefused: it needs an approval, or the path or amount is not allowed.
        """
        history, stored = self.history, list[bool]()

        def begin(shown: str) -> None:
            self.permit(shown, use)
            after = hashlib.sha256(data).hexdigest()
            is_new = operations.look(history.workspace, shown) is None
            own, part = is_new or history.is_own(shown), use == "change"
            whole = own or not part
            kept = history.change(self.call_id, shown, kind, after, whole=whole)
            stored.append(kept and not (own and part))

        written = workspace.write_bytes(
            history.workspace, path, data, quota=quota, before=begin
        )
        self.tell(written, stored=stored == [True])
        return written

    def permit(self, path: str, use: Use) -> None:
        """Let a change happen.

        Raises:
            FileRefused: it needs an approval, and there is none for the file as it is.
        """
        why = "" if self.free else self.history.risk(path, use, self.words)
        if why and not self.history.is_allowed(self.call_id, path):
            instead = self.history.way_out(path, use, self.target)
            raise FileRefused(f"{why}. {instead}")

    def move(self, path: str, new: str) -> str:
        """Give a file another name; return it.

        Raises:
            FileRefused: it needs an approval, or the system refuses.
        """
        root, (path, new) = self.history.workspace, map(operations.spelled, (path, new))
        digest = operations.digest(root, path)
        if path == new:
            raise FileRefused(f"{path!r} has that name already.")
        self.permit(path, "move")
        self.permit(new, "write")
        own = self.history.is_own(path)
        replaced = self.history.change(self.call_id, new, "move", digest, whole=own)
        stored = self.history.change(self.call_id, path, "move", "", whole=False)
        operations.move(root, path, new)
        self.tell(path, stored=stored)
        self.tell(new, stored=replaced)
        return new

    def delete(self, path: str) -> None:
        """Delete a file, or an empty folder.

        Raises:
            FileRefused: it needs an approval, or the system refuses.
        """
        root, path = self.history.workspace, operations.spelled(path, folder=True)
        found = operations.look(root, path)
        if found is not None and stat.S_ISDIR(found.st_mode):
            operations.remove(root, path)
            return
        operations.digest(root, path)  # refused if it is not there
        self.permit(path, "remove")
        stored = self.history.change(self.call_id, path, "delete", "", whole=False)
        operations.remove(root, path)
        self.tell(path, stored=stored)

    def make_folder(self, path: str) -> str:
        """Make a folder; return its path.

        Raises:
            FileRefused: a file has its name, or the place is not allowed.
        """
        path = "/".join(parts_of(path))
        self.history.folder(self.call_id, path)
        operations.make_folder(self.history.workspace, path)
        return path

    def bring_back(
        self, changed: Sequence[tuple[str, str]], copy: Path
    ) -> frozenset[str]:
        """Choose the script's changes that come back; store old versions.

        Args:
            changed: each path with the digest it has now; empty: it was deleted.
            copy: the folder in which the script changed them.

        Returns:
            Their paths; of the others the model is told.
        """
        not_kept: list[str] = []
        # what is deleted makes room for what was made of another kind
        changed = sorted(
            self._with_room(changed, not_kept), key=lambda one: one[1] != ""
        )
        history = self.history
        theirs = {
            path: operations.digest_of(history.workspace, path)
            for path, _ in changed
            if not history.is_own(path)
        }
        asked = self._asked(changed, theirs)
        held = {
            done: [path for path, what in asked.items() if what == done]
            for done in dict.fromkeys(asked.values())
        }
        no = "" if not asked or self.free else self.ask(held, self._lost(held, copy))
        if no:
            changed = [one for one in changed if one[0] not in asked]
        # what a script moves stays whose it was
        moved = {theirs[path] for path, _ in changed if path in theirs}
        back: set[str] = set()
        for path, digest in changed:
            try:
                self._check_room(path, back)
                whole = digest not in moved
                stored = history.change(
                    self.call_id, path, "script", digest, whole=whole, gone=back
                )
            except FileRefused as error:
                not_kept.append(str(error).rstrip("."))
                continue
            back.add(path)
            self.note(path, digest != "")
            self.tell(path, stored=stored and path in asked)
        if no:
            self.warn(call_errors.script_changes_refused([*asked], no, self.target))
        if not_kept:
            self.warn(call_errors.script_changes_not_kept(not_kept))
        return frozenset(back)

    def _asked(
        self, changed: Sequence[tuple[str, str]], theirs: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the changes that a person is asked about.

        `theirs`: what stands in those of the files that the runtime did not write.
        """
        asked, came = dict[str, str](), {digest for _, digest in changed}
        for path, digest in changed:
            found = operations.look(self.history.workspace, path)
            if found is not None and stat.S_ISDIR(found.st_mode):
                found = None  # the file is new; what the folder holds is asked about
            elif found is not None and not stat.S_ISREG(found.st_mode):
                continue  # a link has no version that could be stored: it stays
            use = "write" if digest else "remove"
            if (found is not None and self.history.risk(path, use)) or (
                self.holds and (found is not None or self.holds(path))
            ):
                gone = "moved" if theirs.get(path) in came else "deleted"
                done = "made" if found is None else "changed" if digest else gone
                asked[path] = done
        return asked

    def _with_room(
        self, changed: Sequence[tuple[str, str]], not_kept: list[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield the changes, but not of folders that must stay."""
        root = self.history.workspace
        deleted = {path for path, digest in changed if not digest}
        full: list[str] = []
        for path, digest in changed:
            found = operations.look(root, path) if digest else None
            if found is None or not stat.S_ISDIR(found.st_mode):
                continue
            if stays := next(_others(root, path, deleted), ""):
                not_kept.append(f"{quote(path)}: the folder there holds {quote(stays)}")
                full.append(path)
        below = tuple(f"{path}/" for path in full)
        for path, digest in changed:
            if path not in full and not path.startswith(below):
                yield path, digest

    def _check_room(self, path: str, back: Collection[str]) -> None:
        """Check that nothing stays where a file is to come.

        Raises:
            FileRefused: it does.
        """
        root = self.history.workspace
        parts = parts_of(path)
        for way in ("/".join(parts[:n]) for n in range(1, len(parts))):
            found = operations.look(root, way)
            if found and not stat.S_ISDIR(found.st_mode) and way not in back:
                raise FileRefused(f"{quote(path)}: {quote(way)} stays, which is a file")
        found = operations.look(root, path)
        if found and stat.S_ISDIR(found.st_mode):
            for stays in _others(root, path, back):
                raise FileRefused(f"{quote(path)}: {quote(stays)} stays in the folder")

    def _lost(self, held: Mapping[str, Sequence[str]], copy: Path) -> list[str]:
        """Return the lines that files lose by what a script did."""
        root, shown = self.history.workspace, list[str]()
        paths = [*held.get("deleted", ()), *held.get("changed", ())]
        for path in paths[:_SHOWN]:
            kept = set(text_of(copy, path).splitlines())
            shown += lost_lines(path, text_of(root, path), kept)
        return shown

    def tell(self, path: str, *, stored: bool) -> None:
        """Warn that an old version was stored."""
        if stored:
            durable = self.history.store.is_durable
            self.warn(call_errors.version_stored(path, durable=durable))


def _others(root: Path, path: str, known: Collection[str]) -> Iterator[str]:
    """Yield the files in a folder but the known ones."""
    for at, _, names in walk_tree(root / path):
        for name in names:
            inside = (Path(at) / name).relative_to(root).as_posix()
            if inside not in known:
                yield inside
