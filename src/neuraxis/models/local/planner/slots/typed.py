"""Candidates for typed parameters: spans, members of an enum, switches, moments."""

from __future__ import annotations

from neuraxis.models.local.planner import values
from neuraxis.models.local.planner.catalogue import Slot
from neuraxis.models.local.planner.slots.reading import Candidate, Reader
from neuraxis.models.local.planner.tokens import Token


def spans(reader: Reader, slot: Slot, kind: str) -> list[Candidate]:
    """Spans of the kind that the parameter takes."""
    found: list[Candidate] = []
    order = 0
    like = [other.name for other in reader.tool.slots if other.kind == slot.kind]
    rank = like.index(slot.name)
    for index, token in enumerate(reader.tokens):
        if token.span is None or kind not in token.span.kinds:
            continue
        if kind == "number" and "quoted" in token.span.kinds:
            continue
        value = values.convert(token.span.value, slot, reader.language)
        if isinstance(value, values.Nothing):
            continue
        score = 0.9 + 0.6 * reader.cue(slot, index, index)
        if kind == "number":
            score += _unit(reader, slot, index) - (0.0 if slot.required else 0.35)
            score -= 0.0 if token.text[:1].isdigit() else 0.25
        score -= 0.1 * abs(order - rank)
        order += 1
        _, between = reader.lead(index)
        found.append(Candidate(value=value, tokens=between | {index}, score=score))
    return found


def _unit(reader: Reader, slot: Slot, index: int) -> float:
    """The words around a number that say what it is."""
    own = _own_words(reader, slot)
    names = {reader.language.fold(word) for word in slot.name_words}
    if index + 1 < len(reader.tokens):
        behind = reader.tokens[index + 1]
        if behind.fold in slot.after:
            return 0.9
        if reader.named(behind) and set(slot.name_words) & set(
            reader.language.words("counting")
        ):
            return 0.9
    score = 0.0
    for step, reach in ((-1, 4), (1, 3)):
        place = index + step
        for distance in range(reach):
            if not 0 <= place < len(reader.tokens):
                break
            token = reader.tokens[place]
            if token.span is not None or (
                step > 0 and token.low in (",", *reader.language.words("coordination"))
            ):
                break
            if token.fold in own:
                weight = 0.9 if token.fold in names else 0.5
                score += weight - 0.1 * distance
            elif token.fold in slot.words and token.low not in (
                reader.language.function_words
            ):
                score += 0.2
            place += step
    return min(score, 1.4)


def _own_words(reader: Reader, slot: Slot) -> frozenset[str]:
    """Words of the parameter that no other parameter of its kind has."""
    others = {
        word
        for other in reader.tool.slots
        if other is not slot and other.kind in ("integer", "number")
        for word in other.words
    }
    return slot.words - others


def members(reader: Reader, slot: Slot) -> list[Candidate]:
    """Members of the enum that the clause names."""
    found: list[Candidate] = []
    flat = [
        (index, part)
        for index, token in enumerate(reader.tokens)
        for part in _parts(reader, token)
    ]
    folds = [part for _, part in flat]
    for words, choice in values.phrases(slot, reader.language).items():
        size = len(words)
        for place in range(len(folds) - size + 1):
            if tuple(folds[place : place + size]) == words:
                inside = frozenset(i for i, _ in flat[place : place + size])
                first, last = min(inside), max(inside)
                # The verb may itself be the choice ("lock the door").
                score = 0.9 + 0.2 * size + 0.4 * reader.cue(slot, first, last)
                if size == 1 and len(words[0]) == 1:
                    score -= 1.0
                _, between = reader.lead(first)
                found.append(
                    Candidate(value=choice, tokens=inside | between, score=score)
                )
    return found


def _parts(reader: Reader, token: Token) -> list[str]:
    text = token.span.value if token.span is not None else token.text
    return [reader.language.fold(word) for word in values.split_words(text)]


def switches(reader: Reader, slot: Slot) -> list[Candidate]:
    """True or false, from words such as on, without, enabled."""
    found: list[Candidate] = []
    own = {
        word
        for word in slot.words
        if len(word) > 2 and word not in reader.tool.noun_words
    }
    named = [i for i, token in enumerate(reader.tokens) if token.fold in own]
    for index, token in enumerate(reader.tokens):
        value = values.convert(token.text, slot, reader.language)
        if isinstance(value, bool):
            near = any(abs(index - other) <= 2 for other in named)
            score = 0.4 + (1.0 if near else 0.0) + (0.3 if slot.required else 0.0)
            found.append(Candidate(value=value, tokens=frozenset({index}), score=score))
    words = [word.casefold() for word in slot.name_words]
    for index in named:
        if reader.tokens[index].low in words:
            found.append(Candidate(value=True, tokens=frozenset({index}), score=1.0))
    return found


def moments(reader: Reader, slot: Slot) -> list[Candidate]:
    """Days and times of day that stand together."""
    places = [
        index
        for index, token in enumerate(reader.tokens)
        if token.span is not None and token.span.kinds & {"date", "time"}
    ]
    found: list[Candidate] = []
    for first in places:
        for last in places:
            if not first <= last <= first + 3:
                continue
            text = reader.text(first, last)
            value = values.convert(text, slot, reader.language)
            if not isinstance(value, values.Nothing):
                _, between = reader.lead(first)
                found.append(
                    Candidate(
                        value=value,
                        tokens=between | frozenset(range(first, last + 1)),
                        score=0.9 + 0.5 * reader.cue(slot, first, last),
                    )
                )
    return found
