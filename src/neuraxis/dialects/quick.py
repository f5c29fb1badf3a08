"""The common reply read the short way: markers, a JSON list of flat intents, no more.

What is not exactly that is None here and read the long way (`intents_read`), which
gives the same calls for what is; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from neuraxis.dialects.json_text import read_flawless, read_quickly
from neuraxis.messages import Call
from neuraxis.specs import Json

LONGEST = 20_000
"""Characters; a longer reply has time for the long way."""
_OWN = frozenset({"as", "parameters", "arguments", "args", "input", "function", "name"})
"""Keys that may mean something else than a parameter."""


def quick_calls(
    text: str, start: str, end: str, next_id: Callable[[], str]
) -> tuple[Call, ...] | None:
    """The calls of a block that is the whole text, or None: read it the long way."""
    if len(text) > LONGEST or not text.startswith(start):
        return None
    body = text[len(start) :].strip()
    if not body.endswith(end) or not body.startswith("["):
        return None
    if body.isascii() and "\\u" not in body and body.count("{") + body.count("[") < 100:
        try:
            items, stop = read_quickly(body, 0)
        except (ValueError, RecursionError):
            return None
    else:
        read = read_flawless(body, 0)
        if read is None:
            return None
        items, stop = read
    if body[stop:].strip() != end:
        return None
    found: list[tuple[str, dict[str, Json]]] = []
    for item in cast("list[Json]", items):
        if type(item) is not dict:
            return None
        intent = cast("dict[str, Json]", item)
        tool = intent.pop("tool", None)
        if type(tool) is not str or not tool or not tool[0].isalnum():
            return None
        if not tool[-1].isalnum() or not _OWN.isdisjoint(intent):
            return None
        for key in intent:
            if key.startswith("$"):
                return None
        found.append((tool, intent))
    if not found:
        return None
    return tuple(
        [
            Call(id=next_id(), plugin=None, command=tool, arguments=intent)
            for tool, intent in found
        ]
    )
