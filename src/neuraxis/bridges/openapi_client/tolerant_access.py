"""Tolerant access to parts of a document that may be anything.

A field of the wrong type counts as absent, and the caller reports it if that loses
something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import msgspec

from neuraxis.bridges.untrusted_text import visible
from neuraxis.errors import ManifestProblem, NeuraxisError, warnings_in
from neuraxis.specs import Json

Node = Mapping[str, Json]
"""Object of a document."""


class CannotImport(NeuraxisError):
    """Error: a part of a document cannot be used; says why."""


def as_flag(value: Json) -> bool | None:
    """Return a boolean, also if it is written as text."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def as_text(value: Json) -> str:
    """Return a value's visible text; empty if it is not a text."""
    return visible(value).strip() if isinstance(value, str) else ""


def shortened(text: str, most: int = 300) -> str:
    """Return a text on one line, cut at `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def maps(values: Iterable[Json]) -> list[Node]:
    """Return the values that are objects."""
    return [cast("Node", value) for value in values if isinstance(value, Mapping)]


class Notes(msgspec.Struct, kw_only=True):
    """Notes on what was skipped or changed while reading a document."""

    file: str
    found: list[str] = []

    def add(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.found:
            self.found.append(text)

    def problems(self) -> tuple[ManifestProblem, ...]:
        """Return the notes as warnings of a plugin."""
        return warnings_in(self.file, self.found)
