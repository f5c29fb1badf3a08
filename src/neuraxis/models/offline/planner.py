"""A request in, a plan out, or what hindered it.

A plan is made only where every clause has one reading that leads clearly, all words and
values have a place, and each call passes the command's own schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.messages import Path
from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Arguments, Catalogue, Tool
from neuraxis.models.offline.clauses import bare, cuts, pieces
from neuraxis.models.offline.fill import Clause, Parse, readings
from neuraxis.models.offline.programs import programmed
from neuraxis.models.offline.references import Step
from neuraxis.models.offline.templates import worded
from neuraxis.models.offline.tokens import (
    FUNCTION,
    LONGEST,
    Token,
    alike,
    stem,
    tokenise,
)
from neuraxis.schema import Schema
from neuraxis.specs import Json

LEAD = 0.25
"""How much better the best reading must be than the next."""
_SHOWING = frozenset(stem(word) for word in english.SHOWING)


class Planned(Struct, frozen=True, kw_only=True):
    """The steps of a plan, or why there is none."""

    steps: tuple[Step, ...] = ()
    nearest: Parse | None = None
    """The best reading of the clause that was not understood."""
    clause: str = ""
    rivals: tuple[str, ...] = ()
    """Commands that fit equally well."""


def plan(
    request: str, catalogue: Catalogue, earlier: Sequence[Sequence[Step]] = ()
) -> Planned:
    """Plan a request.

    Args:
        request: what the person wrote.
        catalogue: the commands there are.
        earlier: the calls of the turns before, the latest last.
    """
    if len(request) > LONGEST:
        return Planned(clause=request[:60] + "…")
    past = [replace(step, past=True) for turn in earlier for step in turn]
    text = bare(request)
    if earlier and (again := _again(tokenise(request), earlier[-1], catalogue)):
        return Planned(steps=(again,))
    tokens = tokenise(text)
    for sample in catalogue.chains:
        calls = worded(sample, tokens)
        if calls is not None and all(_valid(tool, given) for tool, given in calls):
            return Planned(steps=tuple(Step(tool=t, arguments=a) for t, a in calls))
    failed: Planned | None = None
    for parts, tail in _cut_ways(text, catalogue):
        found = _steps(parts, tail, catalogue, past)
        if found.steps:
            return found
        failed = failed or found
    return failed or Planned(clause=text)


def _cut_ways(text: str, catalogue: Catalogue) -> Iterator[tuple[list[str], bool]]:
    """Ways to cut a request into clauses, those with more of them first."""
    head, colon, rest = text.partition(":")
    if colon and rest[:1].isspace() and rest.strip():
        yield [*pieces(head, cuts(head, catalogue.heads))[:-1], _last(head, catalogue) + colon + rest], True
    places = cuts(text, catalogue.heads)
    sure = [place for place in places if place[2]]
    maybe = [place for place in places if not place[2]][:5]
    for count in range(len(maybe), -1, -1):
        for chosen in combinations(maybe, count):
            yield pieces(text, sorted([*sure, *chosen])), False
    if sure:
        for count in range(len(maybe), -1, -1):
            for chosen in combinations(maybe, count):
                yield pieces(text, sorted(chosen)), False


def _last(head: str, catalogue: Catalogue) -> str:
    return (pieces(head, cuts(head, catalogue.heads)) or [head])[-1]


def _steps(
    parts: Sequence[str], tail: bool, catalogue: Catalogue, past: Sequence[Step]
) -> Planned:
    steps: list[Step] = []
    for number, part in enumerate(parts):
        tokens = tokenise(part, tail=tail and number == len(parts) - 1)
        if steps and _only_shows(tokens, steps):
            continue
        ranked = _ranked(tokens, catalogue, [*past, *steps])
        best = ranked[0] if ranked else None
        if best is None or not best.complete:
            return Planned(nearest=best, clause=part)
        rivals = [
            other
            for other in ranked[1:]
            if other.complete and best.score - other.score < LEAD and _differ(best, other)
        ]
        if rivals:
            names = dict.fromkeys([best.tool.name, *(r.tool.name for r in rivals)])
            return Planned(nearest=best, clause=part, rivals=tuple(names))
        steps.append(Step(tool=best.tool, arguments=best.arguments))
    return Planned(steps=tuple(steps), clause=" ".join(parts))


def _differ(best: Parse, other: Parse) -> bool:
    """Whether two readings would do another thing, not only cut a text otherwise."""
    if best.tool is not other.tool:
        return True
    mine, theirs = best.arguments, other.arguments
    return any(
        name in theirs
        and theirs[name] != value
        and not (str(value) in str(theirs[name]) or str(theirs[name]) in str(value))
        for name, value in mine.items()
    )


def _ranked(
    tokens: Sequence[Token], catalogue: Catalogue, steps: Sequence[Step]
) -> list[Parse]:
    clause = Clause(tokens=tokens, steps=steps, known=catalogue)
    found: list[Parse] = []
    for tool in catalogue.tools:
        as_taught = [
            Parse(tool=tool, arguments=given, score=6.0)
            for sample in tool.samples
            for _, given in worded(sample, tokens) or ()
            if not _refers(given)
        ]
        for parse in as_taught[:1] or readings(tool, clause):
            parse = programmed(parse, tokens)
            if not parse.complete or _valid(tool, parse.arguments):
                found.append(parse)
    return sorted(found, key=lambda parse: (not parse.complete, -parse.score))


def _refers(value: Json) -> bool:
    return "{{" in str(value)


def _valid(tool: Tool, arguments: Arguments) -> bool:
    given = dict(arguments)
    holes: list[Path] = [(name,) for name, value in given.items() if _is_reference(value)]
    return not Schema(tool.spec.parameters).problems(given, holes=holes)


def _is_reference(value: Json) -> bool:
    return isinstance(value, str) and value.startswith(("{{", "asset://"))


def _only_shows(tokens: Sequence[Token], steps: Sequence[Step]) -> bool:
    """Whether a clause only asks to be shown what was answered."""
    words = [token for token in tokens if token.kind != "mark"]
    shown = all(
        token.kind == "word"
        and (token.stem in _SHOWING or token.low in FUNCTION | english.PRONOUNS)
        for token in words
    )
    return shown and any(token.stem in _SHOWING for token in words) and bool(steps)


def _again(
    tokens: Sequence[Token], last: Sequence[Step], catalogue: Catalogue
) -> Step | None:
    """The call of the last turn with another value: "and of Lyon?"."""
    words = [token for token in tokens if token.kind != "mark"]
    begin = 0
    while begin < len(words) and words[begin].low in english.FOLLOWING:
        begin += 1
    rest = words[begin:]
    while rest and rest[-1].low in ("instead", "too", "please", "now", "again"):
        rest = rest[:-1]
    if len(last) != 1 or not begin or not rest or words[0].low in ("of", "in", "to", "it"):
        return None
    step, before = last[0], words[begin - 1].low
    typed = rest[0] if len(rest) == 1 and rest[0].kind != "word" else None
    said = " ".join(token.text for token in rest)
    plain = all(t.kind == "word" and t.low not in FUNCTION | english.TURNING for t in rest)
    if typed is None and (not plain or len(rest) > 4 or rest[0].stem in catalogue.heads):
        return None
    options: list[tuple[str, Json, bool]] = []
    for slot in step.tool.slots:
        given = step.arguments.get(slot.name)
        if slot.name not in step.arguments or _refers(given) or isinstance(given, list):
            continue
        choice = next((c for c in slot.choices if str(c).lower() == said.lower()), None)
        if choice is not None:
            options.append((slot.name, choice, True))
        elif slot.choices or slot.kind == "boolean":
            continue
        elif typed is not None and (typed.has(slot.kind) or slot.kind == "text"):
            options.append((slot.name, typed.value, typed.has(slot.kind)))
        elif typed is None and slot.kind == "text":
            options.append((slot.name, said, before in slot.cues))
    sure = [option for option in options if option[2]] or options
    if len(sure) != 1:
        return None
    arguments = {**step.arguments, sure[0][0]: sure[0][1]}
    if not _valid(step.tool, arguments):
        return None
    return Step(tool=step.tool, arguments=arguments)


