r"""Find and read the JSON values in a model's text.

`loads` is strict: the whole text is one JSON value. `pieces` is lenient: JSON among
prose, fences and thoughts, written as models write it. Neither changes flawless JSON,
and nothing is completed: an unfinished value is not a value. A broken value is reported
and never searched for smaller ones, and nothing here raises an exception on a model's
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.parsing.flawless_json import LONGEST, is_shallow
from neuraxis.parsing.json_errors import Broken, Fault, broken, end_of
from neuraxis.parsing.json_reader import Reader
from neuraxis.parsing.strict_json import raw_decode
from neuraxis.specs import Json

MOST_WASTED = 20_000
"""Characters examined in vain, beside 4 times the text, before scanning stops.

Without the limit a hostile text would cost the square of its length.
"""

MOST_CALLS = 1_000
"""Maximum parts of a text that are calls; a plan has no more (rule D6)."""

LONGEST_FENCE = 100
"""Maximum characters of a fence with its word; bounds the backtracking."""

_LEADING_SPACE = re.compile(r"[ \t\n\r]*")

# what can begin an object or list; prose such as `{name}` or `[see below]` cannot
_BEGINS = re.compile(
    r"\{\s*(?:[\"'“‘}]|[A-Za-z_$][\w$-]*\s*:|//|/\*|\#)"
    r"|\[\s*(?:[{\[\]\"'“‘\d-]|//|/\*|\#|(?:true|false|null|True|False|None)\b)"
)
_THOUGHT = r"(?:\w{1,20}:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)"
# a thought's beginning and its end; of the last forms the chat template writes one half
_THOUGHTS = (
    (rf"<{_THOUGHT}>", rf"</{_THOUGHT}>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|open\|>think<\|sep\|>", r"<\|close\|>think<\|sep\|>"),
    (r"<\|channel\|>analysis<\|message\|>", r"<\|(?:end|return)\|>"),
    (r"to=self<\|message\|>", r"<\|(?:eom|end)\|>"),
)
_CLOSED = "|".join([end for _, end in _THOUGHTS[:4]] + [r"\[BEGIN FINAL RESPONSE\]"])
_OPENED = "|".join(begin for begin, _ in _THOUGHTS)
_TOKEN = rf"(?P<think>{_OPENED})|(?P<thought>{_CLOSED})|[{{\[]"
_PLAIN_TOKEN = re.compile(_TOKEN, re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]{}]")
# A string that is not closed is matched too: looking for its end at each of the
# quotes behind it would take time that grows with the square of the text.
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+(?P<closed>"?)|[\[\]{}]')
_CALL_TAG = r"[\w-]{0,20}(?:tool|function)_?calls?"
_FENCE_BEFORE = re.compile(
    rf"(?:(?<!`)```++[\w-]*+|~~~[\w-]*+|<{_CALL_TAG}>)\s*+\Z", re.IGNORECASE
)
_FENCE_AFTER = re.compile(rf"\s*(?:(?:```+|~~~)(?!\w)|</{_CALL_TAG}>)", re.IGNORECASE)
_GOES_ON = re.compile(r"\s*+(?:,\s*+)?\"(?:[^\"\\\n]|\\.){0,300}\"\s*[:\"]")
_MEMBER_BEFORE = re.compile(r"[\w\"'”’]\s*[\"'”’]\s*:\s*\Z|\{\s*\w+\s*:\s*\Z")
_STRAY_CLOSERS = re.compile(r"[\s\]}]*[\]}]")


class Value(Struct, frozen=True, kw_only=True):
    """JSON value and where it ends."""

    value: Json
    end: int
    notes: tuple[str, ...] = ()


Written = tuple[str, dict[str, Json]]
"""Name of a tool and its arguments, as a model wrote them."""


class Piece(Struct, frozen=True, kw_only=True):
    """Part of a model's text, in order and without gaps.

    `marker` is the name of the group of `markers` that matched; `broken` looks like
    JSON but is not, or is `meant` as a call and cannot be read.
    """

    kind: Literal["text", "thought", "value", "broken", "marker", "calls"]
    start: int
    end: int
    value: Value | None = None
    fault: Fault | None = None
    marker: str = ""
    calls: tuple[Written, ...] = ()
    notes: tuple[str, ...] = ()
    meant: bool = False


ReadValue = Callable[[int], "Value | Fault"]
Take = Callable[[re.Match[str], ReadValue], "Piece | None"]
"""Reads what begins at a marker; None: it is text."""


def loads(text: str) -> Value | Fault:
    """Read one strict JSON value, without duplicate keys or NaN."""
    start = end_of(_LEADING_SPACE, text, 0)
    read = read_at(text, start, lenient=False)
    if isinstance(read, Fault):
        return read
    trailing = end_of(_LEADING_SPACE, text, read.end)
    if trailing < len(text):
        return broken(
            text, trailing, "expected nothing more after the JSON value"
        ).fault
    return read


def read_at(text: str, start: int, *, lenient: bool = True) -> Value | Fault:
    """Read the JSON value at `start`, leniently or as JSON says."""
    return value_reader(text, lenient=lenient)(start)


def value_reader(text: str, *, lenient: bool = True) -> ReadValue:
    """Return a reader of the values at places of one text."""
    unfit, shallow = _unfit(text), is_shallow(text)
    return lambda start: unfit or _read(text, start, shallow, lenient)


def _read(text: str, start: int, shallow: bool, lenient: bool) -> Value | Fault:
    if shallow:
        try:
            value, end = raw_decode(text, start)
        except (ValueError, RecursionError):
            pass
        else:
            return Value(value=value, end=end)
    reader = Reader(text, lenient=lenient, quick=raw_decode if shallow else None)
    try:
        value, end = reader.read(start)
    except Broken as error:
        reach = max(error.fault.reach, reader.reach)
        return replace(error.fault, reach=reach) if reach else error.fault
    return Value(value=value, end=end, notes=tuple(reader.notes))


def _unfit(text: str) -> Fault | None:
    if len(text) > LONGEST:
        message = f"the text is longer than {LONGEST} characters"
        return Fault(code="malformed", message=message, position=LONGEST)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return broken(
                text, error.start, "half of a character (a lone surrogate) is here"
            ).fault
    return None


def markers_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the `markers` of `pieces`; each alternative is a named group."""
    # no marker begins so: a text full of `<` is passed over quickly
    return re.compile(
        rf"(?!<(?!<function>>)[|｜]?[<\s])(?:{pattern}|(?=[<\[{{t])(?:{_TOKEN}))",
        re.IGNORECASE,
    )


def _member_alone(text: str, cursor: int, start: int) -> Piece:
    """Whether a member at `start` lost its object's bracket."""
    fault = broken(text, start, "the object around this is not opened").fault
    end = _rough_end(text, start)
    return Piece(kind="broken", start=cursor, end=end, fault=fault)


def pieces(
    text: str,
    *,
    markers: re.Pattern[str] | None = None,
    take: Take | None = None,
    is_call: Callable[[Piece], bool] | None = None,
) -> list[Piece]:
    """Split a model's text into values, calls, thoughts, markers and text between.

    Args:
        text: what the model wrote.
        markers: words of the dialect's frame, from `markers_pattern`.
        take: reads what begins at a marker of the group `call`.
        is_call: counts calls; after `MOST_CALLS` nothing more is read.
    """
    if (unfit := _unfit(text)) is not None:
        return [Piece(kind="broken", start=0, end=len(text), fault=unfit, meant=True)]
    shallow = is_shallow(text)
    tokens = markers or _PLAIN_TOKEN
    pieces_: list[Piece] = []
    cursor = position = wasted = calls = 0
    is_thought = False

    def read(start: int) -> Value | Fault:
        return _read(text, start, shallow, True)

    while (match := tokens.search(text, position)) is not None:
        start, end = match.span()
        name = match.lastgroup or ""
        if name == "call" and take is not None:
            piece = take(match, read)
        elif name == "thought":
            # the chat template opened the thought, so all before this is one
            piece = None if is_thought else Piece(kind="thought", start=0, end=end)
            if piece is not None:
                pieces_, cursor, start = [], 0, 0
            is_thought = True
        elif name == "think":
            piece = _thought(text, start, end)
            is_thought = is_thought or piece.end < len(text)
        elif name:
            piece = Piece(kind="marker", start=start, end=end, marker=name)
        elif not _BEGINS.match(text, start):
            piece = None
        else:
            piece, spent = _bracket(text, cursor, start, tokens, read, wasted)
            wasted += spent
        if piece is None:
            position = max(end, start + 1)
            continue
        if cursor < piece.start:
            pieces_.append(Piece(kind="text", start=cursor, end=piece.start))
        pieces_.append(piece)
        cursor = position = piece.end
        calls += is_call is not None and is_call(piece)
        if calls > MOST_CALLS:
            return [*pieces_, *_unread(text, cursor)]
    if cursor < len(text):
        pieces_.append(Piece(kind="text", start=cursor, end=len(text)))
    return pieces_


def _unread(text: str, start: int) -> Iterator[Piece]:
    """Yield what follows more calls than a reply may have."""
    if start == len(text):
        return
    message = f"more than {MOST_CALLS} calls are before this; write fewer calls"
    fault = broken(text, start, message).fault
    yield Piece(kind="broken", start=start, end=len(text), fault=fault, meant=True)


def _bracket(
    text: str,
    cursor: int,
    start: int,
    tokens: re.Pattern[str],
    read: ReadValue,
    wasted: int,
) -> tuple[Piece, int]:
    """Return the piece at a bracket, and the characters wasted."""
    if wasted > MOST_WASTED + 4 * len(text):
        message = "too much before this looks like JSON and is none"
        fault = Fault(code="malformed", message=message, position=start)
        end = _next_frame(text, start + 1, tokens)
        return Piece(kind="broken", start=cursor, end=end, fault=fault), 0
    if _MEMBER_BEFORE.search(text, max(cursor, start - 300), start):
        piece = _member_alone(text, cursor, start)
        return piece, piece.end // 64
    piece = _value_piece(text, start, read)
    spent = 0
    if piece.fault is not None:
        # characters examined in vain, and the lines that were counted for them
        spent = max(0, piece.fault.reach - piece.end) + piece.end // 64 + 16
    elif piece.value is not None and piece.value.notes:
        spent = piece.end // 64 + 16
    return piece, spent


def _next_frame(text: str, position: int, tokens: re.Pattern[str]) -> int:
    """Return the place of the next marker or thought, or the end."""
    while (match := tokens.search(text, position)) is not None:
        if match.lastgroup:  # what may be as empty as the place before a call
            return match.start()
        position = match.end()
    return len(text)


def _value_piece(text: str, start: int, read_value: ReadValue) -> Piece:
    read = read_value(start)
    if isinstance(read, Value):
        if not _GOES_ON.match(text, read.end):
            return Piece(kind="value", start=start, end=read.end, value=read)
        # `{"a": 1}, "b": 2}`: half of the members must not look like all of them
        message = "a member follows a closing bracket"
        read = broken(text, read.end, message).fault
    end = max(_rough_end(text, start), min(read.position, len(text)), start + 1)
    return Piece(kind="broken", start=start, end=end, fault=read)


def _rough_end(text: str, start: int) -> int:
    """Return where the brackets opened at `start` are balanced, or the end."""
    depth = 0
    for match in _brackets(text, start):
        if match[0] in "{[":
            depth += 1
        else:
            depth -= 1
            if depth <= 0:
                return match.end()
    return len(text)


def _brackets(text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield the brackets outside strings and inside unclosed ones."""
    for match in _BRACKET_OR_STRING.finditer(text, start):
        if match["closed"] is None:
            yield match
        elif not match["closed"]:
            yield from _BRACKET.finditer(text, match.start(), match.end())


_ENDS = tuple((re.compile(b, re.I), re.compile(e, re.I)) for b, e in _THOUGHTS)
_BEGUN = re.compile(rf"\A(?:{_OPENED})", re.I)
_ENDED = re.compile(rf"(?:{_CLOSED}|<\|(?:end|eom|return)\|>)\Z", re.I)


def _thought(text: str, start: int, inside: int) -> Piece:
    closer = next(end for begin, end in _ENDS if begin.match(text, start))
    end = closer.search(text, inside)
    return Piece(kind="thought", start=start, end=end.end() if end else len(text))


def is_closed(thought: str) -> bool:
    """Return whether a thought's piece ends with the tag that closes it."""
    return _ENDED.search(thought) is not None


def thought_text(text: str) -> str:
    """Return the inside of a thought's piece."""
    return _ENDED.sub("", _BEGUN.sub("", text)).strip()


def strip_fence_before(text: str) -> str:
    """Return the text without a fence or tag at its end."""
    end = len(text)
    while True:
        stop = end
        while stop and text[stop - 1].isspace():
            stop -= 1
        match = _FENCE_BEFORE.search(text, max(0, stop - LONGEST_FENCE), stop)
        if match is None:
            return text[:end]
        end = match.start()


def strip_fence_after(text: str) -> str:
    """Return the text without stray brackets and fences at its start."""
    at = end_of(_STRAY_CLOSERS, text, 0)
    while (match := _FENCE_AFTER.match(text, at)) is not None:
        at = match.end()
    return text[at:]
