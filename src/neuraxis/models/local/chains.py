"""One clause added to the plan: its call, and the calls it takes for granted.

"Save the page at X to Y" needs X fetched first; "run a script that prints 5" needs it
written first. Names of files and contents that the request leaves open are made here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from neuraxis.models.local import clauses, contents, earlier, retrieval
from neuraxis.models.local.catalogue import Slot, Tool
from neuraxis.models.local.tokens import Clause
from neuraxis.models.local.earlier import Step
from neuraxis.models.local.fill import Filling, fill
from neuraxis.models.local.language import Language

if TYPE_CHECKING:
    from neuraxis.models.local.planner import Choice, Work


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
        and runs_programs(tool)
        and place.name not in arguments
    ):
        await _write_first(part, place, arguments, work)
    unnamed = False
    if place is not None and content is not None and place.required:
        if place.name not in arguments:
            unnamed = True
            arguments[place.name] = default_path(
                part, place, following, work, code=code
            )
        path = str(arguments[place.name])
    if content is not None and content.name not in arguments and work.steps:
        field = earlier.pick(work.steps, [], content, work.catalogue.language)
        if field is not None and not code:
            arguments[content.name] = field.expression(len(work.steps))
    if content is not None:
        await _content(part, choice, content, arguments, path, following, work)
    missing = [
        slot.name for slot in tool.slots if slot.required and slot.name not in arguments
    ]
    if missing:
        return ", ".join(name.replace("_", " ") for name in missing)
    if unnamed:
        work.unnamed.add(len(work.steps))
    for values in spread(part, choice, work.catalogue.language) or [arguments]:
        given = {**arguments, **values}
        ordered = {s.name: given[s.name] for s in tool.slots if s.name in given}
        work.steps.append(Step(tool=tool, arguments=ordered))
    work.notes.append(
        f"{part.text!r}: {tool.name}, rules and examples, score {choice.score:.2f}"
    )
    return None


def renames(part: Clause, work: Work) -> bool:
    """ "Write a program …, save it as count.py": the name of the step before."""
    last = len(work.steps) - 1
    language = work.catalogue.language
    paths = [span.value for span in part.spans if "path" in span.kinds]
    matter = [
        token
        for token in part.tokens
        if token.span is None and token.fold and token.low not in (
            language.function_words
        )
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
    arguments: dict[str, object],
    work: Work,
) -> None:
    """A content that is itself the result of a call: plan that call first."""
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
    inner = tokens.clause(text, work.catalogue.language)
    found = _producer(inner, tool, work)
    if found is None:
        return
    step, words = found
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
        if any(part.tokens[i].span is not None or i in tokens for i in gap) or len(
            gap
        ) > 2:
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
    strong = [s for s in inner.spans if s.kinds & {"url", "path", "email"}]
    for match in retrieval.rank(inner, work.catalogue)[:4]:
        other = match.tool
        if other is tool or not _answers(other) or not other.spec.effects.readonly:
            continue
        filling = fill(other, inner, work.steps, language)
        if filling.missing or not filling.arguments or filling.left_spans:
            continue
        least = 0.12 if strong else 0.42
        if match.score >= least and (best is None or match.score > best[0]):
            best = match.score, Step(tool=other, arguments=filling.arguments)
    if best is None:
        return None
    return best[1], [token.fold for token in inner.tokens if token.fold]


def _answers(tool: Tool) -> bool:
    probe = Step(tool=tool, arguments={})
    return any(earlier.tells(field) for field in earlier.fields([probe]))


async def _write_first(
    part: Clause, place: Slot, arguments: dict[str, object], work: Work
) -> None:
    """A file that does not exist yet is written before it is used."""
    language = work.catalogue.language
    if not contents.is_code_wish(part, "", language):
        return
    writer = next(
        (
            tool
            for tool in work.catalogue.tools
            if {"path", "content"} <= {slot.kind for slot in tool.slots}
            and all(s.kind in ("path", "content") for s in tool.slots if s.required)
        ),
        None,
    )
    if writer is None:
        return
    where = next(slot for slot in writer.slots if slot.kind == "path")
    content = next(slot for slot in writer.slots if slot.kind == "content")
    path = default_path(part, where, (), work, code=True)
    made = await program(part, writer, content, work)
    work.steps.append(
        Step(tool=writer, arguments={where.name: path, content.name: made.text})
    )
    work.notes.append(f"{part.text!r}: {writer.name} first ({made.source})")
    arguments[place.name] = path


async def program(
    part: Clause, tool: Tool, slot: Slot, work: Work
) -> contents.Made:
    """A program for what the clause asks."""
    language = work.catalogue.language
    return (
        contents.small_program(part, language)
        or contents.example(part, tool, slot, work.catalogue, code=True)
        or _printing(part, language)
        or await contents.written_program(part, work.writer, language)
    )


def _printing(part: Clause, language: Language) -> contents.Made | None:
    if any(span.quoted and "path" not in span.kinds for span in part.spans):
        return contents.Made(
            text=contents.literal_program(part, language), source="rule"
        )
    return None


async def _content(
    part: Clause,
    choice: Choice,
    slot: Slot,
    arguments: dict[str, object],
    path: str,
    following: Sequence[Clause],
    work: Work,
) -> None:
    language = work.catalogue.language
    given = arguments.get(slot.name)
    if isinstance(given, str) and given.startswith("{{"):
        return
    runs_next = path.endswith(".py") and _is_used_next(following, work)
    if isinstance(given, str) and contents.is_program(given) and (
        path.endswith(".py")
    ):
        return
    if contents.is_code_wish(part, path, language):
        made = await program(part, choice.tool, slot, work)
    elif runs_next:
        made = contents.Made(
            text=contents.literal_program(part, language), source="literal"
        )
    elif _is_made_up(part, language):
        made = await contents.written_text(part, work.writer)
    else:
        made = None
    if made is not None:
        arguments[slot.name] = made.text
        work.notes.append(f"{part.text!r}: {slot.name} by {made.source}")


def _is_used_next(following: Sequence[Clause], work: Work) -> bool:
    if not following:
        return False
    best = retrieval.rank(following[0], work.catalogue)[0].tool
    return any(
        slot.kind == "path" and ".py" in _endings(slot) for slot in best.slots
    )


def _is_made_up(part: Clause, language: Language) -> bool:
    genres = set(language.words("genres"))
    return bool(genres & {token.low for token in part.tokens}) and not any(
        span.quoted and "path" not in span.kinds for span in part.spans
    )


def runs_programs(tool: Tool) -> bool:
    """Whether the tool takes a program's path and nothing to put there."""
    return not any(slot.kind == "content" for slot in tool.slots) and any(
        slot.kind == "path" and slot.required and ".py" in _endings(slot)
        for slot in tool.slots
    )


def spread(part: Clause, choice: Choice, language: Language) -> list[dict[str, object]]:
    """ "Fetch a and b": the arguments of a call for each."""
    filling = choice.filling
    for slot in choice.tool.slots:
        value = filling.arguments.get(slot.name)
        if slot.kind in ("url", "path", "email"):
            more = [
                span.value
                for index in filling.left
                if (span := part.tokens[index].span) and slot.kind in span.kinds
            ]
            if more and filling.taken.get(slot.name) and isinstance(value, str):
                said = {s.value: s.start for s in part.spans}
                values = sorted([value, *more], key=lambda text: said.get(text, 0))
                return [{**filling.arguments, slot.name: text} for text in values]
        elif slot.kind in ("place", "identifier") and isinstance(value, str):
            joined = "|".join(re.escape(word) for word in language.words("coordination"))
            parts = re.split(rf",\s*(?:(?:{joined})\s+)?|\s+(?:{joined})\s+", value)
            if len(parts) > 1 and all(text[:1].isupper() for text in parts):
                return [{**filling.arguments, slot.name: text} for text in parts]
            if more := _likewise(part, filling, slot, language):
                return [
                    {**filling.arguments, slot.name: text} for text in (value, *more)
                ]
    return []


def _likewise(
    part: Clause, filling: Filling, slot: Slot, language: Language
) -> list[str]:
    """ "in Tokyo and in London": values left over behind the same small word."""
    taken = sorted(filling.taken[slot.name].tokens)
    lead = part.tokens[taken[0]].low
    joined = (",", *language.words("coordination"))
    found: list[str] = []
    for index in filling.left:
        before = [part.tokens[i].low for i in range(max(0, index - 2), index)]
        if part.tokens[index].text[:1].isupper() and (
            (before[-1:] == [lead] and before[0] in joined)
            or (before and before[-1] in joined)
        ):
            found.append(part.tokens[index].text)
    return found


def _endings(slot: Slot) -> set[str]:
    return {
        PurePosixPath(value).suffix
        for value in slot.values
        if isinstance(value, str) and PurePosixPath(value).suffix
    }


def default_path(
    part: Clause,
    slot: Slot,
    following: Sequence[Clause],
    work: Work,
    *,
    code: bool,
) -> str:
    """A file name where the request gives none: from the examples, by file type."""
    language = work.catalogue.language
    types = language.table("file_types")
    said = [types[token.low] for token in part.tokens if token.low in types]
    ending = f".{said[-1]}" if said else ""
    if not ending and (code or _is_used_next(following, work)):
        ending = ".py"
    shown = [value for value in slot.values if isinstance(value, str) and value]
    taken = {
        str(value) for step in work.steps for value in step.arguments.values()
    }
    for value in shown:
        if (not ending or value.endswith(ending)) and value not in taken:
            return value
    stem = PurePosixPath(shown[0]).stem if shown and not ending else ""
    stem = stem or str(language.rules.get("default_stem", "output"))
    name = f"{stem}{ending or '.txt'}"
    number = 2
    while name in taken:
        name = f"{stem}{number}{ending or '.txt'}"
        number += 1
    return name
