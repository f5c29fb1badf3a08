r"""Split a reply into words, thoughts, values and calls of every family.

A family is one form in which models write calls. Tokens that only frame calls are no
words; a form that begins and cannot be read is reported as an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from neuraxis.dialects.families.family import BAR, SUFFIX, Family, Reading, Taken
from neuraxis.dialects.families.gemma import GEMMA
from neuraxis.dialects.families.harmony import HARMONY
from neuraxis.dialects.families.named_json import NAMED_JSON
from neuraxis.dialects.families.python_calls import BEFORE, PYTHON
from neuraxis.dialects.families.tagged import TAGGED
from neuraxis.parsing.json_errors import Broken, broken, cut_off, end_of
from neuraxis.parsing.json_scan import (
    MOST_WASTED,
    Piece,
    ReadValue,
    Take,
    markers_pattern,
    pieces,
    strip_fence_before,
)

FAMILIES: tuple[Family, ...] = (*NAMED_JSON, *TAGGED, *GEMMA, HARMONY, PYTHON)

FRAME = (
    rf"</?(?:[\w:.-]{{0,20}}(?:tool|function)_?calls?{SUFFIX}|tool_sep)>"
    rf"|function<{BAR}tool[▁_]sep{BAR}>"
    rf"|</?{BAR}DSML{BAR}\w{{1,20}}>|<{BAR}(?:open|close){BAR}>\w{{1,20}}<{BAR}sep{BAR}>"
    r"|<\|message_sep\|>\s*function call\s*(?:<\|role_sep\|>)?"
    rf"|<{BAR}(?!asset:|\{{)[^<>|｜\s]{{1,40}}{BAR}>"  # no reference to an object
    r"|<(?:start|end)_function_call>|<end_of_turn>|\[/?TOOL_CALLS\]|\]?<\]minimax\[>\["
    r"|\[e~\["
)
"""Tokens that frame calls, also those of a turn's end."""
_FRAMES_BEFORE = re.compile(rf"(?:\s|{FRAME})*+", re.IGNORECASE)
_FRAMES_ONLY = re.compile(
    rf"(?:\s|[,;`]|(?:[-*•]|\d{{1,2}}[.)])(?=\s|\Z)|{FRAME})*+", re.IGNORECASE
)
_LAST_FRAME = re.compile(rf"(?:{FRAME}|</s>)\Z", re.IGNORECASE)
_FRAMES_BEHIND = re.compile(rf"(?:{FRAME})*+", re.IGNORECASE)
_THOUGHT_ENDS = ("</think>", "</thinking>", "<|END_THINKING|>", "RESPONSE]")

_COMMENTS = re.compile(r"(?:[\s,;]|\#[^\n]*+)*+")
_HEADER_END = re.compile(r"(?=<\|channel\|>analysis<\|message)|<\|message\|>")

_LONGEST_LINE = 400
QUOTED_LINE = re.compile(r"\s*>(?!>)")
"""Beginning of a quoted line, as in an email."""
_SENTENCE = re.compile(r" (?:[^\W\d_]++[,;]? ){2}[^{\n]*+(?:\n|\Z)")
_WORD = re.compile(r"[^\W\d][\w.-]*")
_DEFINES = re.compile(
    r"^[ \t]*+(?:(?:(?:async[ \t]++)?def|class)[ \t]++\w++[ \t]*+[(:]"
    r"|\w++[ \t]*+\(\)[ \t]*+\{)",
    re.MULTILINE,
)

_NAME = r"[^\W\d][\w.-]{0,200}"
_PYTHON = r"<\|(?:tool_call_start|python_start|python_tag)\|>"
_SEP = rf"function<{BAR}tool[▁_]sep{BAR}>\s*"
_OPENS = (
    rf"<[\w:.-]{{0,20}}(?:tool|function)_?calls?{SUFFIX}>|\[TOOL_CALLS\]|<start_function_call>"
    rf"|<{BAR}(?:START_ACTION|action_start|function_call|python_(?:tag|start)|tools_prefix"
    rf"|tool_?calls?|tool[_▁]calls?[_▁](?:section_)?(?:begin|start)){BAR}>"
)
_OPENED = re.compile(rf"(?:{_OPENS})\s*\Z", re.IGNORECASE)
_OPENS_AT = re.compile(_OPENS, re.IGNORECASE)
_LINE = r"(?:(?<=\n)|\A|(?<=think>|THINK\])|(?<=```))"
_ITEM = r"(?:[-*•]|\d{1,2}[.)])"
# where a form may begin: a token that nothing else has, a tag, or a name on its line
_TAG = (
    rf"\[TOOL_CALLS\](?=\s*\w)|<{BAR}tool[▁_]call[▁_]begin{BAR}>(?=\s*(?!{_SEP}<)\w)"
    r"|<function=|<(?:\w{1,20}:|[|｜]DSML[|｜])?(?:invoke|function(?:_call)?) name="
    r"|<tool_call>(?=\s*+<name>)|<invoke>\s*<tool_name>|\]<\]minimax\[>\[\s*<invoke|<\|open\|>call|<\|tool_call>|<start_function_call>"
    rf"|<[\w:.-]{{0,20}}tool_?call{SUFFIX}>(?=\w|[^\S\n]*+\n\s*+\w)"
    r"|<\|(?:start|channel)\|>(?!analysis<\|message)|(?<![\w.])to=functions\.|✿FUNCTION✿"
    r"|<\|(?:(?:from\|>\s*\w+\s*<\|)?recipient|reserved_special_token_249)\|>"
    r"(?!\s*all\b)"
    rf"|(?:{_OPENS})(?=\s*\Z)|(?:{_PYTHON})(?=\s*(?:\w|\[\s*[^\W\d]))"
)
_FRAMED = (
    rf"(?:{_PYTHON}|<<function>>|<(?:function|tool)_calls?>"
    rf"|```tool_code[ \t]*\n)\s*+(?=(?:\[\s*+)?{_NAME}\()"
)
_WORDS = (
    rf"{_LINE}(?:(?=\**+Action:\**+[ \t]*+`?\w)|(?=<(?P<named>{_NAME})>\s*+<{_NAME}>)"
    rf"|[ \t]*+(?:{_ITEM}[ \t]++)?+`?+(?=[>\[]|[^\W\d])"
    rf"(?=(?:>>>|\[\s*+[\"'`]?|{BEFORE})?{_NAME}"
    r"[ \t]*+(?:\(|(?::[ \t]*+)?(?:\r?\n\s*+)?(?:```(?:json)?\s*+)?\{)))"
    rf"|>>>(?={_NAME}\r?\n\s*+\{{)"
    rf"|(?:(?<=[:*>|])[ \t]*+|(?<=[.!?][ \t]))(?=\[\s*+{_NAME}\()"
)
_TURN = (
    rf"<{BAR}(?:eo[tm]_id|im_end|call|endoftext|start_header_id){BAR}>|</s>|<bot_end>"
    rf"|<\|im_start\|>(?:user|system|tool|assistant)\b|Observation:(?<![^\n].{{12}})"
    r"|###[ ](?:Instruction|Response):"
    r"|<!--\s*RESULTS_(?:START|END)\s*-->"
)
_FRAMES = (
    r"functools(?=\[)|Action:(?<![^\n].{7})(?=\s*(?:```(?:json)?\s*)?[{\[])"
    r"|>>>all\r?\n|\Aall\r?\n"
    r"|<\|(?:from\|>\s*\w+\s*<\|)?recipient\|>\s*all\s*<\|content\|>"
)
# first characters of the forms: most places in a text are passed over quickly
_AT_TOKEN = r"(?=[<\[\]>✿#tfao]|```t)"
_AT_LINE = (
    r"(?=[ \t*<>\[•\w-]|`(?!`))(?:(?<=[\n`\]:*|>])|\A|(?=>)|(?<=[.!?][ \t])(?=\[))"
)
_CALL = (
    rf"(?P<call>{_AT_TOKEN}(?:(?P<framed>{_FRAMED})|(?P<tag>{_TAG}))"
    rf"|{_AT_LINE}{_WORDS})"
    rf"|{_AT_TOKEN}(?:(?P<turn>{_TURN})|(?P<frame>{_FRAMES}))"
)


def markers(extra: str = "") -> re.Pattern[str]:
    """Compile a pattern of beginnings of calls, and a dialect's markers."""
    return markers_pattern(f"{extra}|{_CALL}" if extra else _CALL)


_MARKERS = markers()


def cut(
    text: str,
    is_tool: Callable[[str], bool] = lambda name: False,
    pattern: re.Pattern[str] = _MARKERS,
    is_call: Callable[[Piece], bool] | None = None,
) -> list[Piece]:
    """Split a reply into pieces, including calls of every family.

    Broken JSON is text if it is quoted, or part of a program that is shown. What
    follows more calls than a reply may have is broken, too, and not read.
    """
    take = _taker(text, is_tool, pattern)
    parts = pieces(text, markers=pattern, take=take, is_call=is_call)
    fences = fence = 0
    for index, piece in enumerate(parts):
        if piece.kind == "text":
            fences += text.count("```", piece.start, piece.end)
            fence = max(fence, text.rfind("```", piece.start, piece.end))
        elif piece.kind == "broken" and not piece.meant:
            is_shown = (
                fences % 2 == 1
                and _DEFINES.search(text, fence, piece.start)
                and "```" not in text[piece.start : piece.end]
            )
            if is_shown or _is_cited(text, piece.start, piece.end):
                parts[index] = Piece(kind="text", start=piece.start, end=piece.end)
    return parts


_TOO_MUCH = "too much before this looks like calls and is none"
_NOT_ONLY_CALLS = "expected nothing but calls with values in a fence"


class _Fences(Struct):
    """Code fences of the part of a reply whose calls were read."""

    text: str
    count: int = 0
    counted: int = 0
    opened: int = 0
    since: int = 0
    """End of the last call, or beginning of the fence around the next one."""
    defines: bool = False
    """Whether that fence defines a function or class."""

    def around(self, start: int) -> bool:
        """Return whether a call is inside a fence."""
        text = self.text
        self.count += text.count("```", self.counted, start)
        fence = text.rfind("```", max(self.since, self.counted), start)
        self.counted = start
        if self.count % 2 == 1 and fence >= 0:
            self.opened = fence
            self.since = text.find("\n", fence, start) + 1 or fence + 3
            is_tool_code = text.startswith("tool_code", fence + 3)
            defined = None if is_tool_code else _DEFINES.search(text, self.since, start)
            self.defines = defined is not None
        return self.count % 2 == 1

    def is_first(self) -> bool:
        """Return whether the fence begins the reply and defines no function."""
        return not self.defines and _is_alone(self.text, self.opened)

    def is_program(self, start: int, end: int, pattern: re.Pattern[str]) -> bool:
        """Return whether the fence around a call holds more than calls."""
        fenced, before, self.since = self.around(start), self.since, end
        if not fenced:
            return False
        text, code_start = self.text, end_of(_COMMENTS, self.text, end)
        if code_start == len(text):
            raise cut_off(text, "inside a fence")
        ends = text.startswith("```", code_start) or pattern.match(text, code_start)
        only_calls = ends and _COMMENTS.fullmatch(text, before, start)
        return self.defines or not only_calls


def _taker(text: str, is_tool: Callable[[str], bool], pattern: re.Pattern[str]) -> Take:
    wasted = 0
    fences = _Fences(text)

    def take(match: re.Match[str], value: ReadValue) -> Piece | None:
        nonlocal wasted
        most, name = MOST_WASTED + 4 * len(text), match["named"]
        if name is not None and wasted <= most and not is_tool(name):
            return None  # a tag of HTML
        start, tag = match.start(), match["tag"] is not None
        framed = match["framed"] is not None
        if (tag and text[start - 1 : start] == "`") or _is_cited(text, start, start):
            return None
        at = start if tag else match.end()
        reading = Reading(
            value,
            is_tool,
            framed,
            is_alone=lambda: _is_alone(text, start),
            is_fenced=lambda: fences.around(start) and fences.is_first(),
        )
        try:
            if wasted > most:
                raise broken(text, start, _TOO_MUCH)
            taken = _first(text, at, reading)
            wasted += _wasted(reading, start)
            if taken is None:
                named = not (tag or framed) or _is_named(text, match, is_tool)
                return None if named else _unread(text, match, start)
            marked = text[at - 1 : at] == "`" and text[at - 3 : at] != "```"
            if marked and text[taken.end - 1] != "`":
                return None
            if text[at] not in "<{" and fences.is_program(start, taken.end, pattern):
                if fences.defines:
                    return None
                raise broken(text, start, _NOT_ONLY_CALLS)
        except Broken as error:
            if tag and _is_quotation(text, start, at):
                return None
            # nothing after it is read: it may be the rest of what is broken
            return Piece(
                kind="broken", start=start, end=len(text), fault=error.fault, meant=True
            )
        return Piece(
            kind="calls",
            start=start,
            end=taken.end,
            calls=taken.calls,
            notes=taken.notes,
        )

    return take


def _is_cited(text: str, start: int, end: int) -> bool:
    """Return whether a part is a quotation, or code inside a sentence."""
    begin = text.rfind("\n", max(0, start - _LONGEST_LINE), start) + 1
    if not begin and start > _LONGEST_LINE:
        return False
    line, inside = text[begin:start], text[start:end]
    if QUOTED_LINE.match(line):
        return all(QUOTED_LINE.match(next_) for next_ in inside.split("\n")[1:])
    last_char = line.rpartition("`")[0].rstrip()[-1:]
    is_code = line.count("`") % 2 == 1 and "```" not in line and "\n" not in inside
    line_end = text[end : end + _LONGEST_LINE].partition("\n")[0]
    return is_code and (last_char.isalnum() or last_char == ",") and "`" in line_end


def _is_named(text: str, match: re.Match[str], is_tool: Callable[[str], bool]) -> bool:
    """Return whether a token is used as a word of a sentence."""
    before, end = text[max(0, match.start() - 2) : match.start()], match.end()
    sentence = _SENTENCE.match(text, end, end + _LONGEST_LINE)
    if sentence is None or not (before[:1].isalnum() and before[1:] == " "):
        return False
    return not any(map(is_tool, _WORD.findall(sentence[0])))


def _closes(text: str, start: int) -> bool:
    """Return whether an opening token is used as the closing one."""
    if _OPENED.match(text, start) is None:
        return False
    token, before = text[start:].strip(), text[:start].rstrip()
    return before.endswith(("}", "]")) and token in before


def _is_quotation(text: str, start: int, at: int) -> bool:
    """Return whether a token is quoted, with escaped quotes after it."""
    line = text[at : at + _LONGEST_LINE].partition("\n")[0]
    return text[start - 1 : start] == '"' and '{\\"' in line and '}" ' in line


def _first(text: str, at: int, reading: Reading) -> Taken | None:
    for family in FAMILIES:
        begin = family.begin.match(text, at)
        if begin is not None and (taken := family.read(text, begin, reading)):
            return taken
    return None


def _wasted(reading: Reading, start: int) -> int:
    """Return how many characters were read in vain, to bound the work."""
    return reading.reach - start + start // 256 + 16 if reading.reach else 0


def _is_alone(text: str, start: int) -> bool:
    """Return whether only thoughts, fences and frames precede it."""
    if start > 4000:
        return False
    before = text[:start]
    for end in _THOUGHT_ENDS:
        before = before.rpartition(end)[2]
    return not without_frames(strip_fence_before(before))


def _unread(text: str, match: re.Match[str], start: int) -> Piece | None:
    """Return the frame at `start`; raise if it begins a call."""
    frame = _FRAMES_BEFORE.match(text, start)
    end = frame.end() if frame else start
    if _closes(text, start):
        return Piece(kind="marker", start=start, end=len(text), marker="frame")
    if match[0].startswith("<|") and match[0][2:] in ("start|>", "channel|>"):
        # the header of a message that is no call; a thought begins with its own header
        header = _HEADER_END.search(text, start, start + 400)
        end = header.end() if header else end
        return Piece(kind="marker", start=start, end=end, marker="frame")
    if end == len(text) or ">" not in text[start:]:
        raise cut_off(text, "inside the beginning of a tool call")
    raise broken(text, start, "a tool call begins here, in a form that is not read")


def is_framed(text: str, start: int) -> bool:
    """Return whether a token that begins calls precedes `start`."""
    return _OPENED.search(text, max(0, start - 80), start) is not None


def frame_that_opens(text: str) -> int | None:
    """Return the position of the first token that begins calls."""
    match = _OPENS_AT.search(text)
    return match.start() if match else None


def before_frames(text: str) -> str:
    """Return the text without the tokens that end its last line."""
    while True:
        bare = text.rstrip(" \t")
        last = max(bare.rfind("<"), bare.rfind("["))
        match = _LAST_FRAME.search(bare, max(0, last - 60)) if last >= 0 else None
        if match is None:
            return text
        text = bare[: match.start()]


def behind_frames(text: str) -> str:
    """Return the text without the tokens at its start."""
    bare = text.lstrip(" \t")
    end = end_of(_FRAMES_BEHIND, bare, 0)
    return bare[end:] if end else text


def without_frames(text: str) -> str:
    """Return the text without surrounding frame and end-of-turn tokens."""
    start, end = 0, len(text)
    if (frame := _FRAMES_BEFORE.match(text)) is not None:
        start = frame.end()
    while start < end:
        if text[end - 1].isspace():
            end -= 1
            continue
        last = max(text.rfind("<", start, end), text.rfind("[", start, end))
        begin = max(start, last - 60)
        match = _LAST_FRAME.search(text, begin, end) if last >= 0 else None
        if match is None:
            break
        end = match.start()
    bare = text[start:end]
    return "" if between_calls(bare) else bare


def between_calls(text: str) -> bool:
    """Return whether a text is only a separator between calls."""
    return _FRAMES_ONLY.fullmatch(text) is not None
