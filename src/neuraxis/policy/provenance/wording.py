"""Check whether a value occurs in texts, as whole words.

A model that has read untrusted text may still use the user's own words. A value
counts as the user's where it occurs in them completely, at word boundaries: `page.md`
of "write it to page.md", `Ada` of "mail Ada", but not `da`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, cast

from neuraxis.messages import Path
from neuraxis.specs import Json

LONGEST = 2_000
"""A longer text is never looked up: nobody says one by chance."""
_MOST = 2_000_000
_RUN = 4
_QUOTES = ("''", '""', "``", "‘’", "“”", "„“", "«»", "»«", "「」")
_SPACE = re.compile(r"\s+")
_DATE = re.compile(r"\d{4}-(\d\d)-(\d\d)(?:[ t](\d\d:\d\d)(?::\d\d)?)?$")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_JOINTS = re.compile(r"[-_\s]+")
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_FORM = re.compile(r"@|://|\.[A-Za-z][A-Za-z0-9]{0,4}$")
"""What a name has that no word has: of a file, of a person's mail, of a page."""
_ADDRESS = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_NAME = re.compile(r"[^\W\d_]{3,}")
_SCHEME = re.compile(r"^(?:https?://)", re.IGNORECASE)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield every plain value and mapping key with its path."""
    stack: list[tuple[Path, Any]] = [(path, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, dict):
            for key, part in cast("dict[Any, Any]", item).items():
                if at:  # a key below the parameters themselves is data too
                    yield (*at, str(key)), str(key)
                stack.append(((*at, str(key)), part))
        elif isinstance(item, list | tuple):
            parts = cast("Sequence[Any]", item)
            stack += [((*at, index), part) for index, part in enumerate(parts)]
        elif item is None or isinstance(item, str | int | float):
            yield at, item


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

    def seen(self, value: Json) -> bool:
        """Whether the value stands in what others said."""
        return self._stands(value, 1)

    def name_of(self, value: str, asked: Container[str] | None = None) -> str:
        """What the trusted texts call it by; nothing if they do not.

        With `asked` (of `as_said`) the name is one that strangers may have given, who
        might guess at words that everybody uses, "the file". It counts where it was
        looked up by itself, has the form of a name, or stands in quotes.
        """
        spoken = as_said(value)
        if asked is not None and spoken in asked:
            return spoken
        if not self._stands(value, 0):
            return ""
        if asked is None or _FORM.search(value):
            return spoken
        whole, text = fold(value), self._text(0)
        quoted = any(f"{left}{whole}{right}" in text for left, right in _QUOTES)
        return spoken if quoted else ""

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


def is_composed(value: Json, words: Wording, rest: Wording) -> bool:
    """Check whether a text combines user words with a trusted result.

    Or has four of the user's words in a row: nobody writes those by chance.
    """
    if not isinstance(value, str) or len(value) > LONGEST // 4:
        return False
    parts = value.split()
    runs = range(len(parts) - _RUN + 1)
    if any(words.trusted(" ".join(parts[at : at + _RUN])) for at in runs):
        return True
    return any(
        words.trusted(" ".join(parts[:cut])) and rest.trusted(" ".join(parts[cut:]))
        for cut in range(len(parts) - 1, 1, -1)
    )


def as_said(name: str) -> str:
    """A name as people say it: `my travel notes` of `My-travel_notes.docx`."""
    return _JOINTS.sub(" ", _ENDING.sub("", fold(name))).strip()


def addresses(value: Json) -> set[str]:
    """Every mail address in the texts of a value."""
    return {
        found.casefold().strip(".")
        for _, leaf in leaves(value)
        if isinstance(leaf, str)
        for found in _ADDRESS.findall(leaf)
    }


def whose_address(value: str, person: Json) -> bool:
    """Whether a mail address bears a person's name: `ada.king@x.test` of `Ada King`."""
    if not isinstance(person, str) or not _ADDRESS.fullmatch(value):
        return False
    name = _NAME.findall(person.casefold())
    local = _NAME.findall(value.casefold().partition("@")[0])
    return bool(name) and all(part in local for part in name)


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
