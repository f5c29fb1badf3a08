"""Find the values that a clause may contain for a parameter."""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Catalogue, Slot, Tool
from neuraxis.models.offline.references import Step, refer
from neuraxis.models.offline.tokens import TYPED, Token, alike, named, stem
from neuraxis.specs import Json

_NO_END = english.DETERMINERS | english.PREPOSITIONS | {"and", "or"}
_NO_START = _NO_END | english.PRONOUNS
_SKIPPED = english.DETERMINERS | {"'", '"', "(", ":"}
_BEFORE = english.PREPOSITIONS | {"does", "do", "is", "are", "has"}
_ADDRESSES = ("quoted", "code", "url", "email", "path", "glob")
_EDGES = english.FUNCTION | english.DAYS
_TAIL = english.TIMES | {"this", "last"}
_TIMELY = english.TIMES | english.MOMENTS | english.FUNCTION | english.NUMBERS.keys()
_SIDES = frozenset[str]().union(*english.SIDES.values())


class Clause(Struct, frozen=True, kw_only=True):
    """Clause, with the context that its readings are scored by."""

    tokens: Sequence[Token]
    steps: Sequence[Step]
    catalogue: Catalogue
    head: str  # the stem of its verb; empty for a question


class Span(Struct, frozen=True):
    """Candidate value for a parameter: a range of tokens."""

    begin: int
    end: int
    value: Json
    score: float


def spans_of(slot: Slot, tool: Tool, clause: Clause) -> Iterator[Span]:
    """Yield all values for a parameter, results of earlier steps first."""
    tokens, kind = clause.tokens, slot.kind
    for begin in range(1, len(tokens) if clause.steps else 0):
        for end, value, score in refer(slot, tokens, begin, clause.steps):
            cue = _cue(slot, tokens, begin, end)
            if slot.required or cue > 0:
                yield Span(begin, end, value, score + cue)
    if kind in ("choice", "boolean"):
        yield from _choices(slot, tokens) if kind == "choice" else _flags(slot, tokens)
    elif kind == "text":
        yield from _texts(slot, tool, clause)
    elif kind not in ("object", "list"):
        for at, token in enumerate(tokens):
            cue = _cue(slot, tokens, at, at + 1)
            sure = slot.required or kind != "number" or cue > 0
            if sure and _is(kind, token):
                yield Span(at, at + 1, token.value, 1.0 + cue)
            elif kind == "glob" and token.low.removesuffix("s") in english.ENDINGS:
                ending = english.ENDINGS[token.low.removesuffix("s")]
                yield Span(at, at + 1, f"*.{ending}", 1.0)


def _is(kind: str, token: Token) -> bool:
    if kind == "number":
        return isinstance(token.value, int | float)
    return token.has(kind) and (kind == "folder" or not token.has("folder"))


def _cue(slot: Slot, tokens: Sequence[Token], begin: int, end: int) -> float:
    after = tokens[end].stem if end < len(tokens) else ""
    score = 0.8 if slot.kind == "number" and after in slot.words else 0.0
    place = begin - 1
    while place >= 0 and (tokens[place].low in _SKIPPED):
        place -= 1
    if place < 0:
        return score
    before = tokens[place]
    if place and (before.stem in slot.words or before.low == slot.name.lower()):
        return 0.8
    if slot.kind == "number" and tokens[max(0, place - 1)].stem in slot.words:
        return 0.8  # "spin at 1400"
    is_saying = slot.long and before.low in english.SAYING
    side = slot.words & english.SIDES.get(before.low, frozenset())
    return max(score, 0.6) if before.low in slot.cues or side or is_saying else score


def _opposed(slot: Slot, tokens: Sequence[Token], at: int) -> bool:
    """Return whether the preposition contradicts: "from" before a recipient."""
    side = english.SIDES.get(tokens[at - 1].low) if at else None
    return side is not None and bool(slot.words & _SIDES) and not slot.words & side


def _choices(slot: Slot, tokens: Sequence[Token]) -> Iterator[Span]:
    for choice in slot.choices:
        choice_words = [stem(word) for word in named(str(choice))] or [str(choice)]
        for at, token in enumerate(tokens):
            pairs = zip((t.stem for t in tokens[at:]), choice_words, strict=False)
            is_match = at + len(choice_words) <= len(tokens)
            is_match &= all(one == two or alike(one, two) for one, two in pairs)
            if is_match or token.value == choice:
                end = at + (len(choice_words) if is_match else 1)
                yield Span(at, end, choice, 1.0 + _cue(slot, tokens, at, end))


def _flags(slot: Slot, tokens: Sequence[Token]) -> Iterator[Span]:
    names = slot.words | {slot.name.lower()}
    pairs = [both for pair in english.OPPOSITES for both in (pair, pair[::-1])]
    negations = {no for yes, no in pairs if {yes, stem(yes)} & names}
    for at, token in enumerate(tokens):
        if len(slot.words) == 1 and {token.stem, token.low} & names:
            yield Span(at, at + 1, True, 0.6)
        elif token.low in negations:
            yield Span(at, at + 1, False, 0.7)


def _texts(slot: Slot, tool: Tool, clause: Clause) -> Iterator[Span]:
    tokens = clause.tokens
    other_slots = [other for other in tool.slots if other is not slot]
    stop_words = {cue for other in other_slots for cue in other.cues} - slot.cues
    stop_words |= (
        english.SAYING if any(other.long for other in other_slots) else frozenset()
    )
    last = max([n for n, t in enumerate(tokens, 1) if t.kind != "mark"], default=0)
    takes = slot.takes - {other.kind for other in other_slots}
    for at, token in enumerate(tokens):
        if not takes.isdisjoint((token.kind, token.inner)):
            cue = _cue(slot, tokens, at, at + 1)
            if cue > 0 or (slot.required and not _opposed(slot, tokens, at)):
                yield Span(at, at + 1, token.value, 0.9 + cue)
        if token.kind == "quoted" or (token.kind == "code" and slot.quoted):
            cue = _cue(slot, tokens, at, at + 1)
            score = 1.2 if slot.quoted or slot.long or slot.longest == 0 else 0.7
            if slot.required or cue > 0:
                yield Span(at, at + 1, token.value, score + cue)
    edges = [_is_edge(token, tool, stop_words) for token in tokens] + [True]
    for begin in range(1, last):
        first, before = tokens[begin], tokens[begin - 1]
        saying = slot.long and before.low in english.SAYING
        saying &= not slot.quoted or before.low not in ("that", "with")
        barred = first.kind == "mark" or first.low in english.SAYING
        barred |= first.low in _NO_START and not saying
        is_introduced = edges[begin - 1] or saying or before.low in slot.cues
        if barred or not (is_introduced or _titled(slot, tool, tokens, begin - 1)):
            continue
        for end in range(begin + 1, last + 1):
            if edges[end] or end == last:
                ends = (begin, end, last)
                score = _score(slot, tool, clause, ends, saying, stop_words)
                if score is not None:
                    yield Span(begin, end, _text(tokens, begin, end), score)


def _is_edge(token: Token, tool: Tool, stop_words: Collection[str]) -> bool:
    is_command_word = token.stem in tool.heads or token.stem in tool.lexicon
    is_stop_word = token.low in _EDGES or token.low in stop_words
    return token.kind != "word" or is_stop_word or is_command_word


def _score(
    slot: Slot, tool: Tool, clause: Clause, ends: tuple[int, int, int],
    saying: bool, stop_words: Collection[str],
) -> float | None:  # fmt: skip
    tokens, (begin, end, last) = clause.tokens, ends
    cue = _cue(slot, tokens, begin, end)
    if slot.tail and not slot.plain and cue == 0:
        objects = [t for t in tokens[:begin] if t.low not in english.FUNCTION]
        if not clause.head or [t.stem for t in objects] != [clause.head]:
            return None
        cue = 0.5
    free = end == last and (saying or (slot.tail and not slot.plain))
    if not _allowed(slot, tokens[begin:end], cue, free=free, saying=saying):
        return None
    if not free and any(_titled(slot, tool, tokens, n) for n in range(begin, end - 1)):
        return None
    is_bare_question = not clause.head and tokens[begin - 1].low not in _BEFORE
    if cue == 0 and (is_bare_question or not slot.required):
        return None
    score = 0.4 + cue + (0.3 if end == last and slot.tail else 0.0)
    if end < len(tokens) and tokens[end].stem in slot.words:
        score -= 1.0  # "living" of "living room"
    for place in range(begin, end):
        token, stem_ = tokens[place], tokens[place].stem
        rivals = [t for t in clause.catalogue.names.get(stem_, ()) if t is not tool]
        is_rival_name = rivals and not saying and stem_ not in tool.lexicon
        # another command's name is no value, unless the clause's verb belongs to none
        # of these commands
        if is_rival_name and (
            slot.plain or any(clause.head in t.heads for t in rivals)
        ):
            return None
        follows = place > begin and tokens[place - 1].low in ("and", ",")
        asks = tokens[begin].low in english.QUESTION
        if follows and stem_ in clause.catalogue.heads and not asks:
            return None  # the beginning of another action
        is_stop_word = token.low in stop_words or token.low in english.TURNING
        if token.kind in TYPED:
            score -= 0.2
        elif stem_ not in slot.words and not free:
            is_command_word = tool.lexicon.get(stem_, 0) >= 0.5 or stem_ in tool.heads
            score -= 0.2 if is_command_word or is_stop_word else 0.0
    return score


def _titled(slot: Slot, tool: Tool, tokens: Sequence[Token], place: int) -> bool:
    """Return whether this word titles the next number or code: "ticket A-7"."""
    token, after = tokens[place], tokens[place + 1]
    coded = after.kind != "mark" and any(mark.isdigit() for mark in after.low)
    if not coded or token.kind != "word" or token.low in slot.value_words:
        return False
    nouns = [word for word, weight in tool.lexicon.items() if weight >= 0.5]
    return token.stem in tool.lexicon or any(alike(token.stem, w) for w in nouns)


def _dated(part: Sequence[Token]) -> bool:
    """Return whether it ends with a day: "Rome tomorrow", "Rome next week"."""
    tail = 0
    while tail < len(part) and part[-1 - tail].low in _TAIL:
        tail += 1
    last = {token.low for token in part[len(part) - tail :]}
    return tail > 1 or bool(last & english.DAYS)


def _allowed(
    slot: Slot, part: Sequence[Token], cue: float, *, free: bool, saying: bool
) -> bool:
    text = " ".join([token.text for token in part])
    lows = {token.low for token in part}
    digits = any(mark.isdigit() for mark in text)
    shaped = {
        "digits": digits and not len(part) > slot.longest > 0,
        "capitals": text.isupper(),
        "letters": free or not digits,
    }
    if part[-1].low in _NO_END or (slot.quoted and not saying):
        return False
    if any(token.kind in _ADDRESSES for token in part):
        return False
    if saying:
        return free
    is_number = lows <= english.NUMBERS.keys() | english.ORDINALS.keys()
    if is_number or lows & english.SOMEBODY or not shaped.get(slot.shape, True):
        return False
    if slot.words & english.MOMENTS or slot.name.lower() in english.MOMENTS:
        timely = all(t.low in _TIMELY or any(c.isdigit() for c in t.low) for t in part)
        return timely and part[0].low not in english.FUNCTION - {"this"}
    if free:
        return True
    if not slot.moment and _dated(part):
        return False
    kinds = {token.kind for token in part}
    counts = [token for token in part if isinstance(token.value, int | float)]
    stop_words = lows & (english.FUNCTION | english.TURNING) or "mark" in kinds
    manner = text.islower() and text.endswith("ly")
    manner |= cue == 0 and len(part) > 1 and bool(counts)
    if (slot.plain and stop_words) or manner or (slot.long and cue == 0):
        return False
    return part[0].low not in english.FUNCTION and len(part) <= max(3, 2 * slot.longest)


def _text(tokens: Sequence[Token], begin: int, end: int) -> str:
    pairs = pairwise(tokens[begin:end])
    following = [" " * (after.start > one.end) + after.text for one, after in pairs]
    found = "".join([tokens[begin].text, *following])
    owner = end < len(tokens) and tokens[end].kind == "word"
    owner = owner and tokens[end].low not in english.FUNCTION  # "at Luigi's for two"
    return found.removesuffix("'s").removesuffix("’s") if owner else found
