"""Protect reserved top-level names of a workspace (`job.GUARDED`).

Programs outside the sandbox obey their content: git runs hooks, this package reads its
settings. Existing ones are protected by the sandbox or by a copy; missing ones are
removed here if the script made them.
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
    """Remove those names that exist now, and return them."""
    names_: list[str] = []
    for name in names:
        place = workspace / name
        if os.path.lexists(place):
            names_.append(name)
            with suppress(OSError):
                if place.is_dir() and not place.is_symlink():
                    remove_tree(place)
                else:
                    place.unlink()
    return tuple(names_)


def with_note(outcome: Outcome, names: Sequence[str]) -> Outcome:
    """Return the outcome with a note about the removed names."""
    if not names:
        return outcome
    reason = (
        f"It made {', '.join(names)} in the workspace, which scripts may not; "
        "that was removed."
    )
    return replace(outcome, ok=False, reason=outcome.reason or reason)
