"""What the planner takes as said: whole words, and dates as people say them.

This is no part of the policy: it only decides what the planner can write in its first
reply, as a model would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from neuraxis.policy.provenance.words import leaves

Json = Any
LONGEST = 2_000
_MOST = 2_000_000
_SPACE = re.compile(r"\s+")
_DATE = re.compile(r"\d{4}-(\d\d)-(\d\d)(?:[ t](\d\d:\d\d)(?::\d\d)?)?$")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_SCHEME = re.compile(r"^(?:https?://)", re.IGNORECASE)


class Wording:
    """Texts to look values up in; read when they are first needed.

    Args:
        trusted: what the user and trusted commands said.
        seen: what others said.
    """

    def __init__(self, trusted: Iterable[Json], seen: Iterable[Json]) -> None:
        self._given = (list(trusted), list(seen))
        self._texts: list[str | None] = [None, None]

    def trusted(self, value: Json) -> bool:
        """Whether the value says nothing, or stands in the trusted texts."""
        if value is None or isinstance(value, bool) or value == "":
            return True
        return self._stands(value, 0)

    def _text(self, which: int) -> str:
        text = self._texts[which]
        if text is None:
            text = self._texts[which] = _text(self._given[which])
        return text

    def _stands(self, value: Json, which: int) -> bool:
        if isinstance(value, str) and len(value) > LONGEST:
            return False
        text = self._text(which)
        if any(_within(form, text) for form in _forms(value)):
            return True
        return isinstance(value, str) and _is_said_date(fold(value), text)


def _text(values: Iterable[Json]) -> str:
    parts: list[str] = []
    size = 0
    for value in values:
        for _, leaf in leaves(value):
            if isinstance(leaf, bool) or leaf is None:
                continue
            part = fold(str(leaf))
            size += len(part)
            if size > _MOST:
                break
            parts.append(part)
    return "\n".join(parts)


def fold(text: str) -> str:
    """The text without what nobody means: case and the amount of space."""
    return _SPACE.sub(" ", text).strip().casefold()


def _forms(value: Json) -> Iterator[str]:
    """The ways in which a value may have been said."""
    if isinstance(value, float) and value.is_integer():
        yield str(int(value))
    text = fold(str(value))
    yield text
    if isinstance(value, str):
        bare = _SCHEME.sub("", text).rstrip("/").removeprefix("./")
        if bare and bare != text:
            yield bare
    elif isinstance(value, float):
        yield f"{value:.2f}"


def _is_said_date(text: str, said: str) -> bool:
    """Check whether a date (`2024-05-01`: May 1st) and time are said."""
    found = _DATE.match(text)
    if found is None or not 1 <= int(found[1]) <= 12:
        return False
    month, day = _MONTHS[int(found[1]) - 1], int(found[2])
    suffix = "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    dates = [
        form
        for number in (f"{day}", f"{day}{suffix}")
        for form in (f"{month} {number}", f"{number} {month}", f"{number} of {month}")
    ]
    time = found[3] or "00:00"
    if time != "00:00" and not _within(time, said):
        return False
    return any(_within(form, said) for form in (*dates, text[:10]))


def _within(needle: str, text: str) -> bool:
    """Check whether the needle occurs in the text at word boundaries."""
    if not needle:
        return False
    start = text.find(needle)
    while start >= 0:
        end = start + len(needle)
        before = text[start - 1] if start else " "
        after = text[end] if end < len(text) else " "
        if not (
            _joins(before, needle[0])
            or _joins(after, needle[-1])
            or (needle.isdigit() and _is_day(text, start, end))
        ):
            return True
        start = text.find(needle, start + 1)
    return False


def _is_day(text: str, start: int, end: int) -> bool:
    """Check whether a number is only the day of a month."""
    before = text[max(0, start - 12) : start].split()
    after = text[end : end + 12].split()
    return (before[-1:] or [""])[0] in _MONTHS or (after[:1] or [""])[0] in _MONTHS


def _joins(outside: str, inside: str) -> bool:
    """Whether two characters are of one word."""
    return (outside.isalnum() or outside == "_") and (inside.isalnum() or inside == "_")
