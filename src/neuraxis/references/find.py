"""Find the places of references in arguments."""

from __future__ import annotations

from typing import cast

from neuraxis.messages import Path
from neuraxis.references.asset_ref import (
    SCHEME,
    AssetRef,
    looks_like_object,
    parse_reference,
)
from neuraxis.specs import Json


def find_places(arguments: Json) -> list[tuple[Path, Json]]:
    """Return every value that may be a reference, not yet parsed.

    Each is a text with `{{` in it, the word PREVIOUS, a text that begins with
    `asset://`, or an object with the keys of a reference.
    """
    places: list[tuple[Path, Json]] = []
    # a stack instead of recursion: a model's arguments may be nested deeply
    stack: list[tuple[Path, Json]] = [((), arguments)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            entries = cast("dict[str, Json]", value)
            if "asset_id" in entries and looks_like_object(entries):
                places.append((path, entries))
                continue
            items = entries.items()
        elif isinstance(value, list):
            items = enumerate(cast("list[Json]", value))
        else:
            items = ((None, value),)
        for key, item in items:
            if isinstance(item, str):
                if "{{" in item or item == "PREVIOUS" or item.startswith(SCHEME):
                    places.append((path if key is None else (*path, key), item))
            elif key is not None and isinstance(item, (dict, list)):
                stack.append(((*path, key), cast("Json", item)))
    return places


def find_asset_refs(arguments: Json) -> tuple[tuple[Path, AssetRef], ...]:
    """Return every reference in object or URL form, with its path."""
    return tuple(
        (path, ref)
        for path, value in find_places(arguments)
        if (ref := parse_reference(value)) is not None
    )
