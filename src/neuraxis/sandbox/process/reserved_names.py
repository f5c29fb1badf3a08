"""Protect reserved top-level names of a workspace (`job.GUARDED`).

Programs outside the sandbox obey what stands in them: git runs hooks, this package
reads its settings. Those that are there are kept from the script by its sandbox or by
a copy; those that are not are removed here if the script made them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from neuraxis.sandbox.files.removal import remove_tree
from neuraxis.sandbox.process.job import GUARDED, Outcome


def present(workspace: Path) -> tuple[str, ...]:
    """Return the reserved names that exist."""
    return tuple(name for name in GUARDED if os.path.lexists(workspace / name))


def absent(workspace: Path) -> tuple[str, ...]:
    """Return the reserved names that do not exist."""
    return tuple(name for name in GUARDED if not os.path.lexists(workspace / name))


def removed(workspace: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Remove those of the names that exist now; return the removed names."""
    found: list[str] = []
    for name in names:
        place = workspace / name
        if os.path.lexists(place):
            found.append(name)
            with suppress(OSError):
                if place.is_dir() and not place.is_symlink():
                    remove_tree(place)
                else:
                    place.unlink()
    return tuple(found)


def with_note(outcome: Outcome, names: Sequence[str]) -> Outcome:
    """Return the outcome with a note about the removed names."""
    if not names:
        return outcome
    reason = (
        f"It made {', '.join(names)} in the workspace, which scripts may not; "
        "that was removed."
    )
    return replace(outcome, ok=False, reason=outcome.reason or reason)
