"""Collect free-text candidates: pieces of a clause between lead words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from neuraxis.models.local.planner import values
from neuraxis.models.local.planner.catalogue import Slot
from neuraxis.models.local.planner.slots.reading import LONG, Candidate, Reader
from neuraxis.models.local.planner.tokens import Token


def candidates(reader: Reader, slot: Slot) -> list[Candidate]:
    """All pieces of the clause that may be the parameter's value."""
    found = _runs(reader, slot) if slot.kind == "list" else []
    firsts = _starts(reader)
    if slot.kind == "query" and reader.body and _is_question(reader):
        firsts = [0, *firsts]
    for first in firsts:
        for last in _ends(reader, first, slot):
            text = reader.text(first, last)
            value = values.convert(text, slot, reader.language)
            if isinstance(value, values.Nothing):
                continue
            _, between = reader.lead(first)
            found.append(
                Candidate(
                    value=value,
                    tokens=between | frozenset(range(first, last + 1)),
                    score=_shape(reader, slot, first, last)
                    + reader.cue(slot, first, last),
                )
            )
    return found


def _runs(reader: Reader, slot: Slot) -> list[Candidate]:
    """Return typed values in a row: 1, 2 and 3."""
    found: list[Candidate] = []
    tokens = reader.tokens
    between = (",", ";", *reader.language.words("coordination"))
    index = 0
    while index < len(tokens):
        if tokens[index].span is None:
            index += 1
            continue
        run = [index]
        place = index + 1
        while place < len(tokens):
            if tokens[place].span is not None:
                run.append(place)
            elif tokens[place].low not in between:
                break
            place += 1
        text = ", ".join(reader.text(item, item) for item in run)
        value = values.convert(text, slot, reader.language)
        if not isinstance(value, values.Nothing):
            _, near = reader.lead(index)
            found.append(
                Candidate(
                    value=value,
                    tokens=near | frozenset(range(index, run[-1] + 1)),
                    score=0.9
                    + 0.15 * len(run)
                    + 0.5 * reader.cue(slot, index, run[-1]),
                )
            )
        index = run[-1] + 1
    return found


def _starts(reader: Reader) -> list[int]:
    found: set[int] = set()
    after_boundary = True
    for index in range(min(reader.body, len(reader.tokens)), len(reader.tokens)):
        token = reader.tokens[index]
        if after_boundary or (token.span is not None):
            found.add(index)
        skipped = reader.is_determiner(index) or reader.named(token)
        after_boundary = reader.is_boundary(index) or (after_boundary and skipped)
    return [
        index
        for index in sorted(found)
        if (reader.tokens[index].fold or reader.tokens[index].span is not None)
        and reader.tokens[index].low not in reader.language.prepositions
    ]


def _ends(reader: Reader, first: int, slot: Slot) -> list[int]:
    found: list[int] = []
    last_index = len(reader.tokens) - 1
    for last in range(first, len(reader.tokens)):
        token = reader.tokens[last]
        if token.low in reader.language.prepositions and last < last_index:
            continue
        if (
            token.low in reader.language.determiners
            or (
                last > first
                and slot.kind not in LONG
                and token.low in reader.language.function_words
            )
            or (
                not token.fold
                and token.span is None
                and token.low not in (")", "%", "'s", "’s")
            )
        ):
            continue
        if last == last_index:
            found.append(last)
            continue
        behind = reader.tokens[last + 1]
        adverb = str(reader.language.rules.get("adverb_ending") or "\0")
        if last + 1 == last_index and behind.low.endswith(adverb):
            found.append(last)
            continue
        if _is_asked_verb(reader, last + 1):
            found.append(last)
            continue
        if _is_asked_verb(reader, last):
            continue
        if (
            behind.span is not None
            or not behind.fold
            or behind.low in reader.language.prepositions
            or behind.low in reader.language.function_words
            or reader.named(behind)
        ):
            found.append(last)
    return found


def _is_asked_verb(reader: Reader, index: int) -> bool:
    """The verb at the end of "when does X play in Y"."""
    if not reader.body or reader.tokens[
        reader.body - 1
    ].low not in reader.language.words("do_words"):
        return False
    behind = reader.tokens[index + 1] if index + 1 < len(reader.tokens) else None
    return reader.tokens[index].fold in reader.language.verbs and (
        behind is None or behind.low in reader.language.prepositions
    )


def _is_question(reader: Reader) -> bool:
    return reader.tokens[0].low in reader.language.words("question_words")


def _shape(reader: Reader, slot: Slot, first: int, last: int) -> float:
    """Score how much a text looks like the parameter's value."""
    language = reader.language
    inside = reader.tokens[first : last + 1]
    span = inside[0].span if len(inside) == 1 else None
    score = 0.35
    if span is not None and span.quoted:
        score += 0.9 if not span.kinds & {"path", "url", "email"} else 0.1
    elif span is not None:
        good = slot.kind == "identifier" or ("code" in span.kinds and slot.kind in LONG)
        score += 0.5 if good else -0.4
    elif any(
        token.span is not None and token.span.kinds & {"path", "url", "email"}
        for token in inside
    ):
        score -= 0.5 if slot.kind in ("query", "content") else 1.2
    if span is None:
        score -= _inner(reader, slot, inside)
        if any(t.span is not None and t.span.quoted for t in inside):
            score -= 0.2 if slot.kind == "query" else 0.9
        score -= _naming(reader, inside)
    if span is None:
        score -= _edges(reader, slot, first, inside)
    if slot.kind in ("place", "person"):
        named = inside[0].text[:1].isupper()
        score += 0.4 if named else -0.25 if slot.kind == "person" else 0.0
    idle = language.function_words | set(language.words("empty_values"))
    if span is None and all(token.low in idle for token in inside):
        score -= 1.2
    return score


def _edges(reader: Reader, slot: Slot, first: int, inside: Sequence[Token]) -> float:
    """Return the cost of edge words that belong to the sentence."""
    cost = 0.0
    head, end, several = inside[0], inside[-1], len(inside) > 1
    if slot.kind in LONG:
        own = head.fold in reader.tool.noun_words or head.low in slot.name_words
        return 0.2 if several and head.fold and own else 0.0
    if reader.is_determiner(first):
        cost += 0.35
    elif several and head.low in reader.language.function_words:
        cost += 0.4
    if reader.named(head):
        cost += 0.3
    adverb = str(reader.language.rules.get("adverb_ending") or "\0")
    if several and end.low.endswith(adverb) and end.text.islower():
        cost += 0.3
    if several and reader.named(end) and end.low not in slot.name_words:
        cost += 0.15
    if slot.kind == "identifier":
        digits = not several and any(char.isdigit() for char in head.text)
        cost -= 0.6 if digits else -0.1 * len(inside)
    return cost


def _is_asked_for(reader: Reader, token: Token) -> bool:
    """Check for a word of the tool's name, examples or synonyms."""
    tool, concepts = reader.tool, reader.language.concepts
    if token.fold in tool.noun_words or token.fold in tool.spoken:
        return True
    meant = concepts.get(token.fold, frozenset[str]()) - {"=search", "=fetch"}
    return any(concepts.get(word, frozenset()) & meant for word in tool.noun_words)


def _naming(reader: Reader, inside: Sequence[Token]) -> float:
    """Return the cost of words that name the tool's subject."""
    matter = [
        token
        for token in inside
        if token.fold and token.low not in reader.language.function_words
    ]
    empty = reader.language.words("empty_values")
    if matter and all(reader.named(t) or t.low in empty for t in matter):
        return 0.7
    if not matter:
        return 0.0
    lead_ins = {
        low
        for slot in reader.tool.slots
        for low in (*slot.cues, *reader.language.table("cues").get(slot.kind, ()))
    }
    for here, behind in itertools.pairwise(inside):
        if (
            here is not inside[-2]
            and _is_asked_for(reader, here)
            and (behind.low in reader.language.prepositions and behind.low in lead_ins)
        ):
            return 0.6
    if reader.named(matter[0]):
        place = inside.index(matter[0]) + 1
        if len(inside) > place + 1 and (
            inside[place].low in reader.language.prepositions
        ):
            return 0.6
    if all(token.fold in reader.tool.foreign for token in matter):
        return 0.3
    start = 1 if inside[0].low in reader.language.determiners else 0
    if start and len(inside) > 2 and reader.named(inside[1]):
        return 0.4
    return 0.0


def _inner(reader: Reader, slot: Slot, inside: Sequence[Token]) -> float:
    language = reader.language
    small = sum(token.low in language.prepositions for token in inside)
    if slot.kind not in LONG:
        small += 2 * sum(token.low in ("'s", "’s") for token in inside[:-1])
    dated = sum(
        token.span is not None and bool(token.span.kinds & {"date", "time", "number"})
        for token in inside
    )
    if slot.kind == "list":
        joined = sum(
            token.low in language.words("coordination") or token.low == ","
            for token in inside
        )
        return 0.25 * small - 0.3 * joined
    if slot.kind in LONG:
        moments = any(
            other.kind in ("date", "time", "datetime") for other in reader.tool.slots
        )
        return 0.03 * small + (0.5 * dated if moments else 0.0)
    cost = 0.25 * small + 0.6 * dated
    shown = [len(str(value).split()) for value in slot.values]
    longest = max(shown, default=4)
    return cost + 0.15 * max(0, len(inside) - max(longest, 3))
