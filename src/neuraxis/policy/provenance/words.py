"""The user's own words: whole tokens, compared after NFC."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, cast

from neuraxis.messages import Path
from neuraxis.specs import Json

LONGEST = 500
"""Maximum characters of a value that is looked up in the user's words."""
_OPEN, _SHUT = "\"'“”‘’«»„‚`([{<*#", "\"'”’“‘»«`)]}>*"
_ENDS = ".,;:!?…"
_SPECIAL = frozenset("/\\:@._-")
_HOST = frozenset("/\\?#")
"""Characters that a bare host does not have."""
_QUOTES = {"'": "'", '"': '"', "`": "`", "‘": "’", "“": "”", "„": "“", "«": "»"}
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}
_PART = re.compile(r"\S+")
_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d*)?")
"""A number, also in groups of three digits; "1,50" is none."""


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield every mapping key, and every value without parts, with its path."""
    stack: list[tuple[Path, Any]] = [(path, value)]
    while stack:
        at, item = stack.pop()
        if isinstance(item, dict) and item:
            entries = cast("dict[Any, Any]", item)
            if at:  # a key below the parameters themselves is data too
                yield from (((*at, str(key)), str(key)) for key in entries)
            stack += [((*at, str(k)), part) for k, part in reversed(entries.items())]
        elif isinstance(item, list | tuple) and item:
            parts = [*enumerate(cast("Sequence[Any]", item))]
            stack += [((*at, index), part) for index, part in reversed(parts)]
        else:  # an empty list or a date is never the user's word
            yield at, item


def tokens(text: str) -> list[str]:
    """Split a text at its spaces; drop the punctuation around each token."""
    found = [_bare(part) for part in unicodedata.normalize("NFC", text).split()]
    return [part for part in found if any(map(str.isalnum, part))]


def is_own(value: Json, texts: Iterable[str]) -> bool:
    """Whether a value occurs as a whole in the user's texts.

    An address, path, URL or id is one token and compared with its case; plain words
    are compared without it. A number must be written as a number.
    """
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        number = Decimal(str(value))
        return any(number in _numbers(text) for text in texts)
    if not isinstance(value, str) or _is_odd(value) or value.isdigit():
        return False
    wanted = value.split()
    if not all(any(map(str.isalnum, part)) for part in wanted):
        return False
    return any(_line(wanted) in _line_of(text) for text in texts)


def place_of(value: Json, text: str) -> int:
    """Return where the user first wrote or quoted a value, or -1.

    `https://` may be added where the user left it out (rule C13), and the "/" after a
    host makes no difference.
    """
    if not isinstance(value, str) or _is_odd(value):
        return -1
    quoted, addresses = _places(text)
    found = [quoted[value]] if value in quoted else []
    if " " not in value and _SPECIAL.intersection(value):
        forms = _spellings(value)
        found += [addresses[form] for form in forms if form in addresses]
    return min(found, default=-1)


@lru_cache(maxsize=8)
def _places(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first position of each quoted text and of each token."""
    words = unicodedata.normalize("NFC", text)
    quoted: dict[str, int] = {}
    for at, quotation in _quotations(words):
        quoted.setdefault(quotation, at)
    addresses: dict[str, int] = {}
    for part in _PART.finditer(words):
        addresses.setdefault(_bare(part[0]), part.start())
    return quoted, addresses


def _spellings(address: str) -> set[str]:
    """Return the forms of an address that lead to the same request."""
    forms, host = {address}, address.removesuffix("/")
    if _HOST.isdisjoint(host.removeprefix("http://").removeprefix("https://")):
        forms |= {host, f"{host}/"} if "://" in host else set()
    return forms | {form.removeprefix("https://") for form in forms}


def _quotations(text: str) -> Iterator[tuple[int, str]]:
    """Yield each quoted text with its position; an apostrophe begins none."""
    ends = dict.fromkeys(_QUOTES.values(), 0)  # only ever later: nothing is read twice
    at = 0
    while at < len(text):
        close = _QUOTES.get(text[at])
        end = at
        if close and not text[at - 1 : at].isalnum():
            end = ends[close]
            while 0 <= end < at + 2 or (end > 0 and text[end + 1 : end + 2].isalnum()):
                end = text.find(close, max(at + 2, end + 1))
            ends[close] = end
        if end > at:
            yield at, text[at + 1 : end]
            at = end
        at += 1


def _is_odd(text: str) -> bool:
    """Whether a text has characters that nobody types, or outer spaces."""
    return (
        not text
        or len(text) > LONGEST
        or text != text.strip()
        or text != unicodedata.normalize("NFC", text)
        or any(unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs") for char in text)
    )


def _bare(part: str) -> str:
    text = part.lstrip(_OPEN)
    end, counts = len(text), Counter(text)
    while end:
        last = text[end - 1]
        if last in _PAIRS and counts[_PAIRS[last]] >= counts[last]:
            break  # its own bracket, as in `Tea_(drink)`
        if last not in _ENDS and last not in _SHUT:
            break
        counts[last] -= 1
        end -= 1
    return text[:end]


def _line(found: Iterable[str]) -> str:
    """Join tokens to one line, plain words in lower case."""
    return f" {' '.join(map(_folded, found))} "


def _folded(token: str) -> str:
    is_id = bool(_SPECIAL.intersection(token)) or any(map(str.isdigit, token))
    return token if is_id else token.lower()


@lru_cache(maxsize=8)
def _line_of(text: str) -> str:
    """Return a request's tokens in one line, to search values in."""
    return _line(tokens(text))


@lru_cache(maxsize=8)
def _numbers(text: str) -> frozenset[Decimal]:
    """Return the numbers in a request."""
    said = [token for token in tokens(text) if _NUMBER.fullmatch(token)]
    return frozenset(Decimal(number.replace(",", "")) for number in said)
