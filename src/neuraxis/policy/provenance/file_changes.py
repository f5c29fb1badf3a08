"""Detect the files that a script wrote in a workspace."""

from __future__ import annotations

import os
from pathlib import Path as File

_FILES = 20_000
Snapshot = dict[str, tuple[int, int]]
"""Files of a workspace with the time of their last change and their size."""


def snapshot(workspace: File) -> Snapshot:
    """Return every file of the workspace with its last change."""
    found: Snapshot = {}
    for folder, _, names in os.walk(workspace):
        for name in names:
            if len(found) >= _FILES:
                return found
            full = os.path.join(folder, name)
            try:
                state = os.lstat(full)
            except OSError:
                continue
            key = os.path.relpath(full, workspace).replace(os.sep, "/")
            found[key] = (state.st_ctime_ns, state.st_size)
    return found


def changed(workspace: File, before: Snapshot) -> tuple[str, ...]:
    """Files that are new or other than they were."""
    after = snapshot(workspace)
    return tuple(name for name, state in after.items() if before.get(name) != state)
