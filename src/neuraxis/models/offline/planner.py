"""A request in, a plan out, or what hindered it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, takewhile
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.messages import Path
from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Arguments, Catalogue, Sample, Tool, locate
from neuraxis.models.offline.fill import (
    Clause,
    Parse,
    asks_advice,
    fit,
    head_of,
    programmed,
    readings,
)  # fmt: skip
from neuraxis.models.offline.references import Step
from neuraxis.models.offline.tokens import Token, alike, bare, cuts, pieces, tokenise
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

LONGEST = 1000  # characters of a request that is read
LEAD = 0.25  # how much better the best reading must be than the next
NEAR = 0.3  # how much of a clause a command must know to be shown for it
SHOWN = 3  # commands that are shown
_BESIDE = ("instead", "too", "please", "now", "again")
_SILENT = english.FUNCTION - english.PREPOSITIONS


class Planned(Struct, frozen=True, kw_only=True):
    """The steps of a plan, or why there is none."""

    steps: tuple[Step, ...] = ()
    clause: str = ""  # what was not understood
    ranked: tuple[Parse, ...] = ()  # its readings
    rivals: tuple[Parse, ...] = ()  # readings that fit equally well
    near: tuple[Tool, ...] = ()  # commands that know most of its words
    nearest: Parse | None = None  # the best reading as one of these
    advice: bool = False  # it asks what to do
    without: Step | None = None  # the call if the one word left were not there


def plan(
    request: str, known: Catalogue, earlier: Sequence[Sequence[Step]] = ()
) -> Planned:
    """Plan a request, after the calls of earlier turns."""
    if len(request) > LONGEST:
        return Planned(clause=request[:60] + "…")
    last = earlier[-1] if earlier else ()
    if len(last) == 1 and (again := _again(tokenise(request), last[0], known)):
        return Planned(steps=(again,))
    text = bare(request)
    if asks_advice(tokenise(text), known):
        return Planned(clause=text, advice=True)
    for sample in known.chains:
        calls = worded(sample, tokenise(text)) or ()
        if calls and all(_valid(tool, given) for tool, given in calls):
            return Planned(steps=tuple([Step(tool=t, arguments=a) for t, a in calls]))
    past = [replace(step, past=True) for turn in earlier for step in turn]
    failed: Planned | None = None
    for parts in _ways(text, known):
        found = _steps(parts, known, past)
        if found.steps:
            return found
        failed = failed or found
    return _explained(failed, known, past) if failed else Planned(clause=text)


def _explained(failed: Planned, known: Catalogue, past: Sequence[Step]) -> Planned:
    """Add what comes nearest to the clause that was not understood."""
    tokens = tokenise(failed.clause)
    fits = [(fit(tool, tokens, known), tool) for tool in known.tools]
    least = max(NEAR, max([score for score, _ in fits], default=0.0) / 2)
    fits = sorted([one for one in fits if one[0] >= least], key=lambda one: -one[0])
    near = [tool for _, tool in fits]
    nearest = next((p for p in failed.ranked if p.tool in near), None)
    without = None
    if nearest and not nearest.missing and not failed.rivals:
        without = _without(failed.clause, tokens, nearest, known, past)
    return replace(failed, near=tuple(near[:SHOWN]), nearest=nearest, without=without)


def _without(
    text: str, tokens: Sequence[Token], found: Parse, known: Catalogue,
    past: Sequence[Step],
) -> Step | None:  # fmt: skip
    """Return the call that fits without the one word left."""
    gone = [token for token in tokens if token.text in found.left]
    denied = any(token.low in english.DENYING for token in tokens)
    if denied or len(found.left) != 1 or [token.kind for token in gone] != ["word"]:
        return None
    steps = _steps([text[: gone[0].start] + text[gone[0].end :]], known, past).steps
    return steps[0] if len(steps) == 1 and steps[0].tool is found.tool else None


def _ways(text: str, known: Catalogue) -> Iterator[list[str]]:
    places = cuts(text, known.heads)
    sure = [place for place in places if place[2]]
    maybe = [place for place in places if not place[2]][:5]
    for count in range(len(maybe), -1, -1):
        for chosen in combinations(maybe, count):
            yield pieces(text, sorted([*sure, *chosen]))


def _steps(parts: Sequence[str], known: Catalogue, past: Sequence[Step]) -> Planned:
    steps: list[Step] = []
    for part in parts:
        tokens = tokenise(part)
        if asks_advice(tokens, known):
            return Planned(clause=part, advice=True)
        ranked = _ranked(tokens, known, [*past, *steps])
        best = ranked[0] if ranked else None
        if best is None or not best.complete:
            # "a.txt and b.txt": the call before, with another value
            words = tokenise(f"and {part}")
            if not steps or not (again := _again(words, steps[-1], known)):
                return Planned(ranked=tuple(ranked), clause=part)
            steps.append(again)
            continue
        close = [p for p in ranked if p.complete and best.score - p.score < LEAD]
        if rivals := [parse for parse in close if _differ(best, parse)]:
            return Planned(rivals=(best, *rivals), clause=part)
        steps.append(Step(tool=best.tool, arguments=best.arguments))
    return Planned(steps=tuple(steps), clause=" ".join(parts))


def _differ(best: Parse, other: Parse) -> bool:
    if best.tool is not other.tool:
        # two commands of one plugin may keep the same result under the same name
        values = [{str(v) for v in p.arguments.values()} for p in (best, other)]
        here = best.tool.plugin == other.tool.plugin
        return not (here and values[0] == values[1] and any(map(_refers, values[0])))
    theirs = other.arguments
    pairs = [(str(v), str(theirs[k])) for k, v in best.arguments.items() if k in theirs]
    return any(mine not in his and his not in mine for mine, his in pairs)


def _ranked(
    tokens: Sequence[Token], known: Catalogue, steps: Sequence[Step]
) -> list[Parse]:
    head = head_of(tokens, known)
    clause = Clause(tokens=tokens, steps=steps, known=known, head=head)
    found: list[Parse] = []
    for tool in known.tools:
        taught = [calls for one in tool.samples if (calls := worded(one, tokens))]
        parses = [Parse(tool=tool, arguments=c[0][1], score=6.0) for c in taught[:1]]
        for parse in parses or readings(tool, clause):
            whole = programmed(parse, tokens)
            if not whole.complete or _valid(tool, whole.arguments):
                found.append(whole)
    return sorted(found, key=lambda parse: (not parse.complete, -parse.score))


def _valid(tool: Tool, arguments: Arguments) -> bool:
    holes: list[Path] = [(name,) for name, value in arguments.items() if _refers(value)]
    return not Schema(tool.spec.parameters).problems(dict(arguments), holes=holes)


def _refers(value: Json) -> bool:
    return str(value).startswith(("{{", "asset://"))


def _again(tokens: Sequence[Token], step: Step, known: Catalogue) -> Step | None:
    """The call of the last turn with another value: "and of Lyon?"."""
    words = [token for token in tokens if token.kind != "mark"]
    while words and words[-1].low in _BESIDE:
        words.pop()
    lead = list(takewhile(lambda token: token.low in english.FOLLOWING, words))
    rest = words[len(lead) :]
    if not lead or not rest or lead[0].low in ("of", "in", "to", "it"):
        return None
    odd = english.FUNCTION | english.TURNING
    one = rest[0] if len(rest) == 1 and rest[0].kind != "word" else None
    plain = all(token.kind == "word" and token.low not in odd for token in rest)
    if one is None and (not plain or len(rest) > 4 or rest[0].stem in known.heads):
        return None
    text = " ".join([token.text for token in rest])
    sure: dict[str, Json] = {}
    maybe: dict[str, Json] = {}
    for slot in step.tool.slots:
        if slot.name not in step.arguments or _refers(step.arguments[slot.name]):
            continue
        choice = next((c for c in slot.choices if str(c).lower() == text.lower()), None)
        if choice is not None:
            sure[slot.name] = choice
        elif slot.kind == "text" or (one and one.has(slot.kind)):
            clear = one.has(slot.kind) if one else lead[-1].low in slot.cues
            (sure if clear else maybe)[slot.name] = one.value if one else text
    found = sure or maybe
    given = {**step.arguments, **found}
    done = len(found) == 1 and _valid(step.tool, given)
    return Step(tool=step.tool, arguments=given) if done else None


def worded(
    sample: Sample, tokens: Sequence[Token]
) -> tuple[tuple[Tool, Arguments], ...] | None:
    """Return the example's calls with this request's values, or None.

    All other words must be the example's: its values that its question does not hold,
    such as a whole program, are taken as they are.
    """

    def said(token: Token) -> bool:
        return token.kind != "mark" and token.low not in _SILENT

    calls: Any = [arguments for _, arguments in sample.calls]
    holes: dict[int, Json] = {}
    for leaf in _leaves(calls):
        where = locate(sample.tokens, leaf)
        if where is not None and where[1] - where[0] == 1:
            holes[where[0]] = leaf
    parts = [(n, t) for n, t in enumerate(sample.tokens) if n in holes or said(t)]
    if all(n in holes or part.low in english.FUNCTION for n, part in parts):
        return None  # no word of its own
    given = [token for token in tokens if said(token)]
    if len(parts) != len(given):
        return None
    new: dict[Json, Json] = {}
    for (number, part), token in zip(parts, given, strict=True):
        if number in holes:
            if not token.has(part.kind) or token.low in english.TURNING:
                return None
            new[holes[number]] = token.value
        elif part.kind != "word" or token.kind != "word":
            if part.value != token.value:
                return None
        elif part.stem != token.stem and not alike(part.stem, token.stem):
            return None
    tools = [tool for tool, _ in sample.calls]
    return tuple(zip(tools, _swapped(calls, new), strict=True))


def _leaves(tree: Any) -> Iterator[Json]:
    inner = cast("Mapping[str, Any]", tree)
    for item in inner.values() if isinstance(tree, Mapping) else tree:
        yield from _leaves(item) if isinstance(item, Mapping | list) else [item]


def _swapped(tree: Any, new: Mapping[Json, Json]) -> Any:
    if isinstance(tree, Mapping):
        return {k: _swapped(v, new) for k, v in cast("Mapping[str, Any]", tree).items()}
    if isinstance(tree, list):
        return [_swapped(item, new) for item in cast("list[Any]", tree)]
    return tree if isinstance(tree, bool) else new.get(tree, tree)
