"""Labels: the origins that a value was made from.

The journal stores a label as JSON; the user sees it in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, cast

from msgspec import Struct

from neuraxis.messages import Path
from neuraxis.specs import Json


class Origin(Struct, frozen=True, kw_only=True):
    """One source: the command `source`.

    `open_world`: strangers may have written what it gave. `private`: it gave what is
    the user's own (files, mail), which is not for strangers.
    """

    source: str
    open_world: bool = False
    private: bool = False


Label = frozenset[Origin]
OWN: Label = frozenset()
"""The label of the user's words, and of what the model wrote before it read others'."""


def is_foreign(label: Label) -> bool:
    """Whether strangers had a part in it."""
    for origin in label:  # noqa: SIM110 - `any` is five times slower for one or two
        if origin.open_world:
            return True
    return False


def is_private(label: Label) -> bool:
    """Whether something of the user's own is in it."""
    return any(origin.private for origin in label)


How = Literal["literal", "reference", "text"]


class Traced(Struct, frozen=True, kw_only=True):
    """Provenance of one argument value that other sources contributed to.

    `how`: written by the model itself, a whole reference, or a text with references
    in it. `quoted`: it stands word for word in something the model was shown.
    """

    path: Path
    value: Json
    label: Label
    how: How = "literal"
    quoted: bool = False


def to_tell(label: Label) -> tuple[Json, ...]:
    """A label as JSON, for the journal."""
    return tuple(
        {
            "source": origin.source,
            "open_world": origin.open_world,
            "private": origin.private,
        }
        for origin in sorted(label, key=_in_order)
    )


def _in_order(origin: Origin) -> tuple[str, bool, bool]:
    return origin.source, origin.open_world, origin.private


def from_told(told: Iterable[Json]) -> Label:
    """The label that `to_tell` wrote; what cannot be read counts as foreign."""
    found: set[Origin] = set()
    for item in told:
        entry = cast("dict[str, Json]", item) if isinstance(item, dict) else {}
        found.add(
            Origin(
                source=str(entry.get("source", "unknown")),
                open_world=entry.get("open_world") is not False,
                private=entry.get("private") is True,
            )
        )
    return frozenset(found)


def describe(label: Label) -> str:
    """A label in words, for a person: `fetch_url.fetch, web_search.search`."""
    named = [
        origin.source
        for origin in sorted(label, key=lambda origin: origin.source)
        if origin.open_world or not is_foreign(label)
    ]
    more = len(named) - 3
    return ", ".join(named[:3]) + (f" and {more} more" if more > 0 else "")


def describe_traced(item: Traced) -> str:
    """Where one value came from, in words."""
    source = describe(item.label)
    if item.how == "literal":
        return f"written by the model after it read {source}"
    return f"made of {source}" if item.how == "text" else f"from {source}"
