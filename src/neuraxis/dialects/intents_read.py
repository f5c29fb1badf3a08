"""Read a reply of the intent dialect: text in, the calls and the texts around them out.

Rules C3 and C4. A block between the markers wins over JSON without them, the first
block over later ones, and one mistake in a block means that none of it is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import cast

from neuraxis.dialects.intents_calls import (
    ParameterNames,
    Reading,
    like_intents,
    read_calls,
)
from neuraxis.dialects.json_fault import Fault, call_error
from neuraxis.dialects.json_text import (
    Piece,
    markers_pattern,
    pieces,
    read_at,
    strip_fence_after,
    strip_fence_before,
    thought_text,
)
from neuraxis.messages import CallError, Reply
from neuraxis.sentences import malformed_reply, quote, truncated_reply
from neuraxis.specs import Json

START = "<!-- RESPONSE_START -->"
END = "<!-- RESPONSE_END -->"

_MARKERS = markers_pattern(
    r"(?P<start><!--\s*RESPONSE_START\s*-->)|(?P<end><!--\s*RESPONSE_END\s*-->)"
)
_SAYS_TOOL = re.compile(r"[\"'“‘]?\btool[\"'”’]?\s*:")
_SAYS_NAME = re.compile(r"[\"'“‘]?\bname[\"'”’]?\s*:")
_SAYS_ARGUMENTS = re.compile(r"\b(?:arguments|parameters)[\"'”’]?\s*:")
_MARKER_CUT = re.compile(r"<!--\s*RESP[A-Z_]*[\s-]*\Z")
_NEXT_QUESTION = re.compile(r"^(?:q:|# Evaluate this)", re.MULTILINE)
_ANSWER_LABEL = re.compile(r"\s*a:[ \t]*\n?")


def read_reply(
    text: str,
    *,
    next_id: Callable[[], str],
    parameter_names: ParameterNames | None = None,
) -> Reply:
    """The reply as models write it."""
    found = pieces(text, markers=_MARKERS)
    thoughts = tuple(
        thought_text(text[piece.start : piece.end])
        for piece in found
        if piece.kind == "thought"
    )
    reading = Reading(
        parameter_names=parameter_names,
        next_id=next_id,
        lenient=True,
        notes={},
        errors=[],
    )
    block, fault = _find_block(text, found, reading)
    if fault is None and not block:
        fault = _cut_marker(text) or _open_thought(text, found)
    if fault is not None:
        error = call_error(fault) if isinstance(fault, Fault) else fault
        return Reply(thoughts=thoughts, errors=(error,), notes=tuple(reading.notes))
    intents = [item for piece in block for item in _listed(piece, reading)]
    calls = read_calls(intents, reading)
    if reading.errors:
        return Reply(
            thoughts=thoughts,
            errors=tuple(reading.errors),
            notes=tuple(reading.notes),
        )
    return Reply(
        calls=calls,
        texts=_texts(text, found, block, reading),
        thoughts=thoughts,
        notes=tuple(reading.notes),
    )


def read_strictly(text: str, *, next_id: Callable[[], str]) -> Reply:
    """The reply if it is exactly what the document asks for, or its first mistake."""
    body = text.strip()
    if START not in body and END not in body:
        return Reply(texts=(body,) if body else ())
    if not body.startswith(START):
        return _malformed(f"expected nothing before {START}.")
    read = read_at(body, len(START), lenient=False)
    if isinstance(read, Fault):
        return Reply(errors=(call_error(read),))
    if body[read.end :].strip() != END:
        return _malformed(f"expected {END} right behind the list and nothing more.")
    intents: Json = read.value
    if not isinstance(intents, list):
        return _malformed("expected a JSON list between the markers.")
    reading = Reading(
        parameter_names=None, next_id=next_id, lenient=False, notes={}, errors=[]
    )
    calls = read_calls(cast("list[Json]", intents), reading)
    return Reply(errors=tuple(reading.errors)) if reading.errors else Reply(calls=calls)


def _malformed(detail: str) -> Reply:
    return Reply(errors=(malformed_reply(detail),))


# --- finding the block -----------------------------------------------------------


def _find_block(
    text: str, found: Sequence[Piece], reading: Reading
) -> tuple[list[Piece], Fault | CallError | None]:
    marked = next(
        (
            index
            for index, piece in enumerate(found)
            if piece.kind == "marker" and piece.marker == "start"
        ),
        None,
    )
    if marked is None:
        return _find_unmarked(text, found, reading)
    inside: list[Piece] = []
    ended = False
    for piece in found[marked + 1 :]:
        if piece.kind == "marker":
            ended = piece.marker == "end"
            break
        inside.append(piece)
    if not ended:
        reading.notes["no end marker"] = None
    if any(piece.kind == "marker" for piece in found[marked + 1 + len(inside) + 1 :]):
        reading.notes["only the first block was read"] = None
    fault = next((piece.fault for piece in inside if piece.fault is not None), None)
    if fault is not None:
        return [], fault
    groups = _adjacent(text, [piece for piece in inside if piece.value is not None])
    if not groups or _says_call(_between(text, inside)):
        position = found[marked].end
        return [], malformed_reply(
            f"expected a JSON list behind {START}, got "
            f"{quote(text[position : position + 40].strip())}."
        )
    if len(groups) > 1 and ended:
        return [], malformed_reply(
            "there is more than one list between the markers; write one list."
        )
    if len(groups) > 1:
        reading.notes["only the first block was read"] = None
    return groups[0], None


def _find_unmarked(
    text: str, found: Sequence[Piece], reading: Reading
) -> tuple[list[Piece], Fault | None]:
    values = [piece for piece in found if piece.value and like_intents(piece.value)]
    for piece in found:
        if piece.fault is not None and _says_call(text[piece.start : piece.end]):
            return [], piece.fault
    groups = _adjacent(text, values)
    if not groups:
        return [], None
    reading.notes["no markers"] = None
    if len(groups) > 1:
        reading.notes["only the first block was read"] = None
    return groups[0], None


def _adjacent(text: str, values: Sequence[Piece]) -> list[list[Piece]]:
    """Values with nothing between them but fences and commas belong together."""
    groups: list[list[Piece]] = []
    for piece in values:
        if groups:
            between = text[groups[-1][-1].end : piece.start]
            between = strip_fence_before(strip_fence_after(between))
            if between.strip() in ("", ","):
                groups[-1].append(piece)
                continue
        groups.append([piece])
    return groups


def _between(text: str, inside: Sequence[Piece]) -> str:
    return " ".join(
        text[piece.start : piece.end] for piece in inside if piece.kind == "text"
    )


def _says_call(text: str) -> bool:
    """Whether a text that is no JSON was meant to be an intent."""
    return _SAYS_TOOL.search(text) is not None or (
        _SAYS_NAME.search(text) is not None and _SAYS_ARGUMENTS.search(text) is not None
    )


def _cut_marker(text: str) -> CallError | None:
    """A text that ends inside the start marker announced a block."""
    return truncated_reply() if _MARKER_CUT.search(text) else None


def _open_thought(text: str, found: Sequence[Piece]) -> CallError | None:
    """A thought that nobody closed may have swallowed the reply."""
    if not found or found[-1].kind != "thought":
        return None
    last = text[found[-1].start : found[-1].end]
    if last.endswith(">") and "</think" in last.lower():
        return None
    return malformed_reply("the thought that begins with <think> is not closed.")


def _listed(piece: Piece, reading: Reading) -> list[Json]:
    assert piece.value is not None
    reading.notes.update(dict.fromkeys(piece.value.notes))
    block: Json = piece.value.value
    if isinstance(block, list):
        return cast("list[Json]", block)
    reading.notes["an object instead of a list"] = None
    return [block]


# --- what is said to the person --------------------------------------------------


def _texts(
    text: str, found: Sequence[Piece], block: Sequence[Piece], reading: Reading
) -> tuple[str, ...]:
    """The text around the block and the thoughts, without frames and fences."""
    taken = {piece.start for piece in block}
    stretches = [""]
    after_value = False
    block_seen = False
    for piece in found:
        part = text[piece.start : piece.end]
        if piece.start in taken or (
            block and piece.value is not None and like_intents(piece.value)
        ):
            bare = strip_fence_before(stretches[-1])
            if bare != stretches[-1]:
                reading.notes["a fence or tag around the block"] = None
            stretches[-1] = bare
            stretches.append("")
            after_value = block_seen = True
            continue
        if piece.kind in ("marker", "thought"):
            if block and piece.kind == "marker":
                stretches[-1] = strip_fence_before(stretches[-1])
                after_value = True
            stretches.append("")
            continue
        if after_value:
            part = strip_fence_after(part)
            after_value = False
        if block_seen and (question := _NEXT_QUESTION.search(part)) is not None:
            reading.notes["a question that the model asked itself"] = None
            stretches[-1] += part[: question.start()]
            break
        stretches[-1] += part
    label = _ANSWER_LABEL.match(stretches[0])
    if label is not None:
        stretches[0] = stretches[0][label.end() :]
    said = tuple(part.strip() for part in stretches if part.strip())
    if block and said:
        reading.notes["text around the block"] = None
    return said
