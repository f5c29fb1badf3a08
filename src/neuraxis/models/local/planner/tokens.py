"""Tokenise a clause into words and typed spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from neuraxis.models.local.planner.language import Language, load, split_words
from neuraxis.models.local.planner.spans import Span, find


class Token(Struct, frozen=True, kw_only=True):
    """Token: a word, a mark or one typed span."""

    text: str
    start: int
    end: int
    low: str
    fold: str
    span: Span | None = None


class Clause(Struct, frozen=True, kw_only=True):
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


_TOKEN = re.compile(
    r"(?:[^\W\d_]\.){2,}|[^\W\d_]+/[^\W\d_]+|[^\W_]+(?:['’\-_][^\W_]+)*|[^\w\s]|_",
    re.UNICODE,
)


def clause(text: str, language: Language) -> Clause:
    """Return a clause without its polite opening words."""
    text = strip_polite(text.strip(), language)
    spans = find(text, language)
    return Clause(text=text, spans=spans, tokens=_tokens(text, spans, language))


def strip_polite(text: str, language: Language) -> str:
    """Strip opening words such as "please" or "can you"."""
    changed = True
    while changed:
        changed = False
        for pattern in patterns(language.code, "polite"):
            if (match := pattern.match(text)) and match.end() < len(text):
                text = text[match.end() :].lstrip()
                changed = True
    text = text.rstrip(" \t\n.!?,;:")
    for pattern in patterns(language.code, "trailing"):
        while (match := pattern.search(text)) and match.start():
            text = text[: match.start()].rstrip(" .!?,;:")
    return text


@cache
def patterns(code: str, key: str) -> tuple[re.Pattern[str], ...]:
    """The compiled patterns under a key of a language's file."""
    found = load(code).rules.get(key) or ()
    listed = [found] if isinstance(found, str) else list(found)
    return tuple(re.compile(item, re.IGNORECASE | re.DOTALL) for item in listed)


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


def body_start(clause: Clause, language: Language) -> int:
    """Return the first token after the verb and "me" or "us"."""
    if not clause.tokens or clause.tokens[0].span is not None:
        return 0
    index = 0
    low = clause.text.casefold()
    if clause.tokens[0].low in language.words("question_words"):
        small = language.function_words - language.determiners
        while index < len(clause.tokens) and clause.tokens[index].low in small:
            index += 1
        # "what can I make with": the verb behind the person asks, too.
        if (
            1 < index < len(clause.tokens) - 1
            and clause.tokens[index - 1].low in language.words("persons")
            and clause.tokens[index].fold in language.verbs
        ):
            index += 1
        return index
    phrase = next(
        (
            words
            for words in language.verb_phrases
            if low.startswith(words + " ") or low == words
        ),
        None,
    )
    if phrase is not None:
        index = len(phrase.split())
    elif clause.tokens[0].fold in language.verbs:
        index = 1
    while index < len(clause.tokens) and clause.tokens[index].low in language.words(
        "behind_verb"
    ):
        index += 1
    return index
