"""Copy the workspace for one run and bring the changes back.

Where the runtime is root, scripts run as an ordinary user on such a copy: nothing of
the real workspace changes owner. Only regular files and folders come back, read and
written without following a link; new ones belong to the workspace's owner. A copy
also keeps what is in `GUARDED` from a script where a sandbox cannot make it read only.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from neuraxis.formatting import listed
from neuraxis.sandbox.files.removal import remove_tree
from neuraxis.sandbox.process.copy_in import (
    FOLDER,
    MOST_BYTES,
    MOST_FILES,
    Copy,
    copy_in,
)
from neuraxis.sandbox.process.copy_out import Choose, bring_back
from neuraxis.sandbox.process.job import GUARDED, CannotStart, Limits

_log = logging.getLogger(__name__)

STALE = 60
"""Seconds after which an unlocked copy counts as abandoned."""
_PREFIX = "neuraxis-run-"


@contextmanager
def staged(
    workspace: Path,
    uid: int | None,
    limits: Limits,
    left_out: Collection[str] = (),
    choose: Choose | None = None,
    not_kept: list[str] | None = None,
) -> Generator[Path]:
    """Provide a copy during the block; bring changes back afterwards.

    Args:
        workspace: the real folder.
        uid: the owner of the copy; None: the user this process has.
        limits: no more is brought back than they allow.
        left_out: paths in the workspace that stay out of it, beside `GUARDED`.
        choose: chooses the changed files that are brought back; None: all.
        not_kept: filled with what could not be brought back, and why.

    Raises:
        CannotStart: the workspace is too large to copy, or cannot be read.
    """
    import fcntl

    _clear()
    outer = Path(tempfile.mkdtemp(prefix=_PREFIX))
    held = os.open(outer, FOLDER)
    fcntl.flock(held, fcntl.LOCK_SH)
    owner = -1 if uid is None else uid
    state = Copy(
        uid=owner,
        left_out=frozenset({*GUARDED, *left_out}),
        bytes_left=MOST_BYTES,
        files_left=MOST_FILES,
    )
    not_kept = [] if not_kept is None else not_kept
    try:
        os.chown(outer, -1, owner)
        outer.chmod(0o710)
        copy = outer / "workspace"
        copy.mkdir(0o700)
        try:
            copy_in(os.open(workspace, FOLDER), os.open(copy, FOLDER), "", state)
        except OSError as error:
            raise CannotStart(f"the workspace cannot be copied ({error})") from error
        os.chown(copy, owner, owner)
        yield copy
        state.bytes_left, state.files_left = limits.disk, limits.files
        try:
            bring_back(copy, workspace, state, not_kept, choose)
        # what the script wrote and printed may be anything; it must not end the call
        except (OSError, ValueError, RecursionError) as error:
            _log.exception("changes of a script were not brought back")
            not_kept.append(f"what else it changed: {error}")
        if not_kept:
            _log.warning("not brought back from a script: %s", listed(not_kept, 3))
    finally:
        _discard(outer)
        os.close(held)


def _clear() -> None:
    """Remove copies whose process was killed; copies in use are locked."""
    import fcntl

    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in [one for one in entries if one.name.startswith(_PREFIX)]:
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if about.st_uid != os.geteuid() or time.time() - about.st_mtime < STALE:
                    continue
                folder = os.open(entry.path, FOLDER)
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _discard(Path(entry.path))
                finally:
                    os.close(folder)


def _discard(outer: Path) -> None:
    """Remove a copy; what cannot be removed fails no run."""
    if why := remove_tree(outer):
        _log.warning("a copy of a workspace could not be removed: %s: %s", outer, why)
