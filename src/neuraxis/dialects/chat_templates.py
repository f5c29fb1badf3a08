"""Read tool calls in the format of a model's own chat template.

A server that knows the template takes such calls out of the text, and many do not. Text
that begins a call in one of these formats is never the answer to the user: it is read
whole, or reported to the model. Code that a reply only shows has no calls.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import cast

from msgspec import Struct

from neuraxis.call_errors import duplicate_key, malformed_reply, truncated_reply
from neuraxis.formatting import quote
from neuraxis.messages import CallError
from neuraxis.parsing.json_errors import call_error
from neuraxis.parsing.json_scan import Piece
from neuraxis.specs import Json

_TOOL_CALLS = r"(?:\w{1,20}:)?tool_?calls?"
_BAR = r"[|｜]"
# tokens that frame calls and say nothing of their own
_FRAME = (
    rf"</?(?:{_TOOL_CALLS}|function_calls)>"
    rf"|<{_BAR}/?tool(?:_|▁)calls?(?:(?:_|▁)(?:section_)?(?:begin|end|start))?{_BAR}>"
    rf"|<{_BAR}(?:python_tag|action_start|action_end|plugin|START_ACTION|END_ACTION)"
    rf"{_BAR}>|\[/?TOOL_CALLS\]"
)
# the end of a turn: behind it a model writes what it imagines the others say
_TURN_END = rf"<{_BAR}(?:eo[tm]_id|im_end|end|call|endoftext){_BAR}>|</s>"
_FRAMES = re.compile(_FRAME)
_ALL_FRAMES = re.compile(rf"{_FRAME}|{_TURN_END}")
_FRAME_BEFORE = re.compile(rf"(?:\s|{_FRAME}|{_TURN_END})*+")
_SKIPPED = re.compile(rf"(?:\s|[,;]|{_FRAME})*+")
# the beginning of a call, unmistakable or on a line of its own
_BEGINS = re.compile(
    rf"(?P<token>\[TOOL_CALLS\]|<{_BAR}(?:python_tag|action_start|START_ACTION"
    rf"|tool(?:_|▁)calls?(?:(?:_|▁)(?:section_)?(?:begin|start))?){_BAR}>"
    r"|<\|channel\|>\s*commentary\s+to=|to=functions\.[\w.-]+\s*<\|channel\|>)"
    r"|(?:(?<=\n)|\A)[ \t]*(?P<line><function=|<(?:\w{1,20}:)?invoke name="
    rf"|<{_TOOL_CALLS}>|<function_calls>|```tool_code\b)"
)
_SIGNS = ("<", "[TOOL_CALLS]", "```tool_code", "to=functions.")
"""Substrings of which every call in a template format has one."""

_MOST_SHOWN = 50
"""Maximum tokens in quoted code that are skipped before the search stops."""

_NAME = r"(?P<name>[\w.-]{1,200})"
_WITH_JSON = tuple(
    (re.compile(begin), re.compile(end))
    for begin, end in (
        # Mistral
        (
            rf"\[TOOL_CALLS\]\s*{_NAME}\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\]\s*)?"
            r"(?=\{|\Z)",
            "",
        ),
        # Llama
        (r"<function=(?P<name>[^<>\n]{1,200})>\s*(?=\{|\Z)", r"\s*(?:</function>)?"),
        # DeepSeek
        (
            rf"<{_BAR}tool▁call▁begin{_BAR}>(?:function<{_BAR}tool▁sep{_BAR}>)?"
            rf"{_NAME}\s*(?:<{_BAR}tool▁sep{_BAR}>)?\s*(?:```json)?\s*(?=\{{|\Z)",
            rf"\s*+(?:```\s*+)?<{_BAR}tool▁call▁end{_BAR}>",
        ),
        # Kimi
        (
            r"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>[\w.-]{1,200}?)(?::\d+)?"
            r"\s*<\|tool_call_argument_begin\|>\s*",
            r"\s*<\|tool_call_end\|>",
        ),
        # Harmony
        (
            rf"<\|channel\|>\s*commentary\s+to=(?:functions\.)?{_NAME}\s*"
            r"(?:<\|constrain\|>)?\s*(?:json)?\s*<\|message\|>\s*",
            "",
        ),
        (
            rf"to=functions\.{_NAME}\s*<\|channel\|>\s*\w+\s*(?:<\|constrain\|>)?\s*"
            r"(?:json)?\s*<\|message\|>\s*",
            "",
        ),
    )
)
_WITH_TAGS = tuple(
    (re.compile(begin), re.compile(parameter, re.DOTALL), re.compile(end))
    for begin, parameter, end in (
        # Qwen
        (
            r"<function=(?P<name>[^<>\n]{1,200})>",
            r"\s*<parameter=(?P<key>[^<>\n]{1,200})>(?P<value>.*?)</parameter>",
            r"\s*</function>",
        ),
        # MiniMax
        (
            r"<(?:\w{1,20}:)?invoke name=\"(?P<name>[^\"\n]{1,200})\">",
            r"\s*<(?:\w{1,20}:)?parameter name=\"(?P<key>[^\"\n]{1,200})\"[^<>]{0,100}>"
            r"(?P<value>.*?)</(?:\w{1,20}:)?parameter>",
            r"\s*</(?:\w{1,20}:)?invoke>",
        ),
        # GLM
        (
            rf"<tool_call>\s*{_NAME}(?=\s*(?:<arg_key>|</tool_call>|\Z))",
            r"\s*<arg_key>(?P<key>[^<>]{1,200})</arg_key>\s*"
            r"<arg_value>(?P<value>.*?)</arg_value>",
            r"\s*</tool_call>",
        ),
    )
)
_OPEN_TAG = re.compile(r"\s*<(?:\w{1,20}:)?(?:parameter|arg_key)\b")


class Foreign(Struct, frozen=True, kw_only=True):
    """Calls in a template format. `end`: where the text continues."""

    start: int
    end: int
    calls: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    notes: tuple[str, ...] = ()
    error: CallError | None = None


def begins(text: str, found: Sequence[Piece]) -> int | None:
    """Return where the first template call begins; None: there is none.

    Tokens in thoughts, JSON values and quoted code do not count.
    """
    if not any(sign in text for sign in _SIGNS):
        return None  # no call: spares most replies the compilation of the patterns
    for match in islice(_BEGINS.finditer(text), _MOST_SHOWN):
        start = match.start(match.lastgroup or "token")
        piece = found[bisect_right(found, start, key=lambda item: item.start) - 1]
        if piece.kind == "text" and not _is_shown(text, start):
            return start
    return None


def _is_shown(text: str, start: int) -> bool:
    """Return whether the place is in quoted code within a text."""
    if text[start - 1 : start] == "`":
        return True
    before = text[:start]
    return before.count("```") % 2 == 1 and not before.lstrip().startswith("```")


def read(text: str, found: Sequence[Piece], start: int) -> Foreign | None:
    """Read the calls from `start` on; None if the format is unknown."""
    objects = {piece.start: piece for piece in found}
    calls: list[tuple[str, Mapping[str, Json]]] = []
    notes: list[str] = []
    at = end = start
    while at < len(text):
        one = _one(text, at, objects)
        if isinstance(one, Foreign):
            if one.error is not None:
                return Foreign(start=start, end=one.end, error=one.error)
            calls += one.calls
            notes += one.notes
            at = end = one.end
            continue
        skipped = _frame_end(text, at)
        if skipped == at:
            break
        at = skipped
    if not calls:
        return None
    return Foreign(start=start, end=end, calls=tuple(calls), notes=tuple(notes))


def unread(text: str, start: int) -> CallError:
    """Return the error for a call in an unreadable format."""
    if not between_calls(text[start:]):
        begun = quote(text[start : start + 30])
        return malformed_reply(
            f"a tool call begins with {begun}, in a form that is not read here."
        )
    return truncated_reply("The text ends where a tool call begins.")


def without_frames(text: str) -> str:
    """Return the text without surrounding frame and end-of-turn tokens."""
    if "<" not in text and "TOOL_CALLS]" not in text:
        bare = text.strip()
        return "" if between_calls(bare) else bare
    start, end = 0, len(text)
    if (frame := _FRAME_BEFORE.match(text)) is not None:
        start = frame.end()
    while start < end:
        if text[end - 1].isspace():
            end -= 1
            continue
        last = max(text.rfind("<", start, end), text.rfind("[", start, end))
        if last < start or not _ALL_FRAMES.fullmatch(text, last, end):
            break
        end = last
    bare = text[start:end]
    return "" if between_calls(bare) else bare


def between_calls(text: str) -> bool:
    """Return whether a text is only a separator between calls."""
    bare = text.strip(" \t\r\n,;")
    if not bare or bare[0] not in "<[":
        return not bare
    return _SKIPPED.fullmatch(text) is not None


def _frame_end(text: str, at: int) -> int:
    """Return the end of the next frame, which may begin a call."""
    frame = _FRAMES.match(text, at)
    if frame is not None:
        return frame.end()
    while at < len(text) and (text[at].isspace() or text[at] in ",;"):
        at += 1
    return at


def _one(text: str, at: int, objects: Mapping[int, Piece]) -> Foreign | None:
    for begin, end in _WITH_JSON:
        if match := begin.match(text, at):
            return _with_json(text, match, end, objects)
    for begin, parameter, end in _WITH_TAGS:
        if match := begin.match(text, at):
            return _with_tags(text, match, parameter, end)
    return None


def _with_json(
    text: str, begin: re.Match[str], end: re.Pattern[str], objects: Mapping[int, Piece]
) -> Foreign:
    at, name = begin.end(), begin["name"].strip()
    piece = objects.get(at)
    if at == len(text):
        return _wrong(at, truncated_reply("The text ends where arguments begin."))
    if piece is not None and piece.fault is not None:
        return _wrong(piece.end, call_error(piece.fault))
    value: Json = piece.value.value if piece is not None and piece.value else None
    if piece is None or not isinstance(value, dict):
        detail = f"expected the arguments of {name}: a JSON object."
        return _wrong(at, malformed_reply(detail))
    if piece.value is not None and piece.value.completed:
        return _wrong(piece.end, truncated_reply("The arguments are not closed."))
    close = end.match(text, piece.end)
    if close is None:
        return _not_closed(text, piece.end, name)
    return Foreign(
        start=begin.start(),
        end=close.end(),
        calls=((name, cast("dict[str, Json]", value)),),
        notes=piece.value.notes if piece.value else (),
    )


def _not_closed(text: str, at: int, name: str) -> Foreign:
    rest = text[at : at + 30].strip()
    if not text[at:].strip() or _OPEN_TAG.match(text, at):
        return _wrong(len(text), truncated_reply("The call is not closed."))
    detail = f"expected more parameters or the end of the call of {name}, got "
    return _wrong(at, malformed_reply(f"{detail}{quote(rest)}."))


def _with_tags(
    text: str,
    begin: re.Match[str],
    parameter: re.Pattern[str],
    end: re.Pattern[str],
) -> Foreign:
    arguments: dict[str, Json] = {}
    at = begin.end()
    while (match := parameter.match(text, at)) is not None:
        key = match["key"].strip()
        if key in arguments:
            return _wrong(match.end(), duplicate_key(key, begin["name"].strip()))
        # the line breaks beside the tags belong to the format; all else to the value
        value = match["value"]
        value = value.removeprefix("\n")
        arguments[key] = value.removesuffix("\n")
        at = match.end()
    close = end.match(text, at)
    if close is not None:
        name = begin["name"].strip()
        return Foreign(start=begin.start(), end=close.end(), calls=((name, arguments),))
    return _not_closed(text, at, begin["name"].strip())


def _wrong(end: int, error: CallError) -> Foreign:
    return Foreign(start=end, end=end, error=error)
