"""Add one clause to the plan, with the calls it requires.

"Save the page at X to Y" needs X fetched first; "run a script that prints 5" needs it
written first. Names of files and contents that the request leaves open are made here.
"""

from __future__ import annotations

from collections.abc import Sequence

from neuraxis.models.local.planner import check, contents, earlier, files, rank
from neuraxis.models.local.planner import for_each as spreading
from neuraxis.models.local.planner.catalogue import Slot, Tool
from neuraxis.models.local.planner.draft import Choice, Work
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.slots.fill import Filling, fill
from neuraxis.models.local.planner.tokens import Clause, clause
from neuraxis.specs import Json


async def add(
    part: Clause, options: Sequence[Choice], following: Sequence[Clause], work: Work
) -> str | None:
    """Plan the clause; gives what is missing, where it cannot be planned."""
    choice = options[0]
    tool = choice.tool
    arguments = dict(choice.filling.arguments)
    content = next((s for s in tool.slots if s.kind == "content"), None)
    place = next((s for s in tool.slots if s.kind == "path"), None)
    path = str(arguments.get(place.name, "")) if place else ""
    code = contents.is_code_wish(part, path, work.catalogue.language)
    if content is not None and not code:
        _take_for_granted(part, choice.filling, tool, content, arguments, work)
    if (
        place is not None
        and place.required
        and files.runs_programs(tool)
        and place.name not in arguments
    ):
        await files.write_first(part, place, arguments, work)
    unnamed = False
    if place is not None and content is not None and place.required:
        if place.name not in arguments:
            unnamed = True
            near = files.near_path(part, tool, place, content, work) if code else None
            arguments[place.name] = files.default_path(
                part, following, work, code=code, near=near
            )
        path = str(arguments[place.name])
    if content is not None and content.name not in arguments and work.steps:
        field = earlier.pick(work.steps, [], content, work.catalogue.language)
        if field is not None and not code:
            arguments[content.name] = field.expression(len(work.steps))
    if content is not None:
        await files.content(part, choice, content, arguments, path, following, work)
    missing = [
        slot.name for slot in tool.slots if slot.required and slot.name not in arguments
    ]
    if missing:
        return ", ".join(name.replace("_", " ") for name in missing)
    if unnamed:
        work.unnamed.add(len(work.steps))
    for values in spreading.spread(part, choice, work.catalogue.language) or [
        arguments
    ]:
        given = {**arguments, **values}
        ordered = {s.name: given[s.name] for s in tool.slots if s.name in given}
        step, wrong = check.checked(Step(tool=tool, arguments=ordered))
        if step is None:
            return wrong
        work.steps.append(step)
    work.notes.append(
        f"{part.text!r}: {tool.name}, rules and examples, score {choice.score:.2f}"
    )
    return None


def renames(part: Clause, work: Work) -> bool:
    """Name the step before: "write a program …, save it as count.py"."""
    last = len(work.steps) - 1
    language = work.catalogue.language
    paths = [span.value for span in part.spans if "path" in span.kinds]
    matter = [
        token
        for token in part.tokens
        if token.span is None
        and token.fold
        and token.low not in (language.function_words)
    ]
    if (
        last not in work.unnamed
        or len(paths) != 1
        or len(matter) > 1
        or not any(t.low in language.words("pronouns") for t in part.tokens)
        or not (matter and matter[0].low in language.words("naming_verbs"))
    ):
        return False
    step = work.steps[last]
    place = next(slot for slot in step.tool.slots if slot.kind == "path")
    work.steps[last] = Step(
        tool=step.tool, arguments={**step.arguments, place.name: paths[0]}
    )
    work.unnamed.discard(last)
    return True


def _take_for_granted(
    part: Clause,
    filling: Filling,
    tool: Tool,
    slot: Slot,
    arguments: dict[str, Json],
    work: Work,
) -> None:
    """Plan the call first whose result is the content."""
    taken = filling.taken.get(slot.name)
    if taken is not None and (taken.kind != "text" or _is_quoted(part, taken.tokens)):
        return
    if taken is not None and _is_speech(part, taken.tokens, work.catalogue.language):
        return
    tokens = sorted(taken.tokens) if taken is not None else list(filling.left)
    others = {
        index
        for name, candidate in filling.taken.items()
        if name != slot.name
        for index in candidate.tokens
    }
    tokens = _run((set(tokens) | set(filling.left)) - others, part)
    if not tokens:
        return
    text = part.text[part.tokens[tokens[0]].start : part.tokens[tokens[-1]].end]
    inner = clause(text, work.catalogue.language)
    found = _producer(inner, tool, work)
    if found is None:
        return
    planned, words = found
    step, _ = check.checked(planned)
    if step is None:
        return
    work.steps.append(step)
    work.notes.append(f"{text!r}: {step.tool.name} first, since its result is needed")
    field = earlier.pick(work.steps, words, slot, work.catalogue.language)
    if field is not None:
        arguments[slot.name] = field.expression(len(work.steps))


def _run(tokens: set[int], part: Clause) -> list[int]:
    """The longest stretch of tokens; small words between them belong to it."""
    best: list[int] = []
    run: list[int] = []
    for index in sorted(tokens):
        gap = range(run[-1] + 1, index) if run else range(0)
        if (
            any(part.tokens[i].span is not None or i in tokens for i in gap)
            or len(gap) > 2
        ):
            run = []
        run.append(index)
        if len(run) > len(best):
            best = list(run)
    return best


def _is_speech(part: Clause, tokens: frozenset[int], language: Language) -> bool:
    first = part.tokens[min(tokens)]
    return first.low in language.words("speech")


def _is_quoted(part: Clause, tokens: frozenset[int]) -> bool:
    spans = [part.tokens[index].span for index in tokens]
    return any(span is not None and span.quoted for span in spans)


def _producer(inner: Clause, tool: Tool, work: Work) -> tuple[Step, list[str]] | None:
    language = work.catalogue.language
    best: tuple[float, Step] | None = None
    matter = [
        t for t in inner.tokens if t.fold and t.low not in language.function_words
    ]
    strong = [s for s in inner.spans if s.kinds & {"url", "path", "email"}]
    for match in rank.rank(inner, work.catalogue)[:4]:
        other = match.tool
        if other is tool or not _answers(other) or not other.spec.effects.readonly:
            continue
        filling = fill(other, inner, work.steps, language)
        if filling.missing or not filling.arguments or filling.left_spans:
            continue
        least = (0.0 if matter else 0.12) if strong else 0.42
        if match.score >= least and (best is None or match.score > best[0]):
            best = match.score, Step(tool=other, arguments=filling.arguments)
    if best is None:
        return None
    return best[1], [token.fold for token in inner.tokens if token.fold]


def _answers(tool: Tool) -> bool:
    probe = Step(tool=tool, arguments={})
    return any(earlier.tells(field) for field in earlier.fields([probe]))
