"""Tolerant access to parts of a document that may be anything.

A field of the wrong type counts as absent, and the caller reports it if that loses
something.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import cast

import msgspec

from neuraxis.bridges.untrusted_text import visible
from neuraxis.errors import ManifestProblem, NeuraxisError, warnings_in
from neuraxis.parsing.json_access import as_list, as_map
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


def as_written(value: Json) -> str:
    """Return a text, number or boolean as it stands, else ""."""
    if isinstance(value, bool | int | float):
        return json.dumps(value)  # YAML needs no quotes: `name: 1`
    return value if isinstance(value, str) else ""


def as_text(value: Json) -> str:
    """Return a value's visible text; empty if it has none."""
    return visible(as_written(value)).strip()


def as_number(value: Json) -> int | float | None:
    """Return a finite number, also if it is written as text."""
    if isinstance(value, str):
        try:
            digits = value.removeprefix("-").removeprefix("+")
            is_whole = digits.isdecimal() and len(digits) < 30
            value = int(value) if is_whole else float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -math.inf < value < math.inf else None


def as_typed(value: Json, schema: Mapping[str, Json]) -> Json:
    """Return an example, default or member as its schema's type writes it.

    In YAML, `02139` may be meant as a text and `0.50` as a number: the type decides.
    """
    if not schema:
        return value
    if isinstance(value, list):
        items = as_map(schema.get("items"))
        return [as_typed(item, items) for item in cast("list[Json]", value)]
    if isinstance(value, Mapping):
        fields = as_map(schema.get("properties"))
        return {
            key: as_typed(part, as_map(fields.get(key)))
            for key, part in cast("Node", value).items()
        }
    type_ = schema.get("type")
    kinds = {str(kind) for kind in as_list(type_) or [type_]} - {"null"}
    if value is None or not kinds:
        return value
    meant: Json = None
    if kinds == {"string"}:
        meant = as_written(value)
    elif kinds <= {"integer", "number"}:
        meant = as_number(value)
    elif kinds == {"boolean"}:
        meant = as_flag(value)
    return value if meant is None else meant


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
    found: dict[str, None] = {}
    """The notes as keys, which keep their order."""

    def add(self, text: str) -> None:
        """Add a note, once."""
        self.found[text] = None

    def problems(self) -> tuple[ManifestProblem, ...]:
        """Return the notes as warnings of a plugin."""
        return warnings_in(self.file, [*self.found])
