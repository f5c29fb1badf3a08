"""Names of files in one workspace flow in, the same files' names in another flow out.

A session inside of a command may work in a folder of its own: in that of the session
around it, above it, or elsewhere (rule D12).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from neuraxis.specs import Json

Way = tuple[str, str]
"""From one folder to the other."""
SAME: Way = ("", "")
_NAMED = ("wrote", "files")
"""Fields of events that name files of the workspace."""


def way(here: Path, there: Path) -> Way:
    """From one workspace to the other."""
    if here == there:
        return SAME
    ends = os.path.realpath(here), os.path.realpath(there)
    return SAME if ends[0] == ends[1] else ends


def moved(name: str, by: Way) -> str | None:
    """The name there of a file here; None: it is not in that folder."""
    if by is SAME:
        return name
    here, there = by
    try:
        found = os.path.relpath(os.path.join(here, name), there)
    except ValueError:  # on another drive
        return None
    found = found.replace(os.sep, "/")
    return None if found.partition("/")[0] == ".." else found


def moved_all(names: Iterable[str], by: Way) -> list[str]:
    """Those of the files that are in that folder."""
    found = (moved(name, by) for name in names)
    return [name for name in found if name is not None]


def event_there(event: Mapping[str, Json], by: Way) -> Mapping[str, Json]:
    """An event as JSON with its files named as there."""
    if by is SAME:
        return event
    if event["type"] == "inside":
        inner = cast("Mapping[str, Json]", event["event"])
        return {**event, "event": dict(event_there(inner, by))}
    names = {key: event[key] for key in _NAMED if event.get(key)}
    return {
        **event,
        **{
            key: list[Json](moved_all(cast("list[str]", found), by))
            for key, found in names.items()
        },
    }
