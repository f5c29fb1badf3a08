"""Clauses of a request: one for each thing that is asked for."""

from __future__ import annotations

import re
from collections.abc import Collection

from neuraxis.models.offline import english
from neuraxis.models.offline.tokens import stem, tokenise

_POLITE = re.compile("|".join(english.POLITE), re.IGNORECASE)
_SEPARATOR = re.compile(english.SEPARATORS, re.IGNORECASE)
_JOIN = re.compile(english.JOINS, re.IGNORECASE)
MOST = 8
"""Places where a request may be cut."""


def bare(text: str) -> str:
    """Return a clause without its polite words."""
    text = text.strip().rstrip(",;")
    while (match := _POLITE.match(text)) is not None and match.end() < len(text):
        text = text[match.end() :]
    return re.sub(r",?\s+(?:please|thanks|thank you)(?=[.!?]*$)", "", text, flags=re.I)


def cuts(text: str, heads: Collection[str]) -> list[tuple[int, int, bool]]:
    """Return where the text may be cut: from, to, and whether it is sure."""
    kept = [
        (token.start, token.end) for token in tokenise(text) if token.kind in ("quoted", "code")
    ]

    def free(place: int) -> bool:
        return not any(start <= place < end for start, end in kept)

    found = [
        (match.start(), match.end(), True)
        for match in _SEPARATOR.finditer(text)
        if free(match.start()) and free(match.end())
    ]
    taken = [(start, end) for start, end, _ in found]
    for match in _JOIN.finditer(text):
        if not free(match.start()) or any(a < match.end() and match.start() < b for a, b in taken):
            continue
        following = tokenise(bare(text[match.end() :])[:200])[:1]
        value = following and following[0].kind in ("quoted", "url", "path", "email")
        if following and (value or stem(following[0].text) in heads):
            found.append((match.start(), match.end(), False))
    return sorted(found)[:MOST]


def cut(text: str, heads: Collection[str]) -> list[str]:
    """Return the clauses, cut wherever that may be."""
    return pieces(text, cuts(text, heads))


def pieces(text: str, at: list[tuple[int, int, bool]]) -> list[str]:
    """Return the clauses between these cuts."""
    found: list[str] = []
    begin = 0
    for start, end, _ in at:
        found.append(text[begin:start])
        begin = end
    return [said for part in [*found, text[begin:]] if (said := bare(part))]
