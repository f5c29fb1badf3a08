"""The common reply read the short way: markers, a JSON list of flat intents, no more.

What is not exactly that is None here and read the long way (`intents_read`), which
gives the same calls for what is; a test holds the two together. Of a native tool call
the arguments are read here, where they are as plain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from neuraxis.messages import Call
from neuraxis.parsing.json_scan import read_flawless, read_plainly
from neuraxis.record import fresh
from neuraxis.specs import Json

_SPACE: Callable[[str, int], re.Match[str]] = cast(
    "Any", re.compile(r"[ \t\n\r]*").match
)
DEEPEST = 100
"""Brackets; the standard library's reader recurses."""
LONGEST = 20_000
"""Characters; a longer reply has time for the long way."""
_OWN = frozenset({"as", "parameters", "arguments", "args", "input", "function", "name"})
"""Keys that may mean something else than a parameter."""


_MORE_THAN_WORDS: Callable[[str], re.Match[str] | None] = cast(
    "Any", re.compile(r"[<{\[`:]|[^\x00-\x7f]").search
)
"""What every frame, value, thought and label of a reply has in it."""


def _is_plain(text: str) -> bool:
    """Whether nothing in it needs a second look.

    That is what a reference may be made of (`asset://`, `asset_id`), our own keys, and
    escapes, which could hide them.
    """
    return (
        text.isascii()
        and "\\" not in text
        and "$" not in text
        and "{{" not in text
        and "asset" not in text
        and "PREVIOUS" not in text
        and text.count("{") + text.count("[") < DEEPEST
    )


def quick_answer(text: str) -> tuple[str, ...] | None:
    """What is said in a reply that is plain words; None: read it the long way."""
    if len(text) > LONGEST or _MORE_THAN_WORDS(text):
        return None
    bare = text.strip()
    return (bare,) if bare else ()


def quick_calls(
    text: str, start: str, end: str, next_id: Callable[[], str]
) -> tuple[Call, ...] | None:
    """The calls of a block that is the whole text, or None: read it the long way.

    Where nothing in it needs a second look, each call says what it was read from.
    """
    if len(text) > LONGEST or not text.startswith(start):
        return None
    body = text[len(start) :].strip()
    if not body.endswith(end) or not body.startswith("["):
        return None
    body = body[: -len(end)].rstrip()
    if (  # as `_is_plain`, which would be one call more
        not body.isascii()
        or "\\" in body
        or "$" in body
        or "{{" in body
        or "asset" in body
        or "PREVIOUS" in body
        or body.count("{") + body.count("[") >= DEEPEST
    ):
        return _look_twice(body, next_id)
    found: list[tuple[str, tuple[dict[str, Json], str]]] = []
    at = 1
    try:
        while body[at - 1] != "]":
            if body[at] != "{":
                at = _SPACE(body, at).end()
            intent, stop = read_plainly(body, at)
            if intent.__class__ is not dict:
                return None
            tool = intent.pop("tool", None)
            if tool.__class__ is not str or not tool[0].isalnum():
                return None
            if not tool[-1].isalnum() or not _OWN.isdisjoint(intent):
                return None
            found.append((tool, (intent, body[at:stop])))
            if body[stop] not in ",]":
                stop = _SPACE(body, stop).end()
            if body[stop] not in ",]":
                return None
            at = stop + 1
    except (ValueError, StopIteration, RecursionError, IndexError):
        return _look_twice(body, next_id)
    if at != len(body):
        return None
    calls: list[Call] = []
    for tool, read in found:
        Call.__init__(
            call := fresh(Call),
            id=next_id(),
            plugin=None,
            command=tool,
            arguments=read[0],
            read=read,
        )
        calls.append(call)
    return tuple(calls)


def _look_twice(body: str, next_id: Callable[[], str]) -> tuple[Call, ...] | None:
    """The calls of a list that may hold references, escapes or whole floats."""
    read = read_flawless(body, 0)
    if read is None or read[1] != len(body):
        return None
    found: list[tuple[str, dict[str, Json]]] = []
    for item in cast("list[Json]", read[0]):
        if type(item) is not dict:
            return None
        intent = cast("dict[str, Json]", item)
        tool = intent.pop("tool", None)
        if type(tool) is not str or not tool or not tool[0].isalnum():
            return None
        if not tool[-1].isalnum() or not _OWN.isdisjoint(intent):
            return None
        if any(key.startswith("$") for key in intent):
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


def plain_arguments(text: str) -> dict[str, Json] | None:
    """The flawless object that is the whole text and needs no second look, or None."""
    if len(text) > LONGEST or not text.startswith("{") or not _is_plain(text):
        return None
    try:
        read, stop = read_plainly(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    return read if stop == len(text) else None
