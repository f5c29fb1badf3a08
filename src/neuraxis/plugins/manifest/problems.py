"""The mistakes of one manifest while it is read, each with its line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from msgspec import Struct, field

from neuraxis.errors import ManifestProblem
from neuraxis.formatting import nearest, type_name
from neuraxis.messages import Path as Place
from neuraxis.parsing.yaml import Tree
from neuraxis.specs import Json


class Notes(Struct, kw_only=True):
    """The problems of one file while it is read."""

    tree: Tree
    found: list[ManifestProblem] = field(default_factory=list[ManifestProblem])

    def error(self, place: Place, message: str, severity: str = "error") -> None:
        """Note what is wrong at a place of the tree."""
        self.found.append(
            ManifestProblem(
                file=self.tree.file,
                line=self.tree.line(place),
                message=message,
                severity=severity,
            )
        )

    def warn(self, place: Place, message: str) -> None:
        """Note what is doubtful; the file is loaded all the same."""
        self.error(place, message, "warning")

    def mapping(self, value: Json, place: Place, what: str) -> dict[str, Json]:
        """The mapping that should stand there; empty for null."""
        if isinstance(value, dict):
            return cast("dict[str, Json]", value)
        if value is not None:
            self.error(place, f"{what}: expected a mapping, got {type_name(value)}")
        return {}

    def text(self, value: Json, place: Place) -> str | None:
        """The text that should stand there, trimmed; None for null and blank."""
        if value is None:
            return None
        if not isinstance(value, str):
            self.error(place, f"{place[-1]}: expected text, got {type_name(value)}")
            return None
        return value.strip() or None

    def unknown(self, given: Iterable[str], known: Iterable[str], place: Place) -> None:
        """Warn of keys that nothing reads."""
        names = list(known)
        for key in given:
            if key not in names:
                close = nearest(key, names, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                self.warn((*place, key), f"unknown key {key!r} is not used{hint}")
