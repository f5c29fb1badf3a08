"""Plan the calls of a request by rules.

Each clause is ranked against the tools and filled for the best few; where nothing is
missing and the choice is clear, no model is asked. The rules are in the language's
file, the knowledge of tools in their specs.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.models.gguf.llama import Writer
from neuraxis.models.local.planner import (
    chains,
    clauses,
    contents,
    decide,
    files,
    gate,
    rank,
)
from neuraxis.models.local.planner.catalogue import Catalogue, Tool
from neuraxis.models.local.planner.draft import Choice, Work
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.kinds import FREE
from neuraxis.models.local.planner.slots.candidates import candidates
from neuraxis.models.local.planner.slots.fill import Filling, fill
from neuraxis.models.local.planner.slots.reading import SPANNED, Reader
from neuraxis.models.local.planner.tokens import Clause, clause
from neuraxis.specs import Json

TRIED = 6
"""Tools whose parameters are tried for a clause."""
CERTAIN = 0.02
"""A lead over the next tool from which the model is not asked."""


class Drafted(Struct, frozen=True, kw_only=True):
    """What became of a request."""

    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    unplanned: tuple[tuple[str, str], ...] = ()
    """Clauses that are not done: their text, and what is missing ("" = no tool)."""
    talk: tuple[str, ...] = ()
    """Clauses that are only talk."""


async def plan(
    request: str,
    catalogue: Catalogue,
    writer: Writer | None = None,
    before: Sequence[Step] = (),
) -> Drafted:
    """The calls that do what is asked."""
    language = catalogue.language
    work = Work(catalogue=catalogue, writer=writer, before=tuple(before))
    parts = clauses.split(request, language, catalogue.verbs)
    parts = _verbs_given(_heads_shared(parts, work), work)
    unplanned: list[tuple[str, str]] = []
    talk: list[str] = []
    number = -1
    while (number := number + 1) < len(parts):
        part = _with_question(parts[number], talk, work)
        following = parts[number + 1 :]
        if gate.is_talk(part, language):
            talk.append(part.text)
            continue
        options = choices(part, catalogue, work.steps or list(work.before))
        if following and (joined := _joined(part, following[0], options, work)):
            part, options = joined
            number += 1
            following = following[1:]
        if not options or not _wanted(part, options, work):
            if asked := gate.open_question(part, catalogue):
                tool, arguments = asked
                work.steps.append(Step(tool=tool, arguments=arguments))
                if following and _is_bare(following[0], work):
                    number += 1  # "search for it"
                work.notes.append(f"{part.text!r}: a question for {tool.name}")
                continue
            talk.append(part.text)
            continue
        if writer is not None:
            options = await _asked(part, options, work)
        if chains.renames(part, work):
            continue
        problem = await chains.add(part, options, following, work)
        if problem is not None:
            unplanned.append((part.text, problem))
    return Drafted(
        steps=tuple(work.steps),
        notes=tuple(work.notes),
        unplanned=tuple(unplanned),
        talk=tuple(talk),
    )


def _joined(
    part: Clause, following: Clause, options: Sequence[Choice], work: Work
) -> tuple[Clause, list[Choice]] | None:
    """Read two clauses as one, where the second names what the first lacks."""
    if not any(_names_missing(following, option) for option in options):
        return None
    catalogue = work.catalogue
    joined = clause(f"{part.text}, {following.text}", catalogue.language)
    better = choices(joined, catalogue, work.steps or list(work.before))
    if not better or better[0].filling.missing:
        return None
    same = [option for option in options if option.tool is better[0].tool]
    return (joined, better) if same and _names_missing(following, same[0]) else None


def _verbs_given(parts: list[Clause], work: Work) -> list[Clause]:
    """Repeat the verb before bare values: "run a.py and then b.py"."""
    language = work.catalogue.language
    found: list[Clause] = []
    for part in parts:
        values = [t for t in part.tokens if t.span is not None]
        matter = [
            t
            for t in part.tokens
            if t.span is None and t.fold and t.low not in language.function_words
        ]
        placed = bool(part.tokens) and part.tokens[-1].span is not None
        if (
            values
            and found
            and found[-1].head in language.verbs
            and (not matter or (placed and part.head not in language.verbs))
            and part.tokens[0].low not in language.words("question_words")
        ):
            verb = found[-1].tokens[0].text
            part = clause(f"{verb} {part.text}", language)
        found.append(part)
    return found


def _wanted(part: Clause, options: Sequence[Choice], work: Work) -> bool:
    best = options[0]
    return gate.is_wanted(
        part,
        best.match,
        best.score,
        work.catalogue,
        whole=bool(best.filling.arguments) and not best.filling.missing,
    )


def _with_question(part: Clause, talk: list[str], work: Work) -> Clause:
    """Put the question before for the pronoun: "Who won? Search for it"."""
    language = work.catalogue.language
    if talk and not work.steps and _is_bare(part, work):
        return clause(f"{part.tokens[0].text} {talk.pop()}", language)
    return part


def _is_bare(part: Clause, work: Work) -> bool:
    """A verb and a pronoun, nothing else."""
    language = work.catalogue.language
    words = [t for t in part.tokens if t.low not in language.prepositions]
    return (
        len(words) == 2
        and words[0].fold in language.verbs
        and words[1].low in language.words("pronouns")
    )


def _names_missing(following: Clause, choice: Choice) -> bool:
    """Check whether the next clause begins with a missing parameter's name."""
    head = following.tokens[0].low
    return any(
        head in choice.tool.slot(name).name_words for name in choice.filling.missing
    )


async def _asked(part: Clause, options: list[Choice], work: Work) -> list[Choice]:
    """Ask the model to choose where the rules are undecided."""
    assert work.writer is not None
    close = [o for o in options[:3] if options[0].score - o.score < CERTAIN]
    copied = [
        name
        for name in options[0].filling.missing
        if options[0].tool.slot(name).kind in FREE - {"content"}
        and options[0].filling.left
    ]
    if len(close) < 2 and not copied:
        return options
    language = work.catalogue.language
    found: dict[str, dict[str, list[Json]]] = {}
    for option in close:
        reader = Reader.of(option.tool, part, work.steps, language)
        found[option.tool.name] = {
            slot.name: [c.value for c in candidates(reader, slot) if c.kind == "text"]
            for slot in option.tool.slots
            if slot.kind in SPANNED or slot.kind in ("enum", "boolean", "datetime")
        }
    decided = await decide.decide(
        part, [o.tool for o in close], found, work.writer, language
    )
    if decided is None:
        return options
    tool, values = decided
    chosen = next(option for option in close if option.tool is tool)
    lacking = {name: values[name] for name in chosen.filling.missing if name in values}
    work.notes.append(f"{part.text!r}: the model took {tool.name} of {len(close)}")
    filling = replace(
        chosen.filling,
        arguments={**chosen.filling.arguments, **lacking},
        missing=tuple(n for n in chosen.filling.missing if n not in lacking),
    )
    rest = [option for option in options if option is not chosen]
    return [replace(chosen, filling=filling), *rest]


def _heads_shared(parts: list[Clause], work: Work) -> list[Clause]:
    """Share the next object with a bare verb: "create and run …"."""
    language = work.catalogue.language
    found: list[Clause] = []
    for number, part in enumerate(parts):
        alone = len(part.tokens) == 1 and part.head in language.verbs
        if alone and number + 1 < len(parts):
            tail = parts[number + 1]
            body = tail.text.partition(" ")[2]
            if body:
                found.append(clause(f"{part.text} {body}", language))
                pronoun = language.words("pronouns")[0]
                verb = tail.text.partition(" ")[0]
                parts[number + 1] = clause(f"{verb} {pronoun}", language)
                continue
        found.append(part)
    return found


def choices(part: Clause, catalogue: Catalogue, steps: Sequence[Step]) -> list[Choice]:
    """Return the best tools for a clause with parameters, best first."""
    found: list[Choice] = []
    new = not any("path" in span.kinds for span in part.spans)
    runs = new and contents.wants_run(part, catalogue.language)
    for match in rank.rank(part, catalogue)[:TRIED]:
        filling = fill(match.tool, part, steps, catalogue.language)
        found.append(
            Choice(
                match=match,
                filling=filling,
                score=match.score + fitness(match.tool, filling, runs=runs),
            )
        )
    return sorted(found, key=lambda choice: -choice.score)


def fitness(tool: Tool, filling: Filling, *, runs: bool = False) -> float:
    """How well the clause's values fit the tool's parameters.

    `runs`: the clause wants a program that is not there yet, so a missing path can be
    that of a program written first.
    """
    writes = any(slot.kind == "content" for slot in tool.slots)
    starts = runs and files.runs_programs(tool)
    value = 0.0
    for name in filling.missing:
        kind = tool.slot(name).kind
        makeable = kind == "content" or (kind == "path" and (writes or starts))
        value -= 0.04 if makeable else 0.22
    if starts:
        value += 0.45  # what is left over says what the program does
    else:
        value -= 0.22 * min(filling.waste, 2.0)
    taken = [
        filling.taken[slot.name].score
        for slot in tool.slots
        if slot.required and slot.name in filling.taken
    ]
    if taken:
        value += 0.12 * max(-1.5, min(1.0, sum(taken) / len(taken) - 0.9))
    return value
