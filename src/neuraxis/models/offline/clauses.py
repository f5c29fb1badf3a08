"""Clauses of a request: one for each thing that is asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from neuraxis.models.offline import english
from neuraxis.models.offline.tokens import stem, tokenise

_POLITE = re.compile(english.POLITE, re.IGNORECASE)
_SEPARATOR = re.compile(english.SEPARATORS, re.IGNORECASE)
_JOIN = re.compile(english.JOINS, re.IGNORECASE)
_VALUES = ("quoted", "url", "path", "email")
MOST = 8
"""Places where a request may be cut."""


def bare(text: str) -> str:
    """Return a clause without its polite words."""
    text = text.strip().rstrip(",;")
    while (match := _POLITE.match(text)) is not None and match.end() < len(text):
        text = text[match.end() :]
    return re.sub(r",?\s+(?:please|thanks|thank you)(?=[.!?]*$)", "", text, flags=re.I)


def cuts(text: str, heads: Collection[str]) -> list[tuple[int, int, bool]]:
    """Return the places where the text may be cut, and must be."""
    kept = [(t.start, t.end) for t in tokenise(text) if t.kind in ("quoted", "code")]
    found: list[tuple[int, int, bool]] = []
    for pattern, sure in ((_SEPARATOR, True), (_JOIN, False)):
        for match in pattern.finditer(text):
            begin, end = match.span()
            taken = [*kept, *((a, b) for a, b, _ in found)]
            if any(a < end and begin < b for a, b in taken):
                continue
            after = tokenise(bare(text[end:])[:200])[:1]
            verb = after and (after[0].kind in _VALUES or stem(after[0].text) in heads)
            if sure or verb:
                found.append((begin, end, sure))
    return sorted(found)[:MOST]


def cut(text: str, heads: Collection[str]) -> list[str]:
    """Return the clauses, cut wherever that may be."""
    return pieces(text, cuts(text, heads))


def pieces(text: str, at: Sequence[tuple[int, int, bool]]) -> list[str]:
    """Return the clauses between these cuts."""
    begins = [0, *(end for _, end, _ in at)]
    ends = [*(start for start, _, _ in at), len(text)]
    parts = [bare(text[a:b]) for a, b in zip(begins, ends, strict=True)]
    return [part for part in parts if part]
