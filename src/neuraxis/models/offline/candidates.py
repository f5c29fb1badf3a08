"""Values that a clause can hold for one parameter."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Catalogue, Slot, Tool
from neuraxis.models.offline.references import Step, refer
from neuraxis.models.offline.tokens import TYPED, Token, alike, split_name, stem
from neuraxis.specs import Json

_NO_END = english.DETERMINERS | english.PREPOSITIONS | {"and", "or"}
_NO_START = _NO_END | english.PRONOUNS
_BEFORE = english.PREPOSITIONS | {"does", "do", "is", "are", "has"}
_ADDRESSES = ("quoted", "code", "url", "email", "path", "glob")
_TIMELY = english.TIMES | english.MOMENTS | english.FUNCTION | english.NUMBERS.keys()


class Span(Struct, frozen=True, kw_only=True):
    """A value that tokens of a clause can be for a parameter."""

    begin: int
    end: int
    value: Json
    score: float


def spans_of(
    slot: Slot, tool: Tool, tokens: Sequence[Token], head: str,
    steps: Sequence[Step], known: Catalogue,
) -> Iterator[Span]:  # fmt: skip
    """Yield all values for a parameter, results of earlier steps first."""
    for begin in range(1, len(tokens) if steps else 0):
        for end, value, score in refer(slot, tokens, begin, steps):
            cue = _cue(slot, tokens, begin, end)
            if slot.required or cue > 0:
                yield Span(begin=begin, end=end, value=value, score=score + cue)
    if slot.kind == "choice":
        yield from _choices(slot, tokens)
    elif slot.kind == "boolean":
        yield from _flags(slot, tokens)
    elif slot.kind == "list":
        yield from _lists(slot, tool, tokens)
    elif slot.kind == "text":
        yield from _texts(slot, tool, tokens, head, known)
    elif slot.kind != "object":
        for at, token in enumerate(tokens):
            cue = _cue(slot, tokens, at, at + 1)
            if _is(slot.kind, tokens, at) and (
                slot.required or slot.kind != "number" or cue > 0
            ):
                yield Span(begin=at, end=at + 1, value=token.value, score=1.0 + cue)


def _is(kind: str, tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    if kind == "number":
        return isinstance(token.value, int | float)
    if kind != "folder":
        return token.has(kind) and not token.has("folder")
    near = [*tokens[max(0, at - 2) : at], *tokens[at + 1 : at + 2]]
    named = token.kind == "word" and any(alike(t.stem, "folder") for t in near)
    word = token.low not in english.FUNCTION and not alike(token.stem, "folder")
    return token.has("folder") or (named and word)


def _cue(slot: Slot, tokens: Sequence[Token], begin: int, end: int) -> float:
    """How clearly the words around a value lead to this parameter."""
    place = begin - 1
    while place >= 0 and (
        tokens[place].low in english.DETERMINERS or tokens[place].text in "'\"(:"
    ):
        place -= 1
    after = tokens[end].stem if end < len(tokens) else ""
    if "year" in slot.words and len(tokens[begin].text) == 4:
        return 0.6
    score = 0.8 if slot.kind == "number" and after in slot.words else 0.0
    if place < 0:
        return score
    before = tokens[place]
    if place and (before.stem in slot.words or before.low == slot.name.lower()):
        return 0.8
    side = slot.words & english.SIDES.get(before.low, frozenset())
    if before.low in slot.cues or side or (slot.long and before.low in english.SAYING):
        return max(score, 0.6)
    return score


def _choices(slot: Slot, tokens: Sequence[Token]) -> Iterator[Span]:
    for choice in slot.choices:
        wanted = [stem(word) for word in split_name(str(choice))] or [str(choice)]
        for at, token in enumerate(tokens):
            worded = [t.stem for t in tokens[at : at + len(wanted)]] == wanted
            if worded or token.value == choice:
                end = at + (len(wanted) if worded else 1)
                cue = _cue(slot, tokens, at, end)
                yield Span(begin=at, end=end, value=choice, score=1.0 + cue)


def _flags(slot: Slot, tokens: Sequence[Token]) -> Iterator[Span]:
    words = slot.words - {"only", "is", "with", "includ", "show"} or slot.words
    names = words | {slot.name.lower()}
    against = {
        no
        for pair in english.OPPOSITES
        for yes, no in (pair, pair[::-1])
        if yes in names or stem(yes) in words
    }
    for at, token in enumerate(tokens):
        if len(words) == 1 and (token.stem in words or token.low in names):
            yield Span(begin=at, end=at + 1, value=True, score=0.6)
        elif token.low in against:
            yield Span(begin=at, end=at + 1, value=False, score=0.7)


def _lists(slot: Slot, tool: Tool, tokens: Sequence[Token]) -> Iterator[Span]:
    items = cast("Mapping[str, Json]", slot.schema.get("items") or {})

    def fits(token: Token) -> bool:
        if "enum" in items:
            return token.value in items["enum"] or token.low in items["enum"]
        if items.get("type") in ("integer", "number"):
            return isinstance(token.value, int | float)
        if token.kind != "word":
            return token.kind in ("quoted", "email", "url", "path", "date")
        known = tool.lexicon.get(token.stem, 0) >= 0.5
        return token.low not in english.FUNCTION and not known

    for begin, token in enumerate(tokens):
        if not fits(token) or (begin and fits(tokens[begin - 1])):
            continue
        values, end = [token.value], begin + 1
        while end < len(tokens):
            after = end
            while after < len(tokens) and tokens[after].low in (",", "and", "&"):
                after += 1
            if after == end or after >= len(tokens) or not fits(tokens[after]):
                break
            values.append(tokens[after].value)
            end = after + 1
        cue, size = _cue(slot, tokens, begin, end), len(values)
        if cue > 0 or size > 1:
            yield Span(begin=begin, end=end, value=values, score=0.5 * size + cue)


# --- texts without quotes ---------------------------------------------------------


def _texts(
    slot: Slot, tool: Tool, tokens: Sequence[Token], head: str, known: Catalogue
) -> Iterator[Span]:
    others = {cue for s in tool.slots if s is not slot for cue in s.cues} - slot.cues
    if any(other.long for other in tool.slots if other is not slot):
        others |= english.SAYING
    last = len(tokens)
    while last and tokens[last - 1].kind == "mark":
        last -= 1
    for at, token in enumerate(tokens):
        if token.kind == "quoted" or (token.kind == "code" and slot.quoted):
            cue = _cue(slot, tokens, at, at + 1)
            score = 1.2 if slot.quoted or slot.long or slot.longest == 0 else 0.7
            if slot.required or cue > 0:
                yield Span(begin=at, end=at + 1, value=token.value, score=score + cue)
    edges = [_is_edge(token, tool, others) for token in tokens] + [True] * 2
    for begin in range(1, last):
        first, before = tokens[begin], tokens[begin - 1]
        saying = slot.long and before.low in english.SAYING
        saying &= not slot.quoted or before.low not in ("that", "with")
        if first.kind == "mark" or first.low in english.SAYING:
            continue
        if first.low in _NO_START and not saying:
            continue
        if not (edges[begin - 1] or saying or before.low in slot.cues):
            continue
        run = _Run(slot, tool, tokens, begin, head, saying, others, known)
        for end in range(begin + 1, last + 1):
            if edges[end] or end == last:
                score = run.score(end, at_end=end == last)
                if score is not None:
                    text = _text(tokens, begin, end)
                    yield Span(begin=begin, end=end, value=text, score=score)


def _is_edge(token: Token, tool: Tool, others: Collection[str]) -> bool:
    known = token.stem in tool.heads or token.stem in tool.lexicon
    odd = token.low in english.FUNCTION or token.low in others
    return token.kind != "word" or odd or known


class _Run(Struct, frozen=True):
    """Words from one place on, as a text."""

    slot: Slot
    tool: Tool
    tokens: Sequence[Token]
    begin: int
    head: str
    saying: bool
    others: Collection[str]
    known: Catalogue

    def score(self, end: int, *, at_end: bool) -> float | None:
        """Return how well they are a text for the parameter, or None."""
        slot, tokens, begin = self.slot, self.tokens, self.begin
        cue = _cue(slot, tokens, begin, end)
        before = tokens[begin - 1].low
        if slot.tail and not slot.plain and cue == 0:
            objects = [t for t in tokens[:begin] if t.low not in english.FUNCTION]
            if not self.head or [t.stem for t in objects] != [self.head]:
                return None
            cue = 0.5
        free = at_end and (self.saying or (slot.tail and not slot.plain))
        if not _allowed(slot, tokens[begin:end], cue, free=free, saying=self.saying):
            return None
        if cue == 0 and not self.head and before not in _BEFORE:
            return None
        if cue == 0 and not slot.required:
            return None
        score = 0.4 + cue + (0.3 if at_end and slot.tail else 0.0)
        if end < len(tokens) and tokens[end].stem in slot.words:
            score -= 1.0  # "living" of "living room"
        for place in range(begin, end):
            lost = self._lost(place, free=free)
            if lost is None:
                return None
            score -= lost
        return score

    def _lost(self, place: int, *, free: bool) -> float | None:
        """Return what a word costs in the text, or None."""
        slot, tool, token = self.slot, self.tool, self.tokens[place]
        rivals = [t for t in self.known.names.get(token.stem, ()) if t is not tool]
        named = rivals and not self.saying and token.stem not in tool.lexicon
        # what another command is called by is no value, unless a verb leads that asks
        # for no such command
        if named and (slot.plain or any(self.head in rival.heads for rival in rivals)):
            return None
        follows = place > self.begin and self.tokens[place - 1].low in ("and", ",")
        asks = self.tokens[self.begin].low in english.QUESTION
        if follows and token.stem in self.known.heads and not asks:
            return None  # something else that is to be done
        if token.kind in TYPED:
            return 0.2
        if token.stem in slot.words or free:
            return 0.0
        if tool.lexicon.get(token.stem, 0) >= 0.5 or token.stem in tool.heads:
            return 0.2
        return 0.3 if token.low in self.others or token.low in english.TURNING else 0.0


def _allowed(
    slot: Slot, part: Sequence[Token], cue: float, *, free: bool, saying: bool
) -> bool:
    """Whether these words have the form of this parameter's values."""
    text = " ".join([token.text for token in part])
    lows = {token.low for token in part}
    digits = any(mark.isdigit() for mark in text)
    if part[-1].low in _NO_END or (slot.quoted and not saying):
        return False
    if any(token.kind in _ADDRESSES for token in part):
        return False
    if saying:
        return free
    if lows & english.SOMEBODY:
        return False
    if slot.shape == "digits" and (not digits or len(part) > slot.longest > 0):
        return False
    if slot.shape == "capitals" and not text.isupper():
        return False
    if slot.words & english.MOMENTS or slot.name.lower() in english.MOMENTS:
        timely = all(t.low in _TIMELY or any(c.isdigit() for c in t.low) for t in part)
        return timely and not lows <= english.FUNCTION
    if free:
        return True
    if slot.shape == "letters" and digits:
        return False
    odd = lows & (english.FUNCTION | english.TURNING)
    if slot.plain and (odd or any(token.kind == "mark" for token in part)):
        return False
    if (text.islower() and text.endswith("ly")) or (slot.long and cue == 0):
        return False
    return part[0].low not in english.FUNCTION and len(part) <= max(3, 2 * slot.longest)


def _text(tokens: Sequence[Token], begin: int, end: int) -> str:
    """The words as they were written."""
    found = tokens[begin].text
    for place in range(begin + 1, end):
        found += (
            " " * (tokens[place].start > tokens[place - 1].end) + tokens[place].text
        )
    return found.removesuffix("'s").removesuffix("’s") if end < len(tokens) else found
