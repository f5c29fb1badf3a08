"""A request split into clauses, each about one call: text in, clauses out.

The rules stand in the language's file. Nothing is split within a quoted text, a path
or an address. A language without rules gives the whole request as one clause.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache

from neuraxis.models.local.language import WORD, Language, split_words
from neuraxis.models.local.spans import Span, find


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word or mark of a clause; a typed span is one token."""

    text: str
    start: int
    end: int
    low: str
    fold: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One wish: its text without polite words, its spans and its tokens."""

    text: str
    spans: tuple[Span, ...]
    tokens: tuple[Token, ...]

    def is_determiner(self, index: int, language: Language) -> bool:
        """An article or the like, which belongs to the value behind it."""
        return self.tokens[
            index
        ].low in language.determiners and not self.is_conjunction(index, language)

    def is_conjunction(self, index: int, language: Language) -> bool:
        """A "that" which begins what is said, and is not "that file"."""
        tokens = self.tokens
        if tokens[index].low not in language.words("conjunctions"):
            return False
        before = tokens[index - 1] if index else None
        return (
            index > 1
            and before is not None
            and before.low not in language.prepositions
            and index + 2 < len(tokens)
        )

    @property
    def head(self) -> str:
        """The folded first word."""
        return next((token.fold for token in self.tokens if token.fold), "")


_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W\d_]+/[^\W\d_]+|[^\W_]+(?:['’\-_][^\W_]+)*|[^\w\s]|_", re.UNICODE)


def clause(text: str, language: Language) -> Clause:
    """A clause of a text as it is, without the words of courtesy at its start."""
    text = strip_polite(text.strip(), language)
    spans = find(text, language)
    return Clause(text=text, spans=spans, tokens=_tokens(text, spans, language))


def split(text: str, language: Language, verbs: Collection[str] = ()) -> list[Clause]:
    """The clauses of a request; `verbs` are more folded words that may begin one."""
    text = text.strip()
    parts: list[str] = []
    for piece in _at_separators(text, language):
        for half in _in_order(piece, language):
            parts += _at_joins(half, language, frozenset(verbs))
    clauses = [clause(part, language) for part in parts if WORD.search(part)]
    return [item for item in clauses if item.text]


def strip_polite(text: str, language: Language) -> str:
    """The text without "please", "can you", "I want to" and the like at its start."""
    patterns = _polite(language.code)
    changed = True
    while changed:
        changed = False
        for pattern in patterns:
            if (match := pattern.match(text)) and match.end() < len(text):
                text = text[match.end() :].lstrip()
                changed = True
    text = text.rstrip(" \t\n.!?,;:")
    for pattern in _patterns(language.code, "trailing"):
        while (match := pattern.search(text)) and match.start():
            text = text[: match.start()].rstrip(" .!?,;:")
    return text


def _at_separators(text: str, language: Language) -> list[str]:
    spans = find(text, language)
    cuts: list[tuple[int, int]] = []
    for pattern in _patterns(language.code, "separators"):
        for match in pattern.finditer(text):
            if match.start() and _outside(spans, *match.span()):
                cuts.append(match.span())
    return _cut(text, cuts)


def _in_order(text: str, language: Language) -> list[str]:
    """ "After X, Y" is X then Y; "Y after X-ing" too; "before X, Y" is Y then X."""
    for key, swap in (("after_first", False), ("before_first", True)):
        for pattern in _patterns(language.code, key):
            if match := pattern.match(strip_polite(text, language)):
                first, second = match.groups()
                if _begins(first, language) and _begins(second, language):
                    return [second, first] if swap else [first, second]
    for pattern in _patterns(language.code, "after_last"):
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
    joins = _patterns(language.code, "joins")
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
            if _verb_begins(rest, language, verbs) and _may_cut(
                left, rest, closed, language
            ):
                cuts.append(match.span())
    return _cut(text, cuts)


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
    """A pronoun, a determiner or a typed span comes right after the verb."""
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


@cache
def _patterns(code: str, key: str) -> tuple[re.Pattern[str], ...]:
    from neuraxis.models.local.language import load

    found = load(code).rules.get(key) or ()
    listed = [found] if isinstance(found, str) else list(found)
    return tuple(re.compile(item, re.IGNORECASE | re.DOTALL) for item in listed)


@cache
def _polite(code: str) -> tuple[re.Pattern[str], ...]:
    return _patterns(code, "polite")


_PARTS = re.compile(r".+(?=['’]s$)|['’]s$", re.IGNORECASE | re.DOTALL)


def _words(
    text: str, start: int, stop: int, language: Language
) -> Iterator[re.Match[str]]:
    """Words and marks; "Anna's" is "Anna" and "'s"."""
    for match in _TOKEN.finditer(text, start, stop):
        whole = match.group().casefold().replace("’", "'")
        if (
            whole.endswith("'s")
            and len(whole) > 2
            and whole[:-2] not in language.function_words
            and whole not in language.function_words
        ):
            yield from _PARTS.finditer(text, match.start(), match.end())
        else:
            yield match


def _tokens(
    text: str, spans: tuple[Span, ...], language: Language
) -> tuple[Token, ...]:
    tokens: list[Token] = []
    place = 0
    for span in (*spans, None):
        stop = span.start if span else len(text)
        for match in _words(text, place, stop, language):
            word = match.group()
            parts = split_words(word)
            tokens.append(
                Token(
                    text=word,
                    start=match.start(),
                    end=match.end(),
                    low=word.casefold(),
                    fold=language.fold(word) if parts and word[0] not in "'’" else "",
                )
            )
        if span:
            tokens.append(
                Token(
                    text=text[span.start : span.end],
                    start=span.start,
                    end=span.end,
                    low=text[span.start : span.end].casefold(),
                    fold="",
                    span=span,
                )
            )
            place = span.end
    return tuple(tokens)
