"""Optional parts of a request, and which of them a refusal names.

Which options a model accepts is unknown before the first request. A refused request is
repeated without the part that the refusal names, once for each part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import msgspec

from neuraxis.models.http.answers import is_about_size
from neuraxis.models.http.transport import Failure
from neuraxis.specs import Json

Body = Mapping[str, Json]


class OptionalPart(msgspec.Struct, frozen=True, kw_only=True):
    """Optional part of a request."""

    name: str
    """Its name in notes."""
    words: re.Pattern[str]
    """Pattern of refusals that mean it."""
    remove: Callable[[Body], dict[str, Json]]


def refused_option(
    parts: Iterable[OptionalPart], body: Body, failure: Failure, _known: bool = False
) -> str:
    """Return the part that a refusal is about; empty: none."""
    message = failure.said
    if failure.status not in (400, 422) or failure.again or is_about_size(message):
        return ""
    for part in parts:
        # Removing an absent part changes nothing, and would be retried for ever.
        if part.words.search(message) and part.remove(body) != body:
            return part.name
    return ""


def without_option(
    parts: Iterable[OptionalPart], body: Body, name: str
) -> dict[str, Json]:
    """Return the body without the part of that name."""
    for part in parts:
        if part.name == name:
            return part.remove(body)
    return dict(body)


def at_path(*path: str) -> Callable[[Body], dict[str, Json]]:
    """Return a function that removes a member from a body."""

    def remove(body: Body) -> dict[str, Json]:
        changed = dict(body)
        if len(path) == 1:
            changed.pop(path[0], None)
        elif isinstance(inner := changed.get(path[0]), dict):
            shortened = at_path(*path[1:])(cast("dict[str, Json]", inner))
            changed[path[0]] = shortened
            if not shortened:
                del changed[path[0]]
        return changed

    return remove


def option(name: str, *path: str, words: str = "") -> OptionalPart:
    """Return one member of the body as a part; `words` name it."""
    path = path or (name,)
    pattern = re.compile(words or rf"\b{re.escape(name)}\b", re.IGNORECASE)
    return OptionalPart(name=name, words=pattern, remove=at_path(*path))
