"""Collect the problems of one manifest, each with its line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from msgspec import Struct

from neuraxis.errors import ManifestProblem
from neuraxis.formatting import nearest, yaml_type
from neuraxis.messages import Path as Place
from neuraxis.parsing.yaml import Tree
from neuraxis.specs import Json


class Notes(Struct, kw_only=True):
    """The problems of one file while it is read."""

    tree: Tree
    strict: bool = False
    """True: a mistake in one command refuses the whole file."""
    found: list[ManifestProblem] = []

    def error(self, place: Place, message: str, severity: str = "error") -> None:
        """Record an error at a place of the tree."""
        self.found.append(
            ManifestProblem(
                file=self.tree.file,
                line=self.tree.line(place),
                message=message,
                severity=severity,
            )
        )

    def warn(self, place: Place, message: str) -> None:
        """Record a warning; the file still loads."""
        self.error(place, message, "warning")

    def missing(self, root: Mapping[str, Json], key: str, hint: str) -> None:
        """Record that the root has no such key, or nothing in it."""
        what, place = ("empty", (key,)) if key in root else ("missing", ())
        self.error(place, f"{key} is {what}; write {key}: {hint}")

    def mapping(self, value: Json, place: Place, what: str) -> dict[str, Json]:
        """Return the mapping expected at a place; empty for null."""
        if isinstance(value, dict):
            return cast("dict[str, Json]", value)
        if value is not None:
            self.error(place, f"{what}: expected a mapping, got {yaml_type(value)}")
        return {}

    def text(self, value: Json, place: Place) -> str | None:
        """Return the text expected at a place, trimmed; None for null."""
        if value is None:
            return None
        if not isinstance(value, str):
            self.error(place, f"{place[-1]}: expected text, got {yaml_type(value)}")
            return None
        return value.strip() or None

    def unknown(
        self,
        keys: Collection[str],
        allowed: Sequence[str],
        place: Place,
        required: Sequence[str] = (),
    ) -> None:
        """Warn about unknown keys, which may be misspelt required ones."""
        missing = [name for name in required if name not in keys]
        for key in keys:
            if key not in allowed:
                close = [name for name in missing if key in name]
                close = close or nearest(key, allowed, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                self.warn((*place, key), f"unknown key {key!r} is not used{hint}")
