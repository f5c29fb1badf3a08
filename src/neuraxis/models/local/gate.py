"""Whether a clause asks for a call at all: a clause and its best tool in, yes or no.

A greeting, thanks, an opinion or a text to be made up is talk, whatever words it
shares with a tool. Everything else needs some evidence for a tool: a call that nobody
asked for is worse than an answer in words.
"""

from __future__ import annotations

import re
from functools import cache

from neuraxis.models.local.catalogue import Catalogue
from neuraxis.models.local.clauses import Clause
from neuraxis.models.local.language import Language, load
from neuraxis.models.local.retrieval import Match

LEAST = 0.3
"""Score below which a tool is not meant."""
LEAST_HEADLESS = 0.38
"""The same where the clause's verb is none that asks for the tool."""


def is_talk(clause: Clause, language: Language) -> bool:
    """Whether the clause is talk whatever tools there are."""
    low = clause.text.casefold().replace("’", "'")
    if any(span.kinds & {"path", "url", "email"} for span in clause.spans):
        return False
    return any(pattern.match(low) for pattern in _talk(language.code, "always"))


def is_wanted(
    clause: Clause, match: Match, score: float, catalogue: Catalogue
) -> bool:
    """Whether the clause gives enough evidence that the tool is meant."""
    language = catalogue.language
    low = clause.text.casefold().replace("’", "'")
    named = any(span.kinds & {"path", "url", "email"} for span in clause.spans)
    if named and score >= LEAST - 0.1:
        return True
    if any(p.match(low) for p in _talk(language.code, "made_up")):
        words = {token.low for token in clause.tokens}
        if not words & set(language.words("file_nouns")):
            return False
    if match.head and score >= LEAST:
        return True
    return score >= LEAST_HEADLESS and _is_noun_named(clause, match, language)


def _is_noun_named(clause: Clause, match: Match, language: Language) -> bool:
    """A word of the clause is one of the tool's own, and it is no common verb."""
    weights = match.tool.weights
    return any(
        weights.get(meaning, 0.0) >= 0.5
        for token in clause.tokens
        if token.fold and token.low not in language.function_words
        for meaning in (token.fold, *language.concepts.get(token.fold, ()))
    )


@cache
def _talk(code: str, key: str) -> tuple[re.Pattern[str], ...]:
    chat = load(code).table("chat")
    return tuple(re.compile(item, re.IGNORECASE) for item in chat.get(key) or ())
