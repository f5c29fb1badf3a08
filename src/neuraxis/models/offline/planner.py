"""Plan a request as calls, or say what is unclear."""

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

LONGEST = 1000  # maximum characters of a request
LEAD = 0.25  # minimum lead of the best reading over the next
NEAR = 0.3  # minimum fit of a command that is shown for a clause
SHOWN = 3  # maximum commands shown
_BESIDE = ("instead", "too", "please", "now", "again")
_SILENT = english.FUNCTION - english.PREPOSITIONS


class Planned(Struct, frozen=True, kw_only=True):
    """Steps of a plan, or why there is none."""

    steps: tuple[Step, ...] = ()
    clause: str = ""  # the clause that was not understood
    ranked: tuple[Parse, ...] = ()  # its readings
    rivals: tuple[Parse, ...] = ()  # readings that fit equally well
    near: tuple[Tool, ...] = ()  # commands that fit most of its words
    nearest: Parse | None = None  # the best reading as one of these commands
    advice: bool = False  # the request asks for advice
    without: Step | None = None  # the call without the one unplaced word


def plan(
    request: str, catalogue: Catalogue, earlier: Sequence[Sequence[Step]] = ()
) -> Planned:
    """Plan a request; earlier turns' calls may be referred to."""
    if len(request) > LONGEST:
        return Planned(clause=request[:60] + "…")
    last = earlier[-1] if earlier else ()
    if len(last) == 1 and (
        repeated := _repeated(tokenise(request), last[0], catalogue)
    ):
        return Planned(steps=(repeated,))
    text = bare(request)
    if asks_advice(tokenise(text), catalogue):
        return Planned(clause=text, advice=True)
    for sample in catalogue.chains:
        calls = worded(sample, tokenise(text)) or ()
        if calls and all(_valid(tool, arguments) for tool, arguments in calls):
            return Planned(steps=tuple([Step(tool=t, arguments=a) for t, a in calls]))
    past = [replace(step, past=True) for turn in earlier for step in turn]
    failed: Planned | None = None
    for parts in _splits(text, catalogue):
        planned = _steps(parts, catalogue, past)
        if planned.steps:
            return planned
        failed = failed or planned
    return _explained(failed, catalogue, past) if failed else Planned(clause=text)


def _explained(failed: Planned, catalogue: Catalogue, past: Sequence[Step]) -> Planned:
    """Add the nearest commands for the clause that was not understood."""
    tokens = tokenise(failed.clause)
    fits = [(fit(tool, tokens, catalogue), tool) for tool in catalogue.tools]
    least = max(NEAR, max([score for score, _ in fits], default=0.0) / 2)
    fits = sorted([one for one in fits if one[0] >= least], key=lambda one: -one[0])
    nearest_tools = [tool for _, tool in fits]
    nearest = next((p for p in failed.ranked if p.tool in nearest_tools), None)
    without = None
    if nearest and not nearest.missing and not failed.rivals:
        without = _without(failed.clause, tokens, nearest, catalogue, past)
    return replace(
        failed, near=tuple(nearest_tools[:SHOWN]), nearest=nearest, without=without
    )


def _without(
    text: str, tokens: Sequence[Token], parse: Parse, catalogue: Catalogue,
    past: Sequence[Step],
) -> Step | None:  # fmt: skip
    """Return the call that fits without the one unplaced word."""
    unplaced = [token for token in tokens if token.text in parse.unplaced]
    denied = any(token.low in english.DENYING for token in tokens)
    if (
        denied
        or len(parse.unplaced) != 1
        or [token.kind for token in unplaced] != ["word"]
    ):
        return None
    steps = _steps(
        [text[: unplaced[0].start] + text[unplaced[0].end :]], catalogue, past
    ).steps
    return steps[0] if len(steps) == 1 and steps[0].tool is parse.tool else None


def _splits(text: str, catalogue: Catalogue) -> Iterator[list[str]]:
    places = cuts(text, catalogue.heads)
    sure = [place for place in places if place[2]]
    maybe = [place for place in places if not place[2]][:5]
    for count in range(len(maybe), -1, -1):
        for chosen in combinations(maybe, count):
            yield pieces(text, sorted([*sure, *chosen]))


def _steps(parts: Sequence[str], catalogue: Catalogue, past: Sequence[Step]) -> Planned:
    steps: list[Step] = []
    for part in parts:
        tokens = tokenise(part)
        if asks_advice(tokens, catalogue):
            return Planned(clause=part, advice=True)
        ranked = _ranked(tokens, catalogue, [*past, *steps])
        best = ranked[0] if ranked else None
        if best is None or not best.complete:
            # "a.txt and b.txt": the previous call with another value
            and_tokens = tokenise(f"and {part}")
            if not steps or not (
                repeated := _repeated(and_tokens, steps[-1], catalogue)
            ):
                return Planned(ranked=tuple(ranked), clause=part)
            steps.append(repeated)
            continue
        close = [p for p in ranked if p.complete and best.score - p.score < LEAD]
        if rivals := [parse for parse in close if _differ(best, parse)]:
            return Planned(rivals=(best, *rivals), clause=part)
        steps.append(Step(tool=best.tool, arguments=best.arguments))
    return Planned(steps=tuple(steps), clause=" ".join(parts))


def _differ(best: Parse, other: Parse) -> bool:
    if best.tool is not other.tool:
        # two commands of one plugin may store the same result under the same name
        values = [{str(v) for v in p.arguments.values()} for p in (best, other)]
        is_same_plugin = best.tool.plugin == other.tool.plugin
        return not (
            is_same_plugin and values[0] == values[1] and any(map(_refers, values[0]))
        )
    theirs = other.arguments
    pairs = [(str(v), str(theirs[k])) for k, v in best.arguments.items() if k in theirs]
    return any(mine not in his and his not in mine for mine, his in pairs)


def _ranked(
    tokens: Sequence[Token], catalogue: Catalogue, steps: Sequence[Step]
) -> list[Parse]:
    head = head_of(tokens, catalogue)
    clause = Clause(tokens=tokens, steps=steps, catalogue=catalogue, head=head)
    readings_: list[Parse] = []
    for tool in catalogue.tools:
        taught = [calls for one in tool.samples if (calls := worded(one, tokens))]
        parses = [Parse(tool=tool, arguments=c[0][1], score=6.0) for c in taught[:1]]
        for parse in parses or readings(tool, clause):
            whole = programmed(parse, tokens)
            if not whole.complete or _valid(tool, whole.arguments):
                readings_.append(whole)
    return sorted(readings_, key=lambda parse: (not parse.complete, -parse.score))


def _valid(tool: Tool, arguments: Arguments) -> bool:
    holes: list[Path] = [(name,) for name, value in arguments.items() if _refers(value)]
    return not Schema(tool.spec.parameters).problems(dict(arguments), holes=holes)


def _refers(value: Json) -> bool:
    return str(value).startswith(("{{", "asset://"))


def _repeated(tokens: Sequence[Token], step: Step, catalogue: Catalogue) -> Step | None:
    """Return the last turn's call with another value: "and of Lyon?"."""
    words = [token for token in tokens if token.kind != "mark"]
    while words and words[-1].low in _BESIDE:
        words.pop()
    lead = list(takewhile(lambda token: token.low in english.FOLLOWING, words))
    following = words[len(lead) :]
    if not lead or not following or lead[0].low in ("of", "in", "to", "it"):
        return None
    ignored = english.FUNCTION | english.TURNING
    one = following[0] if len(following) == 1 and following[0].kind != "word" else None
    plain = all(
        token.kind == "word" and token.low not in ignored for token in following
    )
    if one is None and (
        not plain or len(following) > 4 or following[0].stem in catalogue.heads
    ):
        return None
    value_text = " ".join([token.text for token in following])
    sure: dict[str, Json] = {}
    maybe: dict[str, Json] = {}
    for slot in step.tool.slots:
        if slot.name not in step.arguments or _refers(step.arguments[slot.name]):
            continue
        choice = next(
            (c for c in slot.choices if str(c).lower() == value_text.lower()), None
        )
        if choice is not None:
            sure[slot.name] = choice
        elif slot.kind == "text" or (one and one.has(slot.kind)):
            clear = one.has(slot.kind) if one else lead[-1].low in slot.cues
            (sure if clear else maybe)[slot.name] = one.value if one else value_text
    changes = sure or maybe
    arguments = {**step.arguments, **changes}
    done = len(changes) == 1 and _valid(step.tool, arguments)
    return Step(tool=step.tool, arguments=arguments) if done else None


def worded(
    sample: Sample, tokens: Sequence[Token]
) -> tuple[tuple[Tool, Arguments], ...] | None:
    """Return the example's calls with this request's values, or None.

    All other words must be the example's. Values that the example's question does not
    contain, such as a whole program, are copied.
    """

    def is_content(token: Token) -> bool:
        return token.kind != "mark" and token.low not in _SILENT

    calls: Any = [arguments for _, arguments in sample.calls]
    holes: dict[int, Json] = {}
    for leaf in _leaves(calls):
        place = locate(sample.tokens, leaf)
        if place is not None and place[1] - place[0] == 1:
            holes[place[0]] = leaf
    parts = [(n, t) for n, t in enumerate(sample.tokens) if n in holes or is_content(t)]
    if all(n in holes or part.low in english.FUNCTION for n, part in parts):
        return None  # no word of its own
    pattern = [token for token in tokens if is_content(token)]
    if len(parts) != len(pattern):
        return None
    new: dict[Json, Json] = {}
    for (number, part), token in zip(parts, pattern, strict=True):
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
