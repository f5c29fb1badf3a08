"""Decode a reply of the intent dialect into calls and texts.

Rules C3 and C4. A block between the markers wins over JSON without them, the first
block over later ones, and one mistake in a block means that none of it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import cast

from neuraxis.call_errors import malformed_reply, truncated_reply
from neuraxis.dialects import chat_templates
from neuraxis.dialects.chat_templates import without_frames
from neuraxis.dialects.intents.calls import (
    ParameterNames,
    Reading,
    flat_intent,
    like_intents,
    passed_calls,
    read_calls,
)
from neuraxis.dialects.segments import (
    ONLY_FIRST,
    adjacent,
    open_thought,
    said_around,
    thoughts,
)
from neuraxis.formatting import quote
from neuraxis.messages import CallError, Reply
from neuraxis.parsing.json_errors import Fault, broken, call_error
from neuraxis.parsing.json_scan import (
    Piece,
    markers_pattern,
    pieces,
    read_at,
    strip_fence_before,
)
from neuraxis.specs import Json

START = "<!-- RESPONSE_START -->"
END = "<!-- RESPONSE_END -->"

_MARKERS = markers_pattern(
    r"(?P<start><!--\s*RESPONSE_START\s*-->)|(?P<end><!--\s*RESPONSE_END\s*-->)"
)
_SAYS_TOOL = re.compile(r"[\"'“‘]?\btool[\"'”’]?\s*:")
_TOOL_MEMBER = re.compile(r"[\"'“‘]tool[\"'”’]\s*:\s*[\"'“‘]")
_SAYS_NAME = re.compile(r"[\"'“‘]?\bname[\"'”’]?\s*:")
_SAYS_ARGUMENTS = re.compile(r"\b(?:arguments|parameters)[\"'”’]?\s*:")
_MARKER_CUT = re.compile(r"<!--\s*RESP[A-Z_]*[\s-]*\Z")


def read_reply(
    text: str,
    *,
    next_id: Callable[[], str],
    parameter_names: ParameterNames | None = None,
) -> Reply:
    """Decode a reply as models write it."""
    found = pieces(text, markers=_MARKERS)
    thought = thoughts(text, found)
    reading = Reading(
        parameter_names=parameter_names,
        next_id=next_id,
        lenient=True,
        notes={},
        errors=[],
    )
    marked = any(piece.kind == "marker" for piece in found)
    begun = None if marked else chat_templates.begins(text, found)
    if begun is not None and (own := chat_templates.read(text, found, begun)):
        return _read_template_calls(text, found, own, thought, reading)
    block, fault = _find_block(text, found, reading)
    if fault is None and not block:
        fault = _cut_marker(text) or open_thought(text, found)
    if fault is None and not block and begun is not None:
        fault = chat_templates.unread(text, begun)
    if fault is not None:
        error = call_error(fault) if isinstance(fault, Fault) else fault
        return Reply(thoughts=thought, errors=(error,), notes=tuple(reading.notes))
    intents = [item for piece in block for item in _listed(piece, reading)]
    calls = read_calls(intents, reading)
    if reading.errors:
        return Reply(
            thoughts=thought,
            errors=tuple(reading.errors),
            notes=tuple(reading.notes),
        )
    texts = said_around(text, found, block, like_intents, reading.notes)
    if begun is not None and any(map(_holds_foreign, texts)):
        error = malformed_reply("the calls are written in more than one form.")
        return Reply(thoughts=thought, errors=(error,), notes=tuple(reading.notes))
    if block:
        texts = tuple(bare for said in texts if (bare := without_frames(said)))
    return Reply(
        calls=calls,
        texts=texts,
        thoughts=thought,
        notes=tuple(reading.notes),
    )


def _holds_foreign(text: str) -> bool:
    found = pieces(text)
    begun = chat_templates.begins(text, found)
    return begun is not None and chat_templates.read(text, found, begun) is not None


def _read_template_calls(
    text: str,
    found: Sequence[Piece],
    own: chat_templates.Foreign,
    thought: tuple[str, ...],
    reading: Reading,
) -> Reply:
    """Decode calls in the format of the model's chat template."""
    reading.notes["calls in a form of the model's own"] = None
    reading.notes.update(dict.fromkeys(own.notes))
    intents = [flat_intent(name, arguments, reading) for name, arguments in own.calls]
    calls = () if own.error else read_calls(intents, reading)
    errors = (own.error,) if own.error else tuple(reading.errors)
    notes = reading.notes
    if errors:
        return Reply(thoughts=thought, errors=errors, notes=tuple(notes))
    before = "".join(
        text[piece.start : min(piece.end, own.start)]
        for piece in found
        if piece.kind not in ("thought", "marker") and piece.start < own.start
    )
    if _holds_foreign(text[own.end :]):
        notes[ONLY_FIRST] = None
    around = (strip_fence_before(before), text[own.end :])
    texts = tuple(bare for said in around if (bare := without_frames(said)))
    return Reply(calls=calls, texts=texts, thoughts=thought, notes=tuple(notes))


def read_strictly(
    text: str,
    *,
    next_id: Callable[[], str],
    parameter_names: ParameterNames | None = None,
) -> Reply:
    """Decode strictly: exactly what the document requires, or the first mistake."""
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
        parameter_names=parameter_names,
        next_id=next_id,
        lenient=False,
        notes={},
        errors=[],
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
        reading.notes[ONLY_FIRST] = None
    fault = next((piece.fault for piece in inside if piece.fault is not None), None)
    if fault is not None:
        return [], fault
    groups = adjacent(text, [piece for piece in inside if piece.value is not None])
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
        reading.notes[ONLY_FIRST] = None
    return groups[0], None


def _find_unmarked(
    text: str, found: Sequence[Piece], reading: Reading
) -> tuple[list[Piece], Fault | None]:
    values = [piece for piece in found if piece.value and like_intents(piece.value)]
    for piece in found:
        if piece.fault is not None and _says_call(text[piece.start : piece.end]):
            return [], piece.fault
    groups = adjacent(text, values)
    if not groups:
        return [], _lost_bracket(text, found)
    reading.notes["no markers"] = None
    if len(groups) > 1:
        reading.notes[ONLY_FIRST] = None
    return groups[0], None


def _lost_bracket(text: str, found: Sequence[Piece]) -> Fault | None:
    """Return the fault of an intent that lost its brackets."""
    for piece in found:
        if piece.kind == "text" and (
            said := _TOOL_MEMBER.search(text, piece.start, piece.end)
        ):
            message = "a tool is named outside of a JSON object"
            return broken(text, said.start(), message).fault
    return None


def _between(text: str, inside: Sequence[Piece]) -> str:
    return " ".join(
        text[piece.start : piece.end] for piece in inside if piece.kind == "text"
    )


def _says_call(text: str) -> bool:
    """Return whether a text without JSON was meant as an intent."""
    return _SAYS_TOOL.search(text) is not None or (
        _SAYS_NAME.search(text) is not None and _SAYS_ARGUMENTS.search(text) is not None
    )


def _cut_marker(text: str) -> CallError | None:
    """Return an error for a text that ends inside the start marker."""
    return truncated_reply() if _MARKER_CUT.search(text) else None


def _listed(piece: Piece, reading: Reading) -> list[Json]:
    assert piece.value is not None
    reading.notes.update(dict.fromkeys(piece.value.notes))
    block: Json = piece.value.value
    inside = passed_calls(block)
    if inside is not None:
        reading.notes['a list under "tool_calls"'] = None
        return inside
    if isinstance(block, list):
        return cast("list[Json]", block)
    reading.notes["an object instead of a list"] = None
    return [block]
