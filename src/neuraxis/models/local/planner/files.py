"""Create file names and contents that a request omits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from neuraxis.models.local.planner import contents, rank
from neuraxis.models.local.planner.catalogue import Slot, Tool
from neuraxis.models.local.planner.draft import Choice, Work
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.tokens import Clause
from neuraxis.specs import Json


async def write_first(
    part: Clause, place: Slot, arguments: dict[str, Json], work: Work
) -> None:
    """Add a step that writes a missing file before its use."""
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
    made = await program(part, writer, content, work)
    near = str(made.arguments.get(where.name, "")) or None
    path = default_path(part, (), work, code=True, near=near)
    work.steps.append(
        Step(tool=writer, arguments={where.name: path, content.name: made.text})
    )
    work.notes.append(f"{part.text!r}: {writer.name} first ({made.source})")
    arguments[place.name] = path


async def program(part: Clause, tool: Tool, slot: Slot, work: Work) -> contents.Made:
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


async def content(
    part: Clause,
    choice: Choice,
    slot: Slot,
    arguments: dict[str, Json],
    path: str,
    following: Sequence[Clause],
    work: Work,
) -> None:
    """Set the contents where the request asks for generated text."""
    language = work.catalogue.language
    given = arguments.get(slot.name)
    if isinstance(given, str) and given.startswith("{{"):
        return
    runs_next = path.endswith(".py") and _is_used_next(following, work)
    if isinstance(given, str) and contents.is_program(given) and (path.endswith(".py")):
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
    best = rank.rank(following[0], work.catalogue)[0].tool
    return any(slot.kind == "path" and ".py" in _endings(slot) for slot in best.slots)


def _is_made_up(part: Clause, language: Language) -> bool:
    genres = set(language.words("genres"))
    return bool(genres & {token.low for token in part.tokens}) and not any(
        span.quoted and "path" not in span.kinds for span in part.spans
    )


def _endings(slot: Slot) -> set[str]:
    return {
        PurePosixPath(value).suffix
        for value in slot.values
        if isinstance(value, str) and PurePosixPath(value).suffix
    }


def near_path(
    part: Clause, tool: Tool, place: Slot, content: Slot, work: Work
) -> str | None:
    """The file name of the example whose contents will be taken."""
    if contents.small_program(part, work.catalogue.language):
        return None
    made = contents.example(part, tool, content, work.catalogue, code=True)
    return str(made.arguments.get(place.name, "")) or None if made else None


def default_path(
    part: Clause,
    following: Sequence[Clause],
    work: Work,
    *,
    code: bool,
    near: str | None = None,
) -> str:
    """Return a default file name, by a near example or type."""
    language = work.catalogue.language
    types = language.table("file_types")
    said = [types[token.low] for token in part.tokens if token.low in types]
    ending = f".{said[-1]}" if said else ""
    if not ending and (code or _is_used_next(following, work)):
        ending = ".py"
    taken = {str(value) for step in work.steps for value in step.arguments.values()}
    if near is not None and near.endswith(ending) and near not in taken:
        return near
    stem = str(language.rules.get("code_stem" if ending == ".py" else "default_stem"))
    name = f"{stem}{ending or '.txt'}"
    number = 2
    while name in taken:
        name = f"{stem}{number}{ending or '.txt'}"
        number += 1
    return name


def runs_programs(tool: Tool) -> bool:
    """Whether the tool takes a program's path and nothing to put there."""
    return not any(slot.kind == "content" for slot in tool.slots) and any(
        slot.kind == "path" and slot.required and ".py" in _endings(slot)
        for slot in tool.slots
    )
