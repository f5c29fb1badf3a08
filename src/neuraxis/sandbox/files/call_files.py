"""File changes of one call: permitted, reported, stored.

A command changes files through its `CallFiles`: it asks the history whether the change
is permitted, reports it and stores the old version.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.formatting import quote, sha256
from neuraxis.sandbox.files import operations, workspace
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.sandbox.files.paths import FileRefused, parts_of
from neuraxis.sandbox.files.removed_lines import changed_lines
from neuraxis.sandbox.files.walk import walk_tree


class CallFiles(Struct, frozen=True, kw_only=True):
    """Changes files for one call; `context.files` of a command."""

    history: FileHistory
    call_id: str
    warn: Callable[[str], None]
    target: str = "PLUGIN.COMMAND"
    """The call's command, as `plugin.command`."""
    ask: Callable[[Mapping[str, Sequence[str]], Sequence[str]], str] = (
        lambda held, lost: call_errors.NOBODY
    )
    """Asks the user about files that a script `changed`, `moved`, `deleted` or `made`.

    It gets the lines that they lose, and returns the refusal; empty: approved.
    """
    words: Sequence[str] = ()
    """Texts of the user's request: files that they name may be changed in part."""
    free: bool = False
    """Whether the policy allows every change of the call."""
    note: Callable[[str, bool], None] = lambda path, there: None
    """Called for each file that a script made or changed; False: deleted."""
    holds: Callable[[str], bool] | None = None
    """Whether writing this file needs an approval; None: no change does."""

    def write(
        self,
        path: str,
        data: bytes,
        quota: workspace.Quota,
        *,
        use: Use = "write",
        kind: str = "write",
        found: str | None = None,
    ) -> str:
        """Write a file atomically; return its path in the workspace.

        `found`: digest of the file that the data was made of; empty: there was none.

        Raises:
            FileRefused: it needs an approval, the path or amount is not allowed, or
                somebody changed the file meanwhile.
        """
        history, stored = self.history, list[bool]()

        def begin(shown: str) -> str:
            permitted = self.permit(shown, use)
            after = sha256(data)
            is_new = operations.look(history.workspace, shown) is None
            is_own, is_partial = is_new or history.is_own(shown), use == "change"
            is_owned = is_own or not is_partial
            old = history.change(
                self.call_id, shown, kind, after, whole=is_owned,
                found=permitted if found is None else found,
            )  # fmt: skip
            stored.append(old.stored and not (is_own and is_partial))
            return old.digest

        written = workspace.write_bytes(
            history.workspace, path, data, quota=quota, before=begin
        )
        self.tell(written, stored=stored == [True])
        return written

    def permit(self, path: str, use: Use) -> str:
        """Check that a change is permitted; return the file's digest.

        Raises:
            FileRefused: it needs an approval, and the file's current content has none.
        """
        found = self.history.digest_now(path)
        reason = "" if self.free else self.history.risk(path, use, self.words)
        if reason and not self.history.is_allowed(self.call_id, path):
            instead = self.history.way_out(path, use, self.target)
            raise FileRefused(f"{reason}. {instead}")
        return found

    def move(self, path: str, new: str) -> str:
        """Give a file another name; return it.

        Raises:
            FileRefused: it needs an approval, or the system refuses.
        """
        root, (path, new) = self.history.workspace, map(operations.spelled, (path, new))
        operations.digest(root, path)  # raises if it does not exist
        if path == new:
            raise FileRefused(f"{path!r} has that name already.")
        digest, there = self.permit(path, "move"), self.permit(new, "write")
        is_own = self.history.is_own(path)
        replaced = self.history.change(
            self.call_id, new, "move", digest, whole=is_own, found=there
        )
        moved = self.history.change(
            self.call_id, path, "move", "", whole=False, found=digest
        )
        operations.move(root, path, new, replaced.digest)
        self.tell(path, stored=moved.stored)
        self.tell(new, stored=replaced.stored)
        return new

    def delete(self, path: str) -> None:
        """Delete a file, or an empty folder.

        Raises:
            FileRefused: it needs an approval, or the system refuses.
        """
        root, path = self.history.workspace, operations.spelled(path, folder=True)
        status = operations.look(root, path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            operations.remove(root, path)
            return
        operations.digest(root, path)  # raises if it does not exist
        found = self.permit(path, "remove")
        old = self.history.change(
            self.call_id, path, "delete", "", whole=False, found=found
        )
        operations.remove(root, path, old.digest)
        self.tell(path, stored=old.stored)

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
    ) -> dict[str, str]:
        """Choose the script's changes to bring back; store old versions.

        Args:
            changed: each path with its new digest; empty: deleted.
            copy: the folder in which the script worked.

        Returns:
            The paths to bring back, each with the digest of what it replaces; the
            model is warned about the others.
        """
        not_kept: list[str] = []
        # deletions first: they make room for files of another kind
        changed = sorted(
            self._without_blocked(_with_names(changed, not_kept), not_kept),
            key=lambda change: change[1] != "",
        )
        history = self.history
        found = {path: history.digest_now(path) for path, _ in changed}
        users_digests = {
            path: digest for path, digest in found.items() if not history.is_own(path)
        }
        to_approve = self._needing_approval(changed, users_digests)
        refusal = ""
        if to_approve and not self.free:
            refusal, changed = self._ask(changed, to_approve, copy)
        # a file that a script moves or changes keeps its owner
        moved = {users_digests[path] for path, _ in changed if path in users_digests}
        back: dict[str, str] = {}
        for path, digest in changed:
            try:
                self._check_target_free(path, back)
                whole = digest not in moved and not users_digests.get(path)
                old = history.change(
                    self.call_id, path, "script", digest, whole=whole,
                    found=found[path], gone=back,
                )  # fmt: skip
            except FileRefused as error:
                not_kept.append(str(error).rstrip("."))
                continue
            back[path] = old.digest
            self.note(path, digest != "")
            self.tell(path, stored=old.stored and path in to_approve)
        if refusal:
            self.warn(
                call_errors.script_changes_refused([*to_approve], refusal, self.target)
            )
        if not_kept:
            self.warn(call_errors.script_changes_not_kept(not_kept))
        return back

    def _ask(
        self,
        changed: Sequence[tuple[str, str]],
        to_approve: Mapping[str, str],
        copy: Path,
    ) -> tuple[str, list[tuple[str, str]]]:
        """Ask the user; return the refusal, and the changes that remain.

        A file that somebody changed meanwhile stays as it is: nobody was asked about
        what it holds now.
        """
        by_kind = {
            done: [path for path, kind in to_approve.items() if kind == done]
            for done in dict.fromkeys(to_approve.values())
        }
        root, deleted = self.history.workspace, by_kind.get("deleted", [])
        found = {path: _state(root, path) for path, _ in changed}
        lost = changed_lines(root, copy, deleted, by_kind.get("changed", []))
        refusal = self.ask(by_kind, lost)
        if refusal:
            changed = [change for change in changed if change[0] not in to_approve]
        now = {path: _state(root, path) for path, _ in changed}
        outdated = {path: True for path, state in now.items() if state != found[path]}
        if outdated:
            self.warn(call_errors.script_changes_outdated([*outdated]))
        return refusal, [change for change in changed if change[0] not in outdated]

    def _needing_approval(
        self, changed: Sequence[tuple[str, str]], users_digests: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the changes that need an approval.

        `users_digests`: digests of the files that the runtime did not write.
        """
        to_approve, new_digests = dict[str, str](), {digest for _, digest in changed}
        for path, digest in changed:
            status = operations.look(self.history.workspace, path)
            if status is not None and stat.S_ISDIR(status.st_mode):
                status = (
                    None  # the file is new; the folder's content is checked by itself
                )
            elif status is not None and not stat.S_ISREG(status.st_mode):
                continue  # a link has no content that could be stored: it stays
            use = "write" if digest else "remove"
            if (status is not None and self.history.risk(path, use)) or (
                self.holds and (not digest or self.holds(path))
            ):
                kind = "moved" if users_digests.get(path) in new_digests else "deleted"
                action = "made" if status is None else "changed" if digest else kind
                to_approve[path] = action
        return to_approve

    def _without_blocked(
        self, given: Iterable[tuple[str, str]], not_kept: list[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield the changes, except where what is there must stay."""
        changed = list(given)
        root = self.history.workspace
        deleted = {path for path, digest in changed if not digest}
        blocked: list[str] = []
        for path, digest in changed:
            status = operations.look(root, path) if digest else None
            if status is None:
                continue
            if not stat.S_ISDIR(status.st_mode):
                if stat.S_ISREG(status.st_mode) and not status.st_mode & 0o222:
                    not_kept.append(f"{quote(path)} is write-protected")
                    blocked.append(path)
                continue
            if remaining := next(_others(root, path, deleted), ""):
                not_kept.append(
                    f"{quote(path)}: the folder there holds {quote(remaining)}"
                )
                blocked.append(path)
        inside = tuple(f"{path}/" for path in blocked)
        for path, digest in changed:
            if path not in blocked and not path.startswith(inside):
                yield path, digest

    def _check_target_free(self, path: str, back: Collection[str]) -> None:
        """Check that nothing blocks a file's place.

        Raises:
            FileRefused: a file or folder does.
        """
        root = self.history.workspace
        parts = parts_of(path)
        for parent in ("/".join(parts[:n]) for n in range(1, len(parts))):
            status = operations.look(root, parent)
            if status and not stat.S_ISDIR(status.st_mode) and parent not in back:
                raise FileRefused(
                    f"{quote(path)}: {quote(parent)} stays, which is a file"
                )
        status = operations.look(root, path)
        if status and stat.S_ISDIR(status.st_mode):
            for remaining in _others(root, path, back):
                raise FileRefused(
                    f"{quote(path)}: {quote(remaining)} stays in the folder"
                )

    def tell(self, path: str, *, stored: bool) -> None:
        """Warn that an old version was stored."""
        if stored:
            durable = self.history.store.is_durable
            self.warn(call_errors.version_stored(path, durable=durable))


def _with_names(
    changed: Sequence[tuple[str, str]], not_kept: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield the changes of files whose names the workspace allows."""
    for path, digest in changed:
        try:
            parts_of(path)
        except FileRefused as error:
            not_kept.append(str(error).rstrip("."))
        else:
            yield path, digest


def _state(root: Path, path: str) -> tuple[int, str]:
    """Return what is at a path: its kind, and a file's digest."""
    status = operations.look(root, path)
    kind = stat.S_IFMT(status.st_mode) if status is not None else 0
    return kind, operations.digest_of(root, path) if stat.S_ISREG(kind) else ""


def _others(root: Path, path: str, ignored: Collection[str]) -> Iterator[str]:
    """Yield the files in a folder, except the ignored ones."""
    for at, _, names in walk_tree(root / path):
        for name in names:
            path_inside = (Path(at) / name).relative_to(root).as_posix()
            if path_inside not in ignored:
                yield path_inside
