"""Strict JSON first: read a reply that follows the dialect exactly.

Any other reply is None here and read leniently by the dialect's decoder, which returns
the same calls for well-formed ones. A call takes a quarter of the lenient reader's
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from neuraxis.messages import Call
from neuraxis.parsing.flawless_json import read_flawless
from neuraxis.specs import Json

_OWN = frozenset({"as", "parameters", "arguments", "args", "input", "function", "name"})
"""Keys that may mean something else than a parameter."""

_MORE_THAN_WORDS = re.compile(r"[<{\[`:]|\w\(|\bto=|[^\x00-\x7f]")
"""Characters of which every frame, value, call, thought and label has one."""

LONGEST = 20_000
"""Maximum characters; longer replies are read leniently."""


def read_answer(text: str) -> tuple[str, ...] | None:
    """Return a reply of plain words; None: read it leniently."""
    if len(text) > LONGEST or _MORE_THAN_WORDS.search(text):
        return None
    bare = text.strip()
    return (bare,) if bare else ()


def read_calls(
    text: str, start: str, end: str, next_id: Callable[[], str]
) -> tuple[Call, ...] | None:
    """Return the calls of a text that is one block, or None."""
    if len(text) > LONGEST or not text.startswith(start):
        return None
    body = text[len(start) :].strip()
    if not body.endswith(end) or not body.startswith("["):
        return None
    body = body[: -len(end)].rstrip()
    read = read_flawless(body)
    if read is None or read[1] != len(body):
        return None
    intents: list[tuple[str, dict[str, Json]]] = []
    for item in cast("list[Json]", read[0]):
        if type(item) is not dict:
            return None
        intent = cast("dict[str, Json]", item)
        tool = intent.pop("tool", None)
        if type(tool) is not str or not tool or not tool[0].isalnum():
            return None
        if not tool[-1].isalnum() or not _OWN.isdisjoint(intent):
            return None
        if [key for key in intent if key.startswith("$")]:
            return None
        intents.append((tool, intent))
    calls = [
        Call(id=next_id(), plugin=None, command=tool, arguments=intent)
        for tool, intent in intents
    ]
    return tuple(calls) or None
