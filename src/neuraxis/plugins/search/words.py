"""Words of a text as a search compares them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_PIECES = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_COMMON = """
a about all also am an and any are as at be been being but by can could did do
does doing for from get give had has have having he her hers him his how i if in
into is it its just know let like lets made make may me might more most must my
need needs no not now of on one or our out over please provide shall she should
show so some such tell than that the their them then there these they this those
through to too under until up us use used using very via want was way we were
what when where which while who whom whose why will with would you your yours
help find looking im ive id dont
"""
COMMON = frozenset(_COMMON.split())
"""Stop words: words of a request without a subject."""
_ENDINGS = (
    ("ization", "iz"), ("isation", "iz"), ("ational", "at"), ("fulness", "ful"),
    ("iveness", "iv"), ("ments", ""), ("ingly", ""), ("ation", "at"), ("ators", "at"),
    ("ator", "at"), ("ings", ""), ("ment", ""), ("ness", ""), ("ions", ""),
    ("ities", "it"), ("ity", "it"), ("ally", "al"), ("able", ""), ("ible", ""),
    ("ion", ""), ("ing", ""), ("ies", "y"), ("ied", "y"), ("ers", ""), ("ors", ""),
    ("sses", "ss"), ("ed", ""), ("er", ""), ("or", ""), ("ly", ""), ("es", ""),
    ("s", ""),
)  # fmt: skip
_SHORTEST = 3
"""Letters that must stay where an ending is taken off."""


def words(text: str) -> list[str]:
    """Return the stems of a text's words, with names split."""
    terms: list[str] = []
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    for match in _PIECES.finditer(text):
        terms += _split(match[0])
    return terms


@lru_cache(maxsize=50_000)
def _split(piece: str) -> tuple[str, ...]:
    """Return the words in a name: `getHTMLPage2` has four."""
    if not piece.isascii():
        return _foreign(piece)
    parts = _CAMEL.findall(piece)
    return tuple([stem(part.lower()) for part in parts])


def _foreign(piece: str) -> tuple[str, ...]:
    """Return pairs of letters for scripts without blanks, else words."""
    terms: list[str] = []
    end = 0
    for match in _WIDE.finditer(piece):
        terms += _folded(piece[end : match.start()])
        run = match[0]
        terms += [run[index : index + 2] for index in range(max(len(run) - 1, 1))]
        end = match.end()
    return tuple(terms + _folded(piece[end:]))


def _folded(piece: str) -> list[str]:
    if not piece:
        return []
    plain = "".join(
        char
        for char in unicodedata.normalize("NFKD", piece.lower())
        if not unicodedata.combining(char)
    )
    return [stem(plain)]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the word without its regular English ending."""
    if len(word) <= _SHORTEST or not word.isalpha():
        return word
    for ending, replacement in _ENDINGS:
        if word.endswith(ending):
            start = word[: -len(ending)]
            if ending == "s" and start[-1] in "su":
                break
            if len(start) + len(replacement) >= _SHORTEST:
                word = start + replacement
                break
    if len(word) > _SHORTEST:
        if word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
        if word[-1] == "e":
            word = word[:-1]
    if word.endswith("y") and len(word) > _SHORTEST:
        word = word[:-1] + "i"
    return word
