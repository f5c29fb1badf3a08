"""File changes of one call: permitted, reported, stored.

A command changes files through its `CallFiles`: it asks the history whether the change
is permitted, reports it and stores the old version.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from neuraxis import call_errors
from neuraxis.sandbox.files import operations, workspace
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.sandbox.files.lost import lost_lines, text_of
from neuraxis.sandbox.files.paths import FileRefused, parts_of

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
    """Asks a person about files that a script `changed`, `deleted` or `made`, with the
    lines that they lose; returns why not, or nothing for a yes."""
    words: Sequence[str] = ()
    """The user's, of this request: what they name may be changed in part."""
    free: bool = False
    """The policy allows the call whatever it does."""
    note: Callable[[str, bool], None] = lambda path, there: None
    """Told of each file that a script made or changed; False: it deleted it."""
    holds: Callable[[str], bool] | None = None
    """Whether a new file of this name is asked about; None: no new file is."""
    moved: list[str] = field(default_factory=list[str])

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
            own, part = history.is_own(shown), use == "change"
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
            Their paths; for the others a person did not agree, and the model is told.
        """
        root, asked = self.history.workspace, dict[str, str]()
        for path, digest in changed:
            found = operations.look(root, path)
            is_file = found is not None and stat.S_ISREG(found.st_mode)
            # a link of the user's has no version that could be stored
            if (
                (found is not None and not is_file)
                or self.history.risk(path, "write" if digest else "remove")
                or (self.holds and (found is not None or self.holds(path)))
            ):
                done = "made" if found is None else "changed" if digest else "deleted"
                asked[path] = done
        held = {
            done: [path for path, what in asked.items() if what == done]
            for done in dict.fromkeys(asked.values())
        }
        no = "" if not asked or self.free else self.ask(held, self._lost(held, copy))
        back: set[str] = set()
        for path, digest in changed:
            found = operations.look(root, path)
            if path in asked and not (
                not no and (found is None or stat.S_ISREG(found.st_mode))
            ):
                continue
            try:
                stored = self.history.change(
                    self.call_id, path, "script", digest, whole=True
                )
            except FileRefused as error:
                self.warn(str(error))
                continue
            back.add(path)
            self.note(path, digest != "")
            self.tell(path, stored=stored and path in asked)
        if lost := [path for path in asked if path not in back]:
            why = no or "only regular files are kept"
            self.warn(call_errors.script_changes_refused(lost, why, self.target))
        return frozenset(back)

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
