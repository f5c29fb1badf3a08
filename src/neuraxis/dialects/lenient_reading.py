"""Shared parts of the lenient readers: groups of values, surrounding texts.

A reply is cut into values that belong together and the texts around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from neuraxis.call_errors import malformed_reply
from neuraxis.dialects.families.cut import (
    between_calls,
    frame_that_opens,
    without_frames,
)
from neuraxis.messages import CallError
from neuraxis.parsing.json_scan import (
    Piece,
    is_closed,
    strip_fence_after,
    strip_fence_before,
    thought_text,
)

FENCED = "a fence or tag around the block"
ONLY_FIRST = "only the first block was read"

NEXT_QUESTION = re.compile(r"^(?:q:|# Evaluate this)", re.MULTILINE)
"""Beginning of a question that a model invents after its calls."""
_REACT = re.compile(
    r"\s*(?:Question:[^\n]*\n\s*)?Thought:.*?(?:\nFinal Answer:|\Z)", re.DOTALL
)
_ANSWER_LABEL = re.compile(r"\s*a:[ \t]*\n?")


def thoughts(text: str, pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Return the thoughts among the pieces, without their tags."""
    return tuple(
        thought_text(text[piece.start : piece.end])
        for piece in pieces
        if piece.kind == "thought"
    )


def open_thought(text: str, pieces: Sequence[Piece]) -> CallError | None:
    """Return an error for an unclosed thought, which may hide the reply."""
    if not pieces or pieces[-1].kind != "thought":
        return None
    if is_closed(text[pieces[-1].start : pieces[-1].end]):
        return None
    return malformed_reply("the thought that begins with <think> is not closed.")


def own_turn(pieces: list[Piece], is_ours: Callable[[Piece], bool]) -> list[Piece]:
    """Return the pieces before the end of the model's turn.

    The text after it is what the model imagines that others say.
    """
    called = False
    for index, piece in enumerate(pieces):
        if called and piece.marker == "turn":
            return pieces[:index]
        called = called or is_ours(piece)
    return pieces


def adjacent(text: str, values: Sequence[Piece]) -> list[list[Piece]]:
    """Group values with nothing between them but fences and commas.

    Chat template tokens count as fences.
    """
    groups: list[list[Piece]] = []
    for piece in values:
        if groups:
            between = text[groups[-1][-1].end : piece.start]
            between = strip_fence_before(strip_fence_after(between))
            if between_calls(between):
                groups[-1].append(piece)
                continue
        groups.append([piece])
    return groups


def words_around(
    text: str,
    pieces: Sequence[Piece],
    block: Collection[Piece],
    is_ours: Callable[[Piece], bool],
    notes: dict[str, None],
) -> tuple[str, ...]:
    """Return the text around the block, without thoughts, frames and fences."""
    starts = {piece.start for piece in block}
    stretches = [""]
    after_block = block_seen = False
    for piece in pieces:
        part = text[piece.start : piece.end]
        is_label = piece.marker == "turn" and not part.startswith("<")
        if block and (piece.start in starts or is_ours(piece) or piece.marker):
            bare = strip_fence_before(stretches[-1])
            if bare != stretches[-1]:
                notes[FENCED] = None
            stretches[-1] = bare
            stretches.append("")
            after_block = True
            block_seen = block_seen or piece.start in starts
            continue
        if (piece.marker and not is_label) or piece.kind == "thought":
            stretches.append("")
            continue
        if after_block:
            part = strip_fence_after(part)
            after_block = False
        if block_seen and (question := NEXT_QUESTION.search(part)) is not None:
            notes["a question that the model asked itself"] = None
            stretches[-1] += part[: question.start()]
            break
        stretches[-1] += part
    label = _ANSWER_LABEL.match(stretches[0])
    if label is not None:
        stretches[0] = stretches[0][label.end() :]
    react_label = _REACT.match(stretches[0])
    if react_label is not None and (block or react_label[0].endswith(":")):
        stretches[0] = stretches[0][react_label.end() :]
    bare = [_words(part, whole=not block) for part in stretches]
    texts = tuple(part for part in bare if part)
    if block and texts:
        notes["text around the block"] = None
    return texts


def _words(part: str, *, whole: bool) -> str:
    """Return a text without frames; `whole`: not those of calls in it."""
    if whole and frame_that_opens(part) is not None:
        return part.strip()
    return without_frames(part) or (part.strip() if whole else "")
