"""Decode a reply of the intent dialect into calls and texts.

Rules C3 and C4. A block between the markers wins over calls without them, the first
block over later ones, and one mistake in a block means that none of it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import cast

from neuraxis.call_errors import malformed_reply, truncated_reply
from neuraxis.dialects.families.cut import between_calls, cut, is_framed, markers
from neuraxis.dialects.families.family import bare
from neuraxis.dialects.intents.calls import (
    END,
    START,
    IsTool,
    ParameterNames,
    Reading,
    by_tool,
    flat_intent,
    has_intents,
    holds_call,
    is_message,
    no_parameters,
    no_tools,
    passed_intents,
    read_calls,
)
from neuraxis.dialects.lenient_reading import (
    ONLY_FIRST,
    adjacent,
    open_thought,
    thoughts,
    words_around,
)
from neuraxis.dialects.shown import (
    Sent,
    nameless_call,
    sent_calls,
    yaml_call,
)
from neuraxis.formatting import quote
from neuraxis.messages import CallError, Reply
from neuraxis.parsing.json_errors import Fault, broken, call_error
from neuraxis.parsing.json_scan import Piece, read_at, strip_fence_before
from neuraxis.specs import Json

_MARKERS = markers(
    r"(?P<start><!--\s*RESPONSE_START\s*-->)|(?P<end><!--\s*RESPONSE_END\s*-->)"
)
_SAYS_TOOL = re.compile(r"[\"'“‘]?\btool[\"'”’]?\s*:")
_TOOL_MEMBER = re.compile(r"[\"'“‘]tool[\"'”’]\s*:\s*[\"'“‘]")
_SAYS_NAME = re.compile(r"[\"'“‘]?\b(?:tool_|function_)?name[\"'”’]?\s*:")
_SAYS_ARGUMENTS = re.compile(r"\b(?:arguments|parameters)[\"'”’]?\s*:")
_FIRST_KEY = re.compile(r"[\s\[{]*+[\"']([^\"'\n]{1,200})[\"']\s*:\s*\{")
_YAML = re.compile(
    r"^[ \t-]*(?:name|tool|function|action):[ \t]*[\"']?([\w.-]{1,200})[\"']?"
    r"[^\S\n]*+\n\s*+(?:arguments|parameters|args|input):",
    re.MULTILINE,
)
_NAME_LIST = re.compile(
    r"(?:```\w*)?\s*+\[[\s({\"']*+([\w.-]{1,200}+)[\"']?+\s*+"
    r"(?:\(|,\s*+(?:[{\[\"'-]|\w{1,100}+=))"
)
_ESCAPED = re.compile(r"(?<=\w)\\_(?=\w)")
_NAMED = re.compile(r"[^\W\d_] \|(?:[,.;)][\s\S]?| [^\W\d_])")
_MARKER_CUT = re.compile(r"<!--\s*RESP[A-Z_]*[\s-]*\Z")


def read_reply(
    text: str,
    *,
    next_id: Callable[[], str],
    parameter_names: ParameterNames | None = None,
    is_tool: IsTool = no_tools,
    first_only: bool = True,
) -> Reply:
    r"""Decode a reply as models write it.

    If a reply without calls has Markdown escapes (`get\_time`), it is read without
    them.

    Args:
        text: the whole reply.
        next_id: makes the ids of the calls.
        parameter_names: the parameters of a tool.
        is_tool: whether there is a tool of that name.
        first_only: of several blocks only the first is read (rule C3).
    """

    def read(text: str) -> Reply:
        return _read(text, next_id, parameter_names, is_tool, first_only)

    reply = read(text)
    if not reply.calls and _ESCAPED.search(text):
        plain = read(text.replace("\\_", "_"))
        return plain if plain.calls or (plain.errors and not reply.errors) else reply
    return reply


def _read(
    text: str,
    next_id: Callable[[], str],
    parameter_names: ParameterNames | None,
    is_tool: IsTool,
    first_only: bool,
) -> Reply:
    reading = Reading(
        parameter_names=parameter_names,
        next_id=next_id,
        lenient=True,
        notes={},
        errors=[],
        is_tool=is_tool,
    )

    is_known: IsTool = cache(partial(_is_known, is_tool))

    def is_call(piece: Piece) -> bool:
        if piece.value is not None:
            return has_intents(piece.value, is_known, parameter_names or no_parameters)
        return piece.kind == "calls"

    def is_ours(piece: Piece) -> bool:
        return piece.start in sent.made

    parts = cut(text, is_known, _MARKERS, is_call)
    pieces = [_plain(text, piece) for piece in parts]
    sent = sent_calls(text, pieces, is_call)
    own = sent.pieces
    thought_texts = thoughts(text, own)
    blocks, fault = _find_blocks(text, sent, is_ours, is_known, reading)
    if fault is None and not blocks:
        fault = _cut_marker(text) or open_thought(text, own)
    if fault is not None:
        error = call_error(fault) if isinstance(fault, Fault) else fault
        return Reply(
            thoughts=thought_texts, errors=(error,), notes=tuple(reading.notes)
        )
    read = [piece for block in blocks[: 1 if first_only else None] for piece in block]
    unread_starts = sent.made.difference(piece.start for piece in read)
    unread = [piece for piece in own if piece.start in unread_starts]
    intents = [item for piece in read for item in _intents_of(piece, reading, is_known)]
    calls = read_calls(intents, reading)
    notes = reading.notes
    if reading.errors:
        errors = tuple(reading.errors)
        return Reply(thoughts=thought_texts, errors=errors, notes=tuple(notes))
    texts = words_around(text, own, read, is_ours, notes)
    if unread:
        notes[ONLY_FIRST] = None
    return Reply(
        calls=calls,
        texts=texts,
        thoughts=thought_texts,
        notes=tuple(notes),
        left=tuple(
            name for piece in unread for name in _names(piece, reading, is_known)
        ),
    )


def _is_known(is_tool: IsTool, name: str) -> bool:
    """Return whether a tool has this name, with or without namespace."""
    return is_tool(name) or is_tool(bare(name))


def _names(piece: Piece, reading: Reading, is_tool: IsTool) -> Iterator[str]:
    """Yield the names of the tools that a block calls."""
    for item in _intents_of(piece, reading, is_tool):
        intent = cast("dict[str, Json]", item) if isinstance(item, dict) else {}
        name = next((intent[key] for key in ("tool", "name") if key in intent), None)
        yield name if isinstance(name, str) else "?"


def read_strictly(
    text: str,
    *,
    next_id: Callable[[], str],
    parameter_names: ParameterNames | None = None,
) -> Reply:
    """Decode strictly, as the document requires; return the first mistake."""
    body = text.strip()
    if START not in body and END not in body:
        return Reply(texts=(body,) if body else ())
    if not body.startswith(START):
        return _malformed(f"expected nothing before {START}.")
    read = read_at(body, len(START), lenient=False)
    if isinstance(read, Fault):
        return Reply(errors=(call_error(read),))
    if body[read.end :].strip() != END:
        return _malformed(f"expected {END} right after the list and nothing more.")
    intents: Json = read.value
    if not isinstance(intents, list):
        return _malformed("expected a JSON list between the markers.")
    reading = Reading(
        parameter_names=parameter_names,
        next_id=next_id,
        lenient=False,
        notes={},
        errors=[],
        is_tool=no_tools,
    )
    calls = read_calls(cast("list[Json]", intents), reading)
    return Reply(errors=tuple(reading.errors)) if reading.errors else Reply(calls=calls)


def _malformed(detail: str) -> Reply:
    return Reply(errors=(malformed_reply(detail),))


def _plain(text: str, piece: Piece) -> Piece:
    """Return a marker in backticks or between words as text."""
    if piece.marker not in ("start", "end"):
        return piece
    before = text[max(0, piece.start - 2) : piece.start]
    behind = text[piece.end : piece.end + 2]
    code = before[-1:] == "`" and behind[:1] == "`"
    if not code and _NAMED.fullmatch(f"{before}|{behind}") is None:
        return piece
    return Piece(kind="text", start=piece.start, end=piece.end)


# --- finding the block -----------------------------------------------------------


def _find_blocks(
    text: str,
    sent: Sent,
    is_ours: Callable[[Piece], bool],
    is_tool: IsTool,
    reading: Reading,
) -> tuple[list[list[Piece]], Fault | CallError | None]:
    pieces = sent.pieces
    starts = (at for at, piece in enumerate(pieces) if piece.marker == "start")
    marked = next(starts, None)
    if marked is not None:
        return _find_marked(text, pieces, marked, reading)
    for piece in pieces:
        if piece.fault is not None:
            part = text[piece.start : piece.end]
            is_meant = piece.meant or is_framed(text, piece.start)
            if is_meant or _says_call(part) or _names_tool(part, is_tool):
                return [], piece.fault
    if sent.unclear is not None:
        return [], sent.unclear
    if (next_call := _cut_next_call(text, pieces, is_ours)) is not None:
        return [], next_call
    if (nameless := nameless_call(text, sent)) is not None:
        return [], nameless
    groups = adjacent(text, [piece for piece in pieces if is_ours(piece)])
    if groups and groups[0][0].kind == "value":
        reading.notes["no markers"] = None
    return groups, None if groups else _lost_bracket(text, sent, is_tool)


def _find_marked(
    text: str, pieces: Sequence[Piece], marked: int, reading: Reading
) -> tuple[list[list[Piece]], Fault | CallError | None]:
    inside: list[Piece] = []
    ended = False
    for piece in pieces[marked + 1 :]:
        if piece.marker in ("start", "end"):
            ended = piece.marker == "end"
            break
        inside.append(piece)
    if not ended:
        reading.notes["no end marker"] = None
    fault = next((piece.fault for piece in inside if piece.fault is not None), None)
    if fault is not None:
        return [], fault
    groups = adjacent(text, [piece for piece in inside if piece.value or piece.calls])
    if not groups or _says_call(_between(text, inside)):
        position = pieces[marked].end
        return [], malformed_reply(
            f"expected a JSON list after {START}, got "
            f"{quote(text[position : position + 40].strip())}."
        )
    if len(groups) > 1 and ended:
        return [], malformed_reply(
            "there is more than one list between the markers; write one list."
        )
    return groups[:1], None


def _cut_next_call(
    text: str, pieces: Sequence[Piece], is_ours: Callable[[Piece], bool]
) -> Fault | None:
    """Return the fault of a call that is cut off after another."""
    end = max((piece.end for piece in pieces if is_ours(piece)), default=len(text))
    following = text[end:].rstrip()
    before = following.rstrip("[{ \t\r\n")
    if before != following and between_calls(strip_fence_before(before)):
        begun = text.index(following[len(before) :].lstrip()[0], end + len(before))
        return broken(text, begun, "expected the next call, got nothing").fault
    start = len(text) - len(text[end:].lstrip(" \t\n,"))
    for piece in pieces:
        fault = piece.fault
        if piece.start == start and fault is not None and fault.code == "truncated":
            return fault
    return None


def _names_tool(text: str, is_tool: IsTool) -> bool:
    """Return whether broken JSON begins with the name of a tool."""
    key = _FIRST_KEY.match(text)
    return key is not None and is_tool(key[1])


def _lost_bracket(text: str, sent: Sent, is_tool: IsTool) -> Fault | None:
    """Return the fault of an unread list, or an intent without brackets."""
    name_list = _NAME_LIST.match(text.lstrip())
    if name_list is not None and is_tool(name_list[1]) and not sent.shown:
        expected = f"expected {quote(name_list[1])} with its arguments in JSON"
        return broken(text, 0, expected).fault
    if (start := yaml_call(text, sent.pieces, is_tool)) is not None:
        return broken(text, start, "expected the call in JSON, got YAML").fault
    for piece in sent.pieces:
        if (
            piece.value
            and piece.start not in sent.shown
            and holds_call(piece.value.value, is_message)
        ):
            form = "expected a call of a tool, got a message of another format"
            return broken(text, piece.start, form).fault
        if piece.kind != "text":
            continue
        mention = _TOOL_MEMBER.search(text, piece.start, piece.end)
        yaml = _YAML.search(text, piece.start, piece.end)
        if mention is None and yaml is not None and is_tool(yaml[1]):
            mention = yaml
        if mention is not None:
            message = "a tool is named outside of a JSON object"
            return broken(text, mention.start(), message).fault
    return None


def _between(text: str, pieces: Sequence[Piece]) -> str:
    return " ".join(
        text[piece.start : piece.end] for piece in pieces if piece.kind == "text"
    )


def _says_call(text: str) -> bool:
    """Return whether a text without JSON was meant as an intent."""
    return _SAYS_TOOL.search(text) is not None or (
        _SAYS_NAME.search(text) is not None and _SAYS_ARGUMENTS.search(text) is not None
    )


def _cut_marker(text: str) -> CallError | None:
    """Return an error for a text that ends inside the start marker."""
    return truncated_reply() if _MARKER_CUT.search(text) else None


def _intents_of(piece: Piece, reading: Reading, is_tool: IsTool) -> list[Json]:
    """Return the intents of a block, converted from other forms if needed."""
    if piece.value is None:
        reading.notes["calls in a form of the model's own"] = None
        reading.notes.update(dict.fromkeys(piece.notes))
        return [flat_intent(*call, reading) for call in piece.calls]
    reading.notes.update(dict.fromkeys(piece.value.notes))
    block: Json = piece.value.value
    inner = passed_intents(block, is_tool)
    if inner is not None:
        reading.notes["calls inside another object"] = None
        block = inner
    elif not isinstance(block, list):
        reading.notes["an object instead of a list"] = None
        block = [block]
    intents: list[Json] = []
    for item in cast("list[Json]", block):
        named = by_tool(item, is_tool)
        intents += [flat_intent(*call, reading) for call in named] or [item]
    return intents
