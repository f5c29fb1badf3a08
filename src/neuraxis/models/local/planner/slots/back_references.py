"""Resolve back references of a clause to earlier steps.

"the urls", "it", "the first result" become `{{ previous_result[...] }}`; "that file"
becomes the path that an earlier step was given.
"""

from __future__ import annotations

from neuraxis.models.local.planner import earlier
from neuraxis.models.local.planner.catalogue import Slot
from neuraxis.models.local.planner.kinds import type_of
from neuraxis.models.local.planner.language import split_words
from neuraxis.models.local.planner.slots.reading import Candidate, Reader

POINTING = frozenset(
    {"content", "text", "query", "url", "identifier", "title", "list", "email", "enum"}
    | {"number", "integer", "place", "person", "date", "time", "datetime"}
)
CARRIED = frozenset({"path", "url", "email", "place", "person", "title", "identifier"})


def candidates(reader: Reader, slot: Slot) -> list[Candidate]:
    """Back references that the clause makes for this parameter."""
    if not reader.steps:
        return []
    found: list[Candidate] = []
    for first, last, words, ordinal in _phrases(reader):
        if slot.kind == "path":
            found += _file(reader, slot, first, last, words)
        elif slot.kind in POINTING:
            found += _result(reader, slot, first, last, words, ordinal)
            found += _carried(reader, slot, first, last, words)
    if slot.kind == "path" and not found and not _writes(reader):
        found += _silent_file(reader, slot)
    return found


def _phrases(reader: Reader) -> list[tuple[int, int, list[str], int | None]]:
    """Noun phrases that may mean something earlier: first, last, words, ordinal."""
    language = reader.language
    tokens = reader.tokens
    pronouns = language.words("pronouns")
    ordinals = language.table("ordinals")
    known = _nouns(reader)
    found: list[tuple[int, int, list[str], int | None]] = []
    index = reader.body
    while index < len(tokens):
        first = index
        place = index
        ordinal: int | None = None
        definite = False
        while place < len(tokens) and (
            tokens[place].low in language.determiners
            or tokens[place].low in language.words("possessives")
            or tokens[place].low in ordinals
            or tokens[place].low in language.words("fillers")
        ):
            if tokens[place].low in ordinals:
                ordinal = int(ordinals[tokens[place].low])
            definite = definite or tokens[place].low not in language.words("indefinite")
            place += 1
        nouns: list[str] = []
        while place < len(tokens) and tokens[place].fold in known:
            nouns.append(tokens[place].fold)
            place += 1
        if nouns and (definite or first == place - len(nouns)):
            last = _tail(reader, place - 1)
            found.append((first, last, nouns, ordinal))
            index = last + 1
            continue
        if tokens[first].low in pronouns and place - first <= 1:
            found.append((first, first, [tokens[first].fold], None))
        index = max(first + 1, place if not nouns else first + 1)
    return found


def _nouns(reader: Reader) -> set[str]:
    language = reader.language
    known = {
        language.fold(part)
        for word in language.words("result_words")
        for part in word.split()
    }
    known |= {language.fold(word) for word in language.words("file_words")}
    for field in earlier.fields(reader.steps):
        known |= {language.fold(word) for word in split_words(field.name or "")}
    for step in reader.steps:
        known |= step.tool.noun_words
        for slot in step.tool.slots:
            known |= {language.fold(word) for word in slot.name_words}
    return known - {""}


def _tail(reader: Reader, last: int) -> int:
    """Return the phrase with "of the page" or "from it" attached."""
    tokens = reader.tokens
    language = reader.language
    place = last + 1
    if place < len(tokens) and tokens[place].low in language.words("joining"):
        place += 1
        start = place
        while place < len(tokens) and tokens[place].low in language.determiners:
            place += 1
        while (
            place < len(tokens)
            and tokens[place].span is None
            and tokens[place].fold
            and tokens[place].low not in language.prepositions
        ):
            place += 1
        if place > start:
            return place - 1
    return last


def _result(
    reader: Reader,
    slot: Slot,
    first: int,
    last: int,
    words: list[str],
    ordinal: int | None,
) -> list[Candidate]:
    field = earlier.pick(reader.steps, words, slot, reader.language)
    if field is None:
        return []
    index = ordinal
    listed = type_of(field.schema) == "array"
    if index is None and listed and slot.kind in ("url", "path", "email"):
        index = 0
    if not listed:
        index = None
    score = 1.7 + 0.3 * reader.cue(slot, first, last)
    if slot.kind in ("content", "text"):
        score += 0.4
    elif slot.kind in ("url", "query") and not listed and slot.name != field.name:
        score -= 1.0
    elif slot.kind not in ("url", "query", "identifier", "list"):
        same = slot.name == field.name or type_of(slot.schema) == type_of(field.schema)
        score -= 0.9 if same else 1.6
    _, between = reader.lead(first)
    return [
        Candidate(
            value=field.expression(len(reader.steps), index),
            tokens=between | frozenset(range(first, last + 1)),
            score=score,
            kind="reference",
        )
    ]


def _file(
    reader: Reader, slot: Slot, first: int, last: int, words: list[str]
) -> list[Candidate]:
    language = reader.language
    meant = {language.fold(word) for word in language.words("file_words")}
    if not set(words) & meant:
        return []
    value = earlier.carried(reader.steps, slot)
    if value is None:
        return []
    # "write it to a file": what is written is "it", not where.
    low, between = reader.lead(first)
    score = 1.2 if not _writes(reader) or low in ("to", "into", "in") else 0.0
    return [
        Candidate(
            value=value,
            tokens=between | frozenset(range(first, last + 1)),
            score=score,
            kind="carried",
        )
    ]


def _silent_file(reader: Reader, slot: Slot) -> list[Candidate]:
    value = earlier.carried(reader.steps, slot)
    if value is None:
        return []
    return [Candidate(value=value, tokens=frozenset(), score=0.2, kind="carried")]


def _carried(
    reader: Reader, slot: Slot, first: int, last: int, words: list[str]
) -> list[Candidate]:
    if slot.kind not in CARRIED:
        return []
    value = earlier.carried(reader.steps, slot)
    if value is None:
        return []
    _, between = reader.lead(first)
    return [
        Candidate(
            value=value,
            tokens=between | frozenset(range(first, last + 1)),
            score=0.9,
            kind="carried",
        )
    ]


def _writes(reader: Reader) -> bool:
    """A tool that takes both a place and what is put there."""
    return any(slot.kind == "content" for slot in reader.tool.slots)
