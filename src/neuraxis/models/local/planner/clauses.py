"""Split a request into clauses, one for each call.

The rules stand in the language's file. Nothing is split within a quoted text, a path
or an address. A language without rules gives the whole request as one clause.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from neuraxis.models.local.planner.language import WORD, Language
from neuraxis.models.local.planner.spans import Span, find
from neuraxis.models.local.planner.tokens import Clause, clause, patterns, strip_polite


def split(text: str, language: Language, verbs: Collection[str] = ()) -> list[Clause]:
    """Return a request's clauses; `verbs` are more words that begin one."""
    text = text.strip()
    parts: list[str] = []
    for piece in _at_separators(text, language):
        for half in _in_order(piece, language):
            parts += _at_joins(half, language, frozenset(verbs))
    clauses = [clause(part, language) for part in parts if WORD.search(part)]
    return [item for item in clauses if item.text]


def _at_separators(text: str, language: Language) -> list[str]:
    spans = find(text, language)
    cuts: list[tuple[int, int]] = []
    for pattern in patterns(language.code, "separators"):
        for match in pattern.finditer(text):
            if match.start() and _outside(spans, *match.span()):
                cuts.append(match.span())
    return _cut(text, cuts)


def _in_order(text: str, language: Language) -> list[str]:
    """Put clauses in time order: "after X, Y", "Y after X-ing"."""
    for key, swap in (("after_first", False), ("before_first", True)):
        for pattern in patterns(language.code, key):
            if match := pattern.match(strip_polite(text, language)):
                first, second = match.groups()
                if _begins(first, language) and _begins(second, language):
                    return [second, first] if swap else [first, second]
    for pattern in patterns(language.code, "after_last"):
        if match := pattern.match(text):
            last, first = match.groups()
            if _begins(first, language) and _begins(last, language):
                return [first, last]
    return [text]


def _begins(text: str, language: Language) -> bool:
    words = WORD.findall(strip_polite(text, language))
    return bool(words) and language.is_verb(words[0])


def _at_joins(text: str, language: Language, verbs: frozenset[str]) -> list[str]:
    spans = find(text, language)
    joins = patterns(language.code, "joins")
    closing = tuple(re.escape(word) for word in language.words("closed_by"))
    closed = re.compile(rf"\b(?:{'|'.join(closing)})\b", re.I) if closing else None
    cuts: list[tuple[int, int]] = []
    for pattern in joins:
        for match in pattern.finditer(text):
            if not match.start() or not _outside(spans, *match.span()):
                continue
            rest = strip_polite(text[match.end() :], language)
            begun = max([e for _, e in cuts if e <= match.start()], default=0)
            left = text[begun : match.start()]
            if _verb_begins(rest, language, verbs):
                if _may_cut(left, rest, closed, language):
                    cuts.append(match.span())
            elif _is_gapped(left, rest, language):
                cuts.append(match.span())
    return _cut(text, cuts)


def _is_gapped(left: str, rest: str, language: Language) -> bool:
    """Check for an elided verb: "write X to a.txt and Y"."""
    places: list[str] = []
    for part in (left, rest):
        item = clause(part, language)
        if not item.tokens or not (span := item.tokens[-1].span):
            return False
        if not span.kinds & {"path", "email"} or len(item.tokens) < 3:
            return False
        places.append(item.tokens[-2].low)
    return places[0] == places[1] and places[0] in language.prepositions


def _verb_begins(rest: str, language: Language, verbs: frozenset[str]) -> bool:
    found = WORD.match(rest)
    if not found:
        return False
    word = found.group()
    if word.casefold() in language.prepositions:
        return False
    return language.is_verb(word) or language.fold(word) in verbs


def _may_cut(
    left: str, rest: str, closed: re.Pattern[str] | None, language: Language
) -> bool:
    words = WORD.findall(left)
    if not words:
        return False
    after = WORD.findall(rest)
    head = WORD.findall(strip_polite(left, language))
    # "create and run a script": two verbs with one object.
    if len(head) == 1 and language.is_verb(head[0]):
        return True
    # "how to read and write files": the second verb belongs to what is asked.
    if closed is not None and (found := closed.search(left)):
        begun = WORD.findall(left[found.end() :])
        inside = bool(begun) and (
            language.is_verb(begun[0]) or found.group().casefold() in _saying(language)
        )
        if inside and not (len(begun) > 1 and _object_follows(rest, language)):
            return False
    return (
        len(after) > 1
        or after[0].casefold() in language.words("alone")
        or _is_span_next(rest, language)
    )


def _saying(language: Language) -> tuple[str, ...]:
    return language.words("saying")


def _is_span_next(rest: str, language: Language) -> bool:
    return bool(find(rest, language))


def _object_follows(rest: str, language: Language) -> bool:
    """Check whether an object (pronoun, determiner, span) follows the verb."""
    found = WORD.match(rest)
    tail = rest[found.end() :].lstrip() if found else ""
    following = WORD.match(tail)
    if following and (
        following.group().casefold() in language.determiners
        or following.group().casefold() in language.words("pronouns")
    ):
        return True
    spans = find(tail, language)
    return bool(spans) and spans[0].start == 0


def _outside(spans: tuple[Span, ...], start: int, end: int) -> bool:
    return all(end <= span.start or start >= span.end for span in spans)


def _cut(text: str, cuts: list[tuple[int, int]]) -> list[str]:
    parts: list[str] = []
    last = 0
    for start, end in sorted(set(cuts)):
        if start < last:
            last = max(last, end)
            continue
        parts.append(text[last:start])
        last = end
    parts.append(text[last:])
    return [part.strip() for part in parts if part.strip()]
