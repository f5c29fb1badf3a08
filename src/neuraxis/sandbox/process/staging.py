"""Copy the workspace for one run and bring the changes back.

If the runtime is root, scripts run as an ordinary user on such a copy: nothing in the
real workspace changes owner. Only regular files and folders come back, read and written
without following a link; new ones belong to the workspace's owner. A copy also protects
`GUARDED` names if a sandbox cannot make them read-only.
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
    COPIED_BYTES,
    FOLDER,
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
        limits: bound what is brought back.
        left_out: workspace paths that are not copied, besides `GUARDED`.
        choose: chooses the changed files that are brought back; None: all.
        not_kept: receives what could not be brought back, and why.

    Raises:
        CannotStart: the workspace is too large to copy, or cannot be read.
    """
    import fcntl

    _clear()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, FOLDER)
    fcntl.flock(lock, fcntl.LOCK_SH)
    owner = -1 if uid is None else uid
    state = Copy(
        uid=owner,
        left_out=frozenset({*GUARDED, *left_out}),
        bytes_left=COPIED_BYTES,
        files_left=MOST_FILES,
    )
    not_kept = [] if not_kept is None else not_kept
    try:
        os.chown(folder, -1, owner)
        folder.chmod(0o710)
        copy = folder / "workspace"
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
        # the script's files may be anything; they must not end the call
        except (OSError, ValueError, RecursionError) as error:
            _log.exception("changes of a script were not brought back")
            not_kept.append(f"what else it changed: {error}")
        if not_kept:
            _log.warning("not brought back from a script: %s", listed(not_kept, 3))
    finally:
        _discard(folder)
        os.close(lock)


def _clear() -> None:
    """Remove copies whose process was killed; copies in use are locked."""
    import fcntl

    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in [one for one in entries if one.name.startswith(_PREFIX)]:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if (
                    status.st_uid != os.geteuid()
                    or time.time() - status.st_mtime < STALE
                ):
                    continue
                folder = os.open(entry.path, FOLDER)
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _discard(Path(entry.path))
                finally:
                    os.close(folder)


def _discard(outer: Path) -> None:
    """Remove a copy; a failure does not fail the run."""
    if reason := remove_tree(outer):
        _log.warning(
            "a copy of a workspace could not be removed: %s: %s", outer, reason
        )
