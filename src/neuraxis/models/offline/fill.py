"""Parse a clause as a call of one command."""

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.models.offline import english
from neuraxis.models.offline.candidates import Clause, Span, spans_of
from neuraxis.models.offline.catalogue import Arguments, Catalogue, Slot, Tool
from neuraxis.models.offline.references import meant
from neuraxis.models.offline.tokens import (
    TYPED,
    VERBS,
    Token,
    alike,
    named,
    stem,
    stems,
)

_DOING = (ast.Call, ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef)
_BEST, _WAYS = 10, 1000


class Parse(Struct, frozen=True, kw_only=True):
    """One reading of a clause."""

    tool: Tool
    arguments: Arguments
    score: float
    missing: tuple[str, ...] = ()
    unplaced: tuple[
        str, ...
    ] = ()  # words without a place in the call; "?" if it is uncertain

    @property
    def complete(self) -> bool:
        """Whether the call is complete."""
        return not self.missing and not self.unplaced


def asks_advice(tokens: Sequence[Token], catalogue: Catalogue) -> bool:
    """Return whether it asks for advice: "Should I …?"."""
    for one, after in pairwise(tokens):
        if one.low in english.ADVICE and after.low in ("i", "we"):
            return True
        if one.kind == "word" and (one.stem in catalogue.heads or one.stem in VERBS):
            return False
    return False


def head_of(tokens: Sequence[Token], catalogue: Catalogue) -> str:
    """Return the stem of a clause's verb; empty for a question."""
    for token in tokens:
        if token.low in english.QUESTION:
            return ""
        if token.kind == "word" and (
            token.stem in catalogue.heads or token.stem in VERBS
        ):
            return token.stem
    return ""


def readings(tool: Tool, clause: Clause) -> list[Parse]:
    """Return the readings as a call of this command, best first."""
    lead = _lead(tool, clause.tokens, clause.head)
    if lead is None:
        return []
    options: list[tuple[Slot, list[Span]]] = []
    for slot in tool.slots:
        spans = list(spans_of(slot, tool, clause))
        if spans or slot.required:
            options.append((slot, sorted(spans, key=lambda s: -s.score)[:_BEST]))
    options.sort(key=lambda item: (not item[0].required, len(item[1])))
    fillings: list[dict[str, Span]] = [{}]
    for slot, spans in options:
        free = [
            {**filling, slot.name: span}
            for filling in fillings
            for span in spans
            if all(s.end <= span.begin or span.end <= s.begin for s in filling.values())
        ]
        fillings = [*free, *fillings][:_WAYS]
    parses = [_scored(tool, clause, lead, filling) for filling in fillings]
    return sorted(parses, key=lambda parse: (not parse.complete, -parse.score))[:20]


def _lead(tool: Tool, tokens: Sequence[Token], head: str) -> float | None:
    if head in tool.heads:
        return tool.heads[head]
    if head and any(alike(head, word) for word, w in tool.heads.items() if w >= 0.8):
        return 0.5
    first = next((token.low for token in tokens if token.kind == "word"), "")
    asks = first in english.QUESTION or first in ("tell", "give", "show")
    return 0.3 if asks and tool.spec.effects.readonly else None


def _scored(
    tool: Tool, clause: Clause, lead: float, spans: Mapping[str, Span]
) -> Parse:
    tokens, steps = clause.tokens, clause.steps
    filled = [slot for slot in tool.slots if slot.name in spans]
    weights, unplaced = _word_weights(tool, clause, filled, spans)
    arguments = {name: span.value for name, span in spans.items()}
    missing = [s for s in tool.slots if s.required and s.name not in spans]
    score = lead + sum(weights.values()) + sum(span.score for span in spans.values())
    if len(missing) == 1 and not unplaced and steps and not steps[-1].past:
        value = meant(missing[0], (), None, steps)
        if missing[0].kind in ("text", "object") and value is not None:
            # "save as x.txt": the previous result
            arguments[missing.pop().name] = value
            score -= 0.2
    similar = max([_similar(one.tokens, weights) for one in tool.samples], default=0.0)
    nouns = max((tool.lexicon.get(word, 0.0) for word in weights), default=0.0)
    typed = any(slot.required and slot.kind in TYPED for slot in filled)
    weak = lead < 0.5 and nouns < 0.7 and not typed
    if not spans and not missing:
        # only words, no values: they must match an example or the command's name
        lows = {token.low for token in tokens}
        verbs = tool.heads.keys() & VERBS if tool.spec.effects.readonly else tool.heads
        names = [w for w in named(tool.spec.name) if stem(w) not in verbs]
        weak |= similar < 0.6 and not (names and lows >= {w.lower() for w in names})
    return Parse(
        tool=tool,
        arguments={
            s.name: arguments[s.name] for s in tool.slots if s.name in arguments
        },
        score=score + 0.5 * similar - 0.8 * len(missing) - 0.6 * len(unplaced),
        missing=tuple([slot.name for slot in missing]),
        unplaced=(*unplaced, "?") if weak else tuple(unplaced),
    )


def _word_weights(
    tool: Tool, clause: Clause, filled: Sequence[Slot], spans: Mapping[str, Span]
) -> tuple[dict[str, float], list[str]]:
    places = {place for span in spans.values() for place in range(span.begin, span.end)}
    silent = english.FUNCTION.union(*(slot.cues for slot in filled))
    silent |= english.SAYING if any(slot.long for slot in filled) else frozenset()
    tokens, catalogue = clause.tokens, clause.catalogue
    weights: dict[str, float] = {}
    unplaced: list[str] = []
    for place, token in enumerate(tokens):
        after = tokens[min(place + 1, len(tokens) - 1)]
        if place in places:
            continue
        if token.low in ("and", ",") and place + 1 not in places:
            unplaced += [after.text] if after.stem in catalogue.heads else []
        names = token.low in english.NAMING and after.kind == "quoted"
        if token.kind == "mark" or names:
            continue
        if weight := _weight(token, tool):
            weight *= catalogue.weights.get(token.stem, 0.5)
            weights[token.stem] = max(weights.get(token.stem, 0.0), weight)
        elif token.kind in TYPED or token.low not in silent:
            unplaced.append(token.text)
    return weights, unplaced


def fit(tool: Tool, tokens: Sequence[Token], catalogue: Catalogue) -> float:
    """Return the share of these words' meaning that the command covers."""
    choices = {
        word for slot in tool.slots for c in slot.choices for word in stems(str(c))
    }
    score = 0.0
    for token in {t.stem: t for t in tokens if t.kind == "word"}.values():
        word = token.stem
        score += _weight(token, tool) * catalogue.weights.get(word, 0.5)
        chosen = token.low not in english.FUNCTION
        chosen &= word in choices or any(alike(word, c) for c in choices)
        score += 0.4 if chosen else 0.0
    return score + 0.3 * max([tool.heads.get(t.stem, 0.0) for t in tokens], default=0.0)


def _weight(token: Token, tool: Tool) -> float:
    if token.kind != "word":
        return 0.0
    if token.stem in tool.lexicon:
        return tool.lexicon[token.stem]
    if token.low in english.FUNCTION or token.low in english.TURNING:
        return 0.0
    similar = [w for word, w in tool.lexicon.items() if alike(token.stem, word)]
    return 0.5 * max([w for w in similar if w >= 0.5], default=0.0)


def _similar(sample: Sequence[Token], weights: Mapping[str, float]) -> float:
    content_tokens = [
        t for t in sample if t.kind == "word" and t.low not in english.FUNCTION
    ]
    words = {token.stem for token in content_tokens}
    return len(words & set(weights)) / max(len(words | set(weights)), 1)


def programmed(parse: Parse, tokens: Sequence[Token]) -> Parse:
    """Return the reading with code for a program's contents.

    "A script that prints 'x'" is `print('x')`; other programs need a language model.
    """
    slots = parse.tool.slots
    paths = [s.name for s in slots if s.schema.get("x-names-file") == "write"]
    texts = [s.name for s in slots if s.required and s.long and s.kind == "text"]
    if len(paths) != 1 or len(texts) != 1:
        return parse
    arguments, unplaced = dict(parse.arguments), parse.unplaced
    (path,), (text,) = paths, texts
    lows = {token.low for token in tokens if token.kind == "word"}
    program = bool(lows & english.PROGRAM) or str(arguments.get(path)).endswith(".py")
    if path not in arguments:
        named = [a.low for a, b in pairwise(tokens) if b.low == "file"]
        endings = [english.ENDINGS[low] for low in named if low in english.ENDINGS]
        if not endings and not program:
            return parse
        arguments[path] = "script.py" if program else f"result.{endings[0]}"
    written = str(arguments.get(text, "{{"))
    acts = False
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        acts = any(isinstance(node, _DOING) for node in ast.walk(ast.parse(written)))
    if program and "{{" not in written and not acts:
        if lows & english.PRINTING:
            arguments[text] = f"print({written!r})\n"
        else:
            unplaced = (*unplaced, "program")
    missing = tuple([name for name in parse.missing if name != path])
    return replace(parse, arguments=arguments, missing=missing, unplaced=unplaced)
