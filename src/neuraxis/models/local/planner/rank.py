"""Rank the tools of a catalogue for a clause.

Two measures are added: how far the clause's words are the tool's words (each word
weighs more the fewer tools have it, and less the later it stands), and how near the
nearest example is, with values taken out on both sides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from neuraxis.models.local.planner.catalogue import Catalogue, Sample, Tool
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.tokens import Clause

LIKE = 0.7
"""What a word of like meaning counts, where the same word counts 1."""
HEAD = 1.3
UNKNOWN = 0.3
ASKING = 0.2
"""What a question counts against a tool that changes something."""
UNTAUGHT = 0.85
"""Weight of the evidence for a tool that has no examples."""
CLOSED = 0.25
"""Weight of words inside what is asked or said ("how to …", "saying …")."""


class Match(Struct, frozen=True, kw_only=True):
    """Score of a tool for a clause, before its parameters."""

    tool: Tool
    score: float
    evidence: float
    similarity: float
    head: bool
    """The clause's first verb is one that asks for this tool."""
    sample: Sample | None


class Word(Struct, frozen=True, kw_only=True):
    """A word of the clause that may say which tool is meant."""

    fold: str
    weight: float


def words(clause: Clause, language: Language) -> list[Word]:
    """Words that may say which tool is meant, each with its weight."""
    found: list[Word] = []
    closed = _closed_from(clause, language)
    light = clause.tokens and clause.tokens[0].low in language.words("light_verbs")
    common = clause.tokens and clause.tokens[0].low in language.words("common_verbs")
    weight = 0.5 if light else 0.8 if common else HEAD
    first = True
    for token in clause.tokens:
        if token.span is not None:
            kinds = token.span.kinds - {"quoted"}
            found += [Word(fold=f"<{kind}>", weight=1.0) for kind in sorted(kinds)]
            continue
        if not token.fold or token.low in language.function_words:
            continue
        scale = CLOSED if token.start >= closed else 1.0
        for part in token.low.replace("_", "-").split("-"):
            if part:
                found.append(Word(fold=language.fold(part), weight=weight * scale))
        weight = 1.2 if first else max(weight * 0.9, 0.35)
        first = False
    return found


def _closed_from(clause: Clause, language: Language) -> int:
    closing = [re.escape(word) for word in language.words("closing")]
    if not closing:
        return len(clause.text) + 1
    found = re.search(rf"\b(?:{'|'.join(closing)})\b", clause.text, re.IGNORECASE)
    return found.end() if found else len(clause.text) + 1


def rank(clause: Clause, catalogue: Catalogue) -> list[Match]:
    """All tools, the best first."""
    language = catalogue.language
    found = words(clause, language)
    head = first_verb(clause, language)
    is_common = bool(clause.tokens) and clause.tokens[0].low in language.words(
        "common_verbs"
    )
    is_light = bool(clause.tokens) and clause.tokens[0].low in language.words(
        "light_verbs"
    )
    meanings = {head, *language.verbs.get(head, ())} if head else set[str]()
    asking = set(language.words("asking"))
    groups = language.verbs.get(head, frozenset[str]()) if head else frozenset[str]()
    asks = bool(re.match(str(language.rules.get("question", "$^")), clause.text, re.I))
    asks = asks or (bool(groups) and groups <= asking)
    # Plugins that say nothing of effects are not held to it.
    asks = asks and any(tool.spec.effects.readonly for tool in catalogue.tools)
    matches: list[Match] = []
    for tool in catalogue.tools:
        evidence = _evidence(found, tool, catalogue)
        nearest, similarity = _nearest(found, tool, catalogue)
        heads = bool(meanings & tool.heads)
        exact = head in tool.heads
        matches.append(
            Match(
                tool=tool,
                score=(
                    (
                        0.55 * evidence + 0.45 * similarity
                        if tool.samples
                        else UNTAUGHT * evidence
                    )
                    + (0.12 if exact else 0.07 if heads else 0.0)
                    * (0.25 if is_light else 0.6 if is_common else 1.0)
                    - (ASKING if asks and not tool.spec.effects.readonly else 0.0)
                ),
                evidence=evidence,
                similarity=similarity,
                head=heads,
                sample=nearest,
            )
        )
    return sorted(matches, key=lambda match: -match.score)


def first_verb(clause: Clause, language: Language) -> str:
    """The folded first word if it is a verb, else ""."""
    return clause.head if clause.head in language.verbs else ""


def _evidence(found: Sequence[Word], tool: Tool, catalogue: Catalogue) -> float:
    total = 0.0
    for word in found:
        best = tool.weights.get(word.fold, 0.0) * catalogue.idf(word.fold)
        for concept in catalogue.language.concepts.get(word.fold, ()):
            share = tool.weights.get(concept, 0.0) * catalogue.idf(concept)
            best = max(best, LIKE * share)
        total += word.weight * best
    # Saturates: three matching words are as good as six.
    return 1.0 - math.exp(-total / (1.8 + 1.1 * math.log(1 + len(catalogue.tools))))


def _nearest(
    found: Sequence[Word], tool: Tool, catalogue: Catalogue
) -> tuple[Sample | None, float]:
    best: Sample | None = None
    most = 0.0
    for sample in tool.samples:
        similarity = likeness(found, sample.words, catalogue)
        if similarity > most:
            best, most = sample, similarity
    return best, most


def likeness(
    found: Sequence[Word], other: Sequence[str], catalogue: Catalogue
) -> float:
    """Return the rarity-weighted cosine; synonyms count in part."""
    mine: dict[str, float] = {}
    for word in found:
        mine[word.fold] = max(mine.get(word.fold, 0.0), min(word.weight, 1.0))
    theirs: Mapping[str, float] = dict.fromkeys(other, 1.0)
    if not mine or not theirs:
        return 0.0
    concepts = catalogue.language.concepts
    both = 0.0
    for word, weight in theirs.items():
        value = catalogue.idf(word) ** 2 * weight
        if word in mine:
            both += value * mine[word]
        elif (groups := concepts.get(word)) and any(
            concepts.get(own, frozenset()) & groups for own in mine
        ):
            both += value * LIKE
    # Words that no tool knows are most likely values.
    norm = math.sqrt(sum((catalogue.idf(w) * v) ** 2 for w, v in theirs.items()))
    own = math.sqrt(
        sum(
            (catalogue.idf(w) * v * (1.0 if w in catalogue.rarity else UNKNOWN)) ** 2
            for w, v in mine.items()
        )
    )
    return min(both / (norm * own), 1.0) if norm and own else 0.0
