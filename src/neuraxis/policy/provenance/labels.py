"""Labels: the origins that a value was made from.

The journal stores a label as JSON; the user sees it in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, cast

import msgspec
from msgspec import Struct

from neuraxis.formatting import listed
from neuraxis.messages import Path
from neuraxis.specs import Json


class Origin(Struct, frozen=True, kw_only=True, order=True):
    """One source of values, such as the command `source`.

    `open_world`: it is outside: others may have written its content.
    `private`: its content is not declared public.
    """

    source: str
    open_world: bool = False
    private: bool = False


Label = frozenset[Origin]
OWN: Label = frozenset()
"""Label of the user's words, and of what the model wrote before it read others'."""
FILES: Label = frozenset((Origin(source="files", open_world=True, private=True),))
"""Label of files that the runtime did not write for the user."""

ATTACHED: Label = frozenset(
    (Origin(source="attachments", open_world=True, private=True),)
)
"""Label of attached objects that others may have written."""

PROGRAM: Label = frozenset((Origin(source="the program", private=True),))
"""Label of an object that the program attached as its own."""


def is_outside(label: Label) -> bool:
    """Whether others may have written some of it (untrusted)."""
    return bool(label) and any(origin.open_world for origin in label)


def is_private(label: Label) -> bool:
    """Whether some of it is not public."""
    return bool(label) and any(origin.private for origin in label)


How = Literal["literal", "reference", "text", "file", "near", "loop"]


class Traced(Struct, frozen=True, kw_only=True):
    """Provenance of one argument value that other sources contributed to.

    `how`: written by the model itself, a whole reference, a text with references in
    it, the content of the file that it names, or names that are nearly so; `loop`: not
    a value, but the list that decides how often the call is made.
    """

    path: Path
    value: Json
    label: Label
    how: How = "literal"


@lru_cache(1_000)
def to_tell(label: Label) -> tuple[Json, ...]:
    """Return a label as JSON, for the journal."""
    return tuple(msgspec.to_builtins(origin) for origin in sorted(label))


def from_told(origins: Iterable[Json]) -> Label:
    """Return the label that `to_tell` wrote; unreadable origins count as outside."""
    entries = [
        cast("dict[str, Json]", e) if isinstance(e, dict) else {} for e in origins
    ]
    return frozenset(
        Origin(
            source=str(entry.get("source", "unknown")),
            open_world=entry.get("open_world") is not False,
            private=entry.get("private") is not False,
        )
        for entry in entries
    )


def describe(label: Label) -> str:
    """Describe a label to the user: `files and answers of fetch_url.fetch`."""
    return _named(o for o in sorted(label) if o.open_world or not is_outside(label))


def private_in(label: Label) -> str:
    """Name the private sources of a label to the user."""
    return _named(origin for origin in sorted(label) if origin.private)


def _named(origins: Iterable[Origin]) -> str:
    named = list(dict.fromkeys(o.source for o in origins))
    commands = [source for source in named if "." in source]
    parts = [source for source in named if "." not in source]
    if commands:
        parts.append(f"answers of {listed(commands, 3)}")
    return " and ".join(parts)


def describe_traced(item: Traced) -> str:
    """Describe the origin of one value to the user."""
    if item.how == "file" and item.label == FILES:
        return "a file of the user's"
    return f"{_HOW[item.how]} {describe(item.label)}"


_HOW = {
    "literal": "written by the model after it read",
    "reference": "from",
    "text": "made of",
    "file": "the content of this file is from",
    "near": "there is no file of that name, but a similar one among",
}
