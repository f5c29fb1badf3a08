"""Decide whether a clause asks for a call at all.

A greeting, thanks, an opinion or a text to be made up is talk, whatever words it
shares with a tool. Everything else needs some evidence for a tool: a call that nobody
asked for is worse than an answer in words.
"""

from __future__ import annotations

import re
from functools import cache

from neuraxis.models.local.planner import rank
from neuraxis.models.local.planner.catalogue import Catalogue, Tool
from neuraxis.models.local.planner.language import Language, load
from neuraxis.models.local.planner.rank import Match
from neuraxis.models.local.planner.tokens import Clause

LEAST = 0.3
"""Score below which a tool is not meant."""
LEAST_HEADLESS = 0.38
"""The same where the clause's verb is none that asks for the tool."""


LEAST_WHOLE = 0.2
"""The same where the clause gives all that the tool needs."""


def is_talk(clause: Clause, language: Language) -> bool:
    """Whether the clause is talk whatever tools there are."""
    if any(span.kinds & {"path", "url", "email"} for span in clause.spans):
        return False
    # What is quoted is somebody's matter, not what the person says to us.
    low = "".join(
        " _" if token.span is not None and token.span.quoted else f" {token.low}"
        for token in clause.tokens
    )
    low = re.sub(r" (?=[^\w\s]|$)|^ ", "", low).replace("’", "'")
    return any(pattern.match(low) for pattern in _talk(language.code, "always"))


def is_wanted(
    clause: Clause, match: Match, score: float, catalogue: Catalogue, *, whole: bool
) -> bool:
    """Whether the clause gives enough evidence that the tool is meant."""
    language = catalogue.language
    low = clause.text.casefold().replace("’", "'")
    named = any(span.kinds & {"path", "url", "email"} for span in clause.spans)
    if named and score >= LEAST - 0.1:
        # A path alone is no wish to write there.
        readonly = match.tool.spec.effects.readonly
        if match.head or readonly or _is_noun_named(clause, match, language):
            return True
    exact = rank.first_verb(clause, language) in match.tool.heads
    patterns = _talk(language.code, "made_up")
    if not exact:
        patterns += _talk(language.code, "spoken_about")
    if any(pattern.match(low) for pattern in patterns):
        words = {token.low for token in clause.tokens}
        if not words & set(language.words("file_nouns")):
            return False
    if match.head and score >= LEAST:
        return True
    if whole and score >= LEAST_WHOLE and _is_noun_named(clause, match, language):
        return True
    return score >= LEAST_HEADLESS and _is_noun_named(clause, match, language)


def open_question(
    clause: Clause, catalogue: Catalogue
) -> tuple[Tool, dict[str, str]] | None:
    """The tool that takes questions about the world, for such a question."""
    language = catalogue.language
    low = clause.text.casefold()
    asked = re.match(str(language.rules.get("wh") or "$^"), low)
    personal = set(language.words("personal"))
    if not asked or personal & {token.low for token in clause.tokens}:
        return None
    for tool in catalogue.tools:
        needed = [slot for slot in tool.slots if slot.required]
        if not tool.spec.effects.readonly or len(needed) != 1:
            continue
        slot = needed[0]
        if slot.kind not in ("query", "text", "content", "title"):
            continue
        plain = any(
            not [w for w in s.words if not w.startswith("<")] for s in tool.samples
        )
        about = re.sub(
            str(language.rules.get("about") or "$^"), "", clause.text, flags=re.I
        )
        if plain and about and len(about.split()) < 6:
            return tool, {slot.name: about}
        if slot.kind == "query" and "=search" in tool.heads and "=web" in tool.weights:
            return tool, {slot.name: clause.text}
    return None


def _is_noun_named(clause: Clause, match: Match, language: Language) -> bool:
    """Check whether a word names the tool and is no common verb."""
    weights = match.tool.weights
    return any(
        weights.get(meaning, 0.0) >= 0.6
        for token in clause.tokens
        if token.fold and token.low not in language.function_words
        for meaning in (token.fold, *language.concepts.get(token.fold, ()))
    )


@cache
def _talk(code: str, key: str) -> tuple[re.Pattern[str], ...]:
    chat = load(code).table("chat")
    return tuple(re.compile(item, re.IGNORECASE) for item in chat.get(key) or ())
