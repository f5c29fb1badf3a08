"""A clause read as a call of one command: values for its parameters.

A call is complete where each required parameter has a value and each word of the clause
has a place: in a value, as a word that the command is known by, or as one without matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Arguments, Catalogue, Slot, Tool
from neuraxis.models.offline.references import Step, meant, refer
from neuraxis.models.offline.tokens import (
    FUNCTION,
    STEM_GROUPS,
    TYPED,
    Token,
    alike,
    split_name,
    stem,
)
from neuraxis.specs import Json

_NODES = 4000
_BEST = 10
_VERBS = frozenset(word for group in STEM_GROUPS for word in group)
_NO_START = english.DETERMINERS | english.PREPOSITIONS | english.PRONOUNS
_NO_END = english.DETERMINERS | english.PREPOSITIONS | {"and", "or"}
_SOMEBODY = frozenset("it them him her me us".split())
_SIDES = {
    "from": ("source", "origin", "start", "departure", "from", "old", "begin"),
    "to": ("target", "destination", "arrival", "recipient", "to", "new", "end", "until"),
    "into": ("target", "destination", "to", "new"),
    "with": ("new", "with"),
    "till": ("end", "until"),
    "until": ("end", "until"),
    "by": ("by",),
}


class Span(Struct, frozen=True, kw_only=True):
    """A value that tokens of a clause can be for a parameter."""

    begin: int
    end: int
    value: Json
    score: float


class Parse(Struct, frozen=True, kw_only=True):
    """One reading of a clause."""

    tool: Tool
    arguments: Arguments
    score: float
    missing: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Words that have no place in it."""

    @property
    def complete(self) -> bool:
        return not self.missing and not self.left


class Clause(Struct, kw_only=True):
    """A clause with all that its readings are judged by."""

    tokens: Sequence[Token]
    steps: Sequence[Step]
    known: Catalogue

    @property
    def head(self) -> str:
        """The stem of the verb that leads it; empty: a question, or no verb."""
        for token in self.tokens:
            if token.low in english.QUESTION:
                return ""
            if token.kind == "word" and (token.stem in self.known.heads or token.stem in _VERBS):
                return token.stem
        return ""


def readings(tool: Tool, clause: Clause) -> list[Parse]:
    """Return the readings as a call of this command, the best first."""
    lead = _lead(tool, clause)
    if lead is None:
        return []
    tokens = clause.tokens
    options: list[tuple[Slot, list[Span]]] = []
    for slot in tool.slots:
        spans = sorted(_candidates(slot, tool, clause), key=lambda s: -s.score)[:_BEST]
        if spans or slot.required:
            options.append((slot, spans))
    options.sort(key=lambda item: (not item[0].required, len(item[1])))
    found: list[Parse] = []
    nodes = 0

    def go(at: int, taken: dict[str, Span]) -> None:
        nonlocal nodes
        nodes += 1
        if nodes > _NODES:
            return
        if at == len(options):
            found.append(_judged(tool, clause, lead, taken))
            return
        slot, spans = options[at]
        for span in spans:
            if all(s.end <= span.begin or span.end <= s.begin for s in taken.values()):
                go(at + 1, {**taken, slot.name: span})
        go(at + 1, taken)

    if tokens:
        go(0, {})
    found.sort(key=lambda parse: (not parse.complete, -parse.score))
    return found[:20]


def _lead(tool: Tool, clause: Clause) -> float | None:
    """How surely the clause's verb or question asks for this command."""
    head = clause.head
    if head in tool.heads:
        return tool.heads[head]
    if head and any(alike(head, word) for word, w in tool.heads.items() if w >= 0.8):
        return 0.5
    first = [token for token in clause.tokens if token.kind == "word"][:1]
    asks = first and first[0].low in english.QUESTION | {"tell", "give", "show"}
    if head and not asks:
        # "lights off": a noun of the command leads
        nouns = [t for t in clause.tokens[:2] if tool.lexicon.get(t.stem, 0) >= 0.8]
        return 0.3 if nouns and clause.tokens[0].stem != head else None
    return 0.3 if asks and tool.spec.effects.readonly else None


def _judged(
    tool: Tool, clause: Clause, lead: float, taken: Mapping[str, Span]
) -> Parse:
    tokens = clause.tokens
    inside = {place for span in taken.values() for place in range(span.begin, span.end)}
    filled = [slot for slot in tool.slots if slot.name in taken]
    cues = {cue for slot in filled for cue in slot.cues}
    cues |= english.SAYING if any(slot.long for slot in filled) else frozenset()
    known: dict[str, float] = {}
    left: list[str] = []
    for place, token in enumerate(tokens):
        if place in inside or token.kind == "mark":
            continue
        after = tokens[place + 1] if place + 1 < len(tokens) else token
        if (token.low in english.NAMING and after.kind == "quoted") or (
            token.low == "next" and after.kind == "number"
        ):
            continue
        weight = _known(token, tool)
        if token.low in ("and", ",") and after.stem in clause.known.heads:
            left += [after.text] if place + 1 not in inside else []
        if weight:
            rarity = clause.known.weights.get(token.stem, 0.5)
            known[token.stem] = max(known.get(token.stem, 0.0), weight * rarity)
        elif token.kind in TYPED or (token.low not in FUNCTION and token.low not in cues):
            left.append(token.text)
    arguments = {name: span.value for name, span in taken.items()}
    missing = [s.name for s in tool.slots if s.required and s.name not in taken]
    score = lead + sum(known.values()) + sum(span.score for span in taken.values())
    if len(missing) == 1 and not left and clause.steps:
        slot = next(slot for slot in tool.slots if slot.name == missing[0])
        value = meant(slot, (), None, clause.steps) if slot.kind in ("text", "object") else None
        if value is not None and not clause.steps[-1].past:
            arguments[missing.pop()] = value
            score -= 0.2
    similar = max((_similar(sample.tokens, known) for sample in tool.samples), default=0)
    nouns = max((tool.lexicon.get(word, 0.0) for word in known), default=0.0)
    typed = any(slot.required and slot.kind in TYPED for slot in filled)
    weak = lead < 0.5 and nouns < 0.7 and not typed
    if not taken and not missing:
        # nothing but words: they must be those of an example, or of the name
        lows = {token.low for token in tokens}
        named = [w.lower() for w in split_name(tool.spec.name) if stem(w) not in tool.heads]
        weak |= similar < 0.6 and not (named and lows.issuperset(named))
    return Parse(
        tool=tool,
        arguments={s.name: arguments[s.name] for s in tool.slots if s.name in arguments},
        score=score + 0.5 * similar - 0.8 * len(missing) - 0.6 * len(left),
        missing=tuple(missing),
        left=(*left, *(["?"] if weak else [])),
    )


def _known(token: Token, tool: Tool) -> float:
    if token.kind != "word":
        return 0.0
    if (weight := tool.lexicon.get(token.stem)) is not None:
        return weight
    if token.low in FUNCTION or token.low in english.TURNING:
        return 0.0
    near = [w for word, w in tool.lexicon.items() if w >= 0.5 and alike(token.stem, word)]
    return 0.5 * max(near, default=0.0)


def _similar(sample: Sequence[Token], known: Mapping[str, float]) -> float:
    said = {t.stem for t in sample if t.kind == "word" and t.low not in FUNCTION}
    return len(said & set(known)) / max(len(said | set(known)), 1)


# --- candidates ----------------------------------------------------------------


def _candidates(slot: Slot, tool: Tool, clause: Clause) -> Iterator[Span]:
    tokens, kind = clause.tokens, slot.kind
    for begin in range(1, len(tokens) if clause.steps else 0):
        for end, value, score in refer(slot, tokens, begin, clause.steps):
            cue = _cue(slot, tokens, begin, end)
            if slot.required or cue > 0:
                yield Span(begin=begin, end=end, value=value, score=score + cue)
    match kind:
        case "choice":
            yield from _choices(slot, tokens)
        case "boolean":
            yield from _flags(slot, tokens)
        case "number":
            for at, token in enumerate(tokens):
                value = token.value
                if isinstance(value, int | float) and not isinstance(value, bool):
                    yield from _one(slot, tokens, at, value, sure=slot.required)
        case "list":
            yield from _lists(slot, tool, tokens)
        case "text":
            yield from _texts(slot, tool, clause)
        case "object":
            pass
        case "folder":
            for at, token in enumerate(tokens):
                if token.has("folder") or (token.kind == "word" and _is_folder(tokens, at)):
                    yield from _one(slot, tokens, at, token.value, sure=True)
        case _:
            for at, token in enumerate(tokens):
                if token.has(kind) and not token.has("folder"):
                    yield from _one(slot, tokens, at, token.value, sure=True)


def _is_folder(tokens: Sequence[Token], at: int) -> bool:
    near = [*tokens[max(0, at - 2) : at], *tokens[at + 1 : at + 2]]
    word = tokens[at]
    named = any(alike(t.stem, "folder") for t in near)
    return named and word.low not in FUNCTION and not alike(word.stem, "folder")


def _one(
    slot: Slot, tokens: Sequence[Token], at: int, value: Json, *, sure: bool
) -> Iterator[Span]:
    cue = _cue(slot, tokens, at, at + 1)
    if sure or slot.required or cue > 0:
        yield Span(begin=at, end=at + 1, value=value, score=1.0 + cue)


def _cue(slot: Slot, tokens: Sequence[Token], begin: int, end: int) -> float:
    """How clearly the words around a value lead to this parameter."""
    place = begin - 1
    while place >= 0 and (
        tokens[place].low in english.DETERMINERS or tokens[place].text in "'\"(:"
    ):
        place -= 1
    after = tokens[end].stem if end < len(tokens) else ""
    score = 0.8 if slot.kind == "number" and after in slot.words else 0.0
    if place < 0:
        return score
    before = tokens[place]
    if place and (before.stem in slot.words or before.low == slot.name.lower()):
        return 0.8
    side = slot.words & {stem(word) for word in _SIDES.get(before.low, ())}
    if before.low in slot.cues or side or (slot.long and before.low in english.SAYING):
        return max(score, 0.6)
    return score


def _choices(slot: Slot, tokens: Sequence[Token]) -> Iterator[Span]:
    for choice in slot.choices:
        wanted = [stem(word) for word in split_name(str(choice))] or [str(choice)]
        for at, token in enumerate(tokens):
            part = [t.stem for t in tokens[at : at + len(wanted)]]
            if part == wanted or token.value == choice:
                size = len(wanted) if part == wanted else 1
                cue = _cue(slot, tokens, at, at + size)
                yield Span(begin=at, end=at + size, value=choice, score=1.0 + cue)


def _flags(slot: Slot, tokens: Sequence[Token]) -> Iterator[Span]:
    words = slot.words - {"only", "is", "with", "includ", "show"} or slot.words
    lows = [token.low for token in tokens]
    for at, token in enumerate(tokens):
        if len(words) == 1 and (token.stem in words or token.low == slot.name.lower()):
            yield Span(begin=at, end=at + 1, value=True, score=0.6)
    for first, second in english.OPPOSITES:
        for yes, no in ((first, second), (second, first)):
            if (stem(yes) in words or yes == slot.name.lower()) and no in lows:
                at = lows.index(no)
                yield Span(begin=at, end=at + 1, value=False, score=0.7)


def _lists(slot: Slot, tool: Tool, tokens: Sequence[Token]) -> Iterator[Span]:
    items = cast("Mapping[str, Json]", slot.schema.get("items") or {})
    choices = items.get("enum")

    def fits(token: Token) -> bool:
        if choices is not None:
            return token.value in choices or token.low in choices
        if items.get("type") in ("integer", "number"):
            return isinstance(token.value, int | float)
        if token.kind == "word":
            return token.low not in FUNCTION and not tool.lexicon.get(token.stem, 0) >= 0.5
        return token.kind in ("quoted", "email", "url", "path", "date")

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
        cue = _cue(slot, tokens, begin, end)
        if cue > 0 or len(values) > 1:
            yield Span(begin=begin, end=end, value=values, score=0.5 * len(values) + cue)


def _texts(slot: Slot, tool: Tool, clause: Clause) -> Iterator[Span]:
    tokens = clause.tokens
    others = {cue for s in tool.slots if s is not slot for cue in s.cues} - slot.cues
    last = len(tokens)
    while last and tokens[last - 1].kind == "mark":
        last -= 1
    for at, token in enumerate(tokens):
        if token.kind == "quoted" or (token.kind == "code" and slot.quoted):
            cue = _cue(slot, tokens, at, at + 1)
            usual = slot.quoted or slot.long or slot.longest == 0
            if slot.required or cue > 0:
                score = (1.2 if usual else 0.7) + cue
                yield Span(begin=at, end=at + 1, value=token.value, score=score)
    ends = [e for e in range(1, last + 1) if e == last or _is_edge(tokens[e], tool, others)]
    for begin in range(1, last):
        first, before = tokens[begin], tokens[begin - 1]
        saying = slot.long and before.low in english.SAYING
        if first.kind == "mark" or first.low in english.SAYING:
            continue
        if first.low in _NO_START and not saying:
            continue
        if not _is_edge(before, tool, others) and before.low not in slot.cues:
            continue
        for end in (end for end in ends if end > begin):
            score = _run(slot, tool, clause, begin, end, others, end == last)
            if score is not None:
                text = _text(tokens, begin, end)
                yield Span(begin=begin, end=end, value=text, score=score)


def _is_edge(token: Token, tool: Tool, others: Iterable[str]) -> bool:
    return (
        token.kind != "word"
        or token.low in FUNCTION
        or token.low in others
        or tool.lexicon.get(token.stem, 0) > 0
        or token.stem in tool.heads
    )


def _run(
    slot: Slot, tool: Tool, clause: Clause, begin: int, end: int,
    others: Iterable[str], at_end: bool,
) -> float | None:  # fmt: skip
    """How well words that stand without quotes are a text for this parameter."""
    tokens = clause.tokens
    part, lows = tokens[begin:end], {token.low for token in tokens[begin:end]}
    cue = _cue(slot, tokens, begin, end)
    saying = slot.long and tokens[begin - 1].low in english.SAYING
    saying &= not slot.quoted or tokens[begin - 1].low not in ("that", "with")
    if slot.tail and not slot.plain and cue == 0:
        between = tokens[: begin] if clause.head else ()
        objects = [t for t in between if t.low not in FUNCTION]
        cue = 0.5 if len(objects) == 1 and objects[0].stem == clause.head else 0.0
        if cue == 0:
            return None
    free = at_end and (saying or (slot.tail and not slot.plain and cue > 0))
    if not _allowed(slot, part, cue, free=free, saying=saying):
        return None
    if cue == 0 and not clause.head and tokens[begin - 1].low not in english.PREPOSITIONS:
        return None
    score = 0.4 + cue + (0.3 if at_end and slot.tail else 0.0)
    if end < len(tokens) and tokens[end].stem in slot.words:
        score -= 1.0  # "living" of "living room"
    for place, token in enumerate(part, begin):
        rivals = [t for t in clause.known.names.get(token.stem, ()) if t is not tool]
        if rivals and not saying and token.stem not in tool.lexicon:
            # a word that another command is called by is no value, unless led by a verb
            # that asks for no such command
            if slot.plain or any(clause.head in rival.heads for rival in rivals):
                return None
        follows = tokens[place - 1].low in ("and", ",") and place > begin
        if follows and token.stem in clause.known.heads and part[0].low not in english.QUESTION:
            return None  # something else that is to be done
        if token.kind in TYPED:
            score -= 0.2
        elif token.stem in slot.words or (free and cue > 0):
            continue
        elif tool.lexicon.get(token.stem, 0) >= 0.5 or token.stem in tool.heads:
            score -= 0.2
        elif token.low in others or token.low in english.TURNING:
            score -= 0.3
    return score if slot.required or cue > 0 or lows & english.TIMES else None


def _allowed(
    slot: Slot, part: Sequence[Token], cue: float, *, free: bool, saying: bool
) -> bool:
    """Whether these words have the form of this parameter's values."""
    text = " ".join(token.text for token in part)
    lows = {token.low for token in part}
    if part[-1].low in _NO_END or (slot.quoted and not saying):
        return False
    if any(t.kind in ("quoted", "code", "url", "email", "path", "glob") for t in part):
        return False
    if lows & _SOMEBODY and not saying:
        return False
    digits = any(mark.isdigit() for mark in text)
    if not saying:
        if slot.shape == "digits" and (not digits or len(part) > slot.longest > 0):
            return False
        if slot.shape == "capitals" and not text.isupper():
            return False
        if slot.shape == "letters" and digits and not free:
            return False
    if slot.words & english.MOMENTS or slot.name.lower() in english.MOMENTS:
        timely = english.TIMES | FUNCTION | english.MOMENTS | {"next"} | english.NUMBERS.keys()
        return bool(lows - FUNCTION) and all(
            token.low in timely or any(mark.isdigit() for mark in token.low) for token in part
        )
    if free:
        return True
    odd = FUNCTION | english.TURNING
    if slot.plain and (lows & odd or any(t.kind == "mark" for t in part)):
        return False
    if text.islower() and text.endswith("ly"):
        return False
    if slot.long and cue == 0:
        return False
    return part[0].low not in FUNCTION and len(part) <= max(3, 2 * slot.longest)


def _text(tokens: Sequence[Token], begin: int, end: int) -> str:
    """The words as they were written."""
    found = tokens[begin].text
    for before, token in zip(tokens[begin:end], tokens[begin + 1 : end], strict=False):
        found += " " * (token.start > before.end) + token.text
    return found.removesuffix("'s").removesuffix("’s") if end < len(tokens) else found
