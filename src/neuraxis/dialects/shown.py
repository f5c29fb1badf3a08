"""Detect calls that a reply only shows: examples, quotations, drafts, refusals.

Every dialect checks this before it accepts a call (rule 4 of docs/native.md).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Literal, cast

from msgspec import Struct

from neuraxis.call_errors import malformed_reply
from neuraxis.dialects.call_context import ACT, is_reported, is_step, leads_elsewhere
from neuraxis.dialects.families.cut import (
    QUOTED_LINE,
    before_frames,
    behind_frames,
    between_calls,
    frame_that_opens,
    is_framed,
    without_frames,
)
from neuraxis.dialects.lenient_reading import NEXT_QUESTION, adjacent, own_turn
from neuraxis.formatting import quote
from neuraxis.messages import CallError
from neuraxis.parsing.json_errors import Fault, broken
from neuraxis.parsing.json_scan import Piece, strip_fence_after, strip_fence_before
from neuraxis.specs import Json

_IF_YOU = (
    r"\b(?:after|as soon as|if|once|until|when) you(?:['’](?:d|ve|re)| are| have)?"
    r" (?:\w+ )?(?:agree|approv|confirm|consent|happy|ok|okay|ready|say so|sure)"
)
_SHOWN = re.compile(
    r"(?i:(?<!\.)\b(?:examples?(?!\.\w)|e\.g|for instance|such as"
    r"|you (?:c|w|sh)ould|once you)\b"
    r"(?:[^.]|\.(?=\S)|(?<=e\.g)\.)*+$)"
    r"|(?i:(?:\b(?:not|never|without)|n['’]t)\s+(?:(?:allowed|going) to\s+|\w+\s+)?"
    rf"{ACT}\w*\b[^.]*$)"
    r"|(?i:\b(?:shall|should|may|can|do|would)\s+(?:i|we|you)\b[^.]*\?$)"
    rf"|(?i:{_IF_YOU}[^.]*$)"
    # "Yesterday I ran:", "what we ran a minute ago:", "The page says:"
    r"|(?i:\b(?:i|we)(?:['’]ve| have| had)?(?: \w+)? (?:called|executed|issued|made"
    r"|performed|ran|sent|submitted|used)(?: (?:it|that|the following|this)\b"
    r"[^.,;]{0,60}| (?:\w+ ){0,2}(?:ago|before|earlier))?:?$)"
    r"|(?i:^(?!.*\b(?:as|how|i|if|let|me|us|we|what|where|whether|which)\b).*"
    r"\b(?:contain(?:s|ed)?|reads|sa(?:id|ys?)|show(?:s|ed)|state[ds])"
    r"(?: the following(?: \w+)?| this)?:$)"
    r"|(?i:\bfound (?:the following|this)\b(?:[^.,;:]|\.(?=\S))*+:$)"
    r"|^(?:if|for|while|def|with|try|elif|else|except)\b.*:$"
)
"""Line before a call that is only shown or asked about."""
_MAY_I = re.compile(
    r"\b(?P<if>(?:if|whether) )?(?:(?:shall|should|may|can|could) (?:i|we)"
    r"|(?:i|we) (?:shall|should|may|can|could)"
    r"|(?:you(?:['’]d| would)? )?(?:want|like) (?:(?:me|us) )?to"
    r"|(?:ok|okay|ready|safe|all right|alright)(?: for me)? to)\b"
    r"(?P<what>[^.?!\n]*)(?P<end>[.?!]?)",
    re.IGNORECASE,
)
"""Request for permission, and the requested action."""
_AGREE = re.compile(
    # "Is that okay?", "Let me know whether this is right"
    r"\b(?:if|is|whether) (?:it|that|this)(?:['’]s| is| looks)?"
    r" (?:all ?right|correct|fine|good|ok|okay|right|what you)\b"
    r"|\bdo(?:es)? (?:it|that|these|they|this) (?:look|seem|sound|work)\b[^.?!\n]*\?"
    # "Please confirm", "Do you agree?", "Okay?"
    r"|\bplease (?:approve|confirm)(?=\W*\Z|[.,:;!?\n]"
    r"| (?:and|before|first|if|it|or|so|that|this|to|whether)\b)"
    r"|\bdo you (?:agree|approve|confirm)\b|(?:\A|[.!:]\s+)(?:agreed|confirm|ok|okay)\?"
    # "waiting for your approval", "once you agree", "say yes"
    r"|\byour (?:approval|confirmation|consent|go-ahead|okay|ok|permission)\b"
    rf"|{_IF_YOU}|\b(?:answer|reply|respond|say|type|write) .{{0,20}}"
    r"\b(?:go|ok|okay|word|yes)\b"
    # "This is only a draft", "I have not sent it yet"
    r"|\b(?:it|that|this) (?:is|was) (?:(?:just|only) )?an? (?:draft|example)\b"
    r"|\bnothing (?:is|has been|was) (?:done|made|run|sent)\b"
    r"|(?:\bnot|n['’]t)(?: \w+)? (?:called|done|executed|made|performed|run|sent"
    r"|submitted) (?:anything|it|that|them|this)\b",
    re.IGNORECASE,
)
"""Words after a call that ask for consent, or say that it is not made."""
_IT = (
    r"(?:it|so|this|that|them|these|those"
    r"|the (?:action|call|code|command|function|message|operation|request|tool)s?)\b"
)
_DO_IT = re.compile(
    rf"\W*(?:\w+ )?(?:{ACT}(?:e|te|y)?(?: \w+)? {_IT}"
    r"|go (?:ahead|on)\b|proceed\b|continue\b)"
    r"|\W*\Z",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\W*(?:\w+ )?(?P<verb>[^\W\d_]{3,20}) "
    r"(?:(?:it|this|that|them|these|those)\b|(?:this|that|the) (?P<noun>\w{3,20}))",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:also|else|another|other|different|more|further|additional|any\w*|too"
    r"|as well|next)\b",
    re.IGNORECASE,
)
_ASKS = ("?", "？", "؟", "か。")
_SENTENCE = re.compile(
    r"[^.!?？؟。<>\n]++(?:[.!?](?=\w)[^.!?？؟。<>\n]*+)*+[.!?？؟。]*+(?!>)"
)
_IN_QUOTES = re.compile(r'"[^"\n]*+"|“[^“”\n]*+”|`[^`\n]*+`')
_ARGUMENTS = frozenset(("arguments", "parameters", "params", "args", "input"))
_YAML_FENCE = re.compile(
    r"^[ \t]*+```[ \t]*+ya?ml[ \t]*+\n(?P<block>[^`]*+)```",
    re.MULTILINE | re.IGNORECASE,
)
_YAML_MESSAGE = re.compile(r"^[ \t]{0,8}(?:-[ \t]+)?receiver:[ \t]*$", re.MULTILINE)
_YAML_NAME = re.compile(
    r"^[ \t]{0,8}(?:-[ \t]+)?(?:(?:tool|function)(?:_name)?|name|action|command)"
    r":[ \t]*[\"']?([\w.-]{1,200})[\"']?[ \t]*$"
    r"|^(?:-[ \t]+)?([\w.-]{1,200}):[ \t]*\n[ \t]+[\w-]{1,200}:",
    re.MULTILINE,
)
_YAML_START = re.compile(
    r"\s*+(?:```[ \t]*+\n)?((?:---[ \t]*+\n)?(?:-[ \t]++)?[\w-]{1,200}:"
    r"[^\n]*+\n[^\n]*+)"
)
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "«": "»"}
_BRACKETS = "[{ \t\r\n"
_PART_OF_TOKEN = re.compile(r"<[|｜]?\w{0,40}+\Z")
_COMMENTS = re.compile(r"(?:[\s,;]|(?:\#|//)[^\n]*+)*+")
_GOES_ON = re.compile(
    r"[ \t]*+[,–—][ \t]+[^\W\d]|\s++(?!(?:and )?then\b|[a-z_]\w*+[(.])[a-z]"
)
_LINE_GOES_ON = re.compile(
    # after its own token a call is a block
    r"[^>](?:[ \t]++(?!(?:and )?then\b|[a-z_]\w*+[(.])[a-z]|[ \t]*+[,–—][ \t]+[^\W\d])"
)
_FENCE_WORD = re.compile(r"\A[\w-]*+\s*+")
_OWN_TOKEN = re.compile(r"<|\[TOOL_CALLS\]")
_CODE_ITEM = re.compile(r"[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+`(?!`)")


class Sent(Struct, frozen=True, kw_only=True):
    """Starts of the calls that a reply makes, or only shows."""

    pieces: list[Piece]
    """The pieces of the model's own turn."""
    made: frozenset[int]
    shown: frozenset[int]
    unclear: CallError | None = None


def sent_calls(
    text: str, pieces: list[Piece], is_call: Callable[[Piece], bool]
) -> Sent:
    """Separate the calls that a reply makes from those that it shows."""
    shown = _shown(text, pieces)
    pieces = own_turn(pieces, lambda piece: piece.start not in shown and is_call(piece))
    made = [piece for piece in pieces if piece.start not in shown and is_call(piece)]
    without_thoughts = _without_thoughts(text, pieces)
    if made and _asks_consent(without_thoughts, made, pieces[-1].end):
        shown.update(piece.start for piece in made)
        made = []
    unclear = _open_question(without_thoughts, made, pieces[-1].end) if made else None
    word_starts = [piece.start for piece in pieces if _is_words(text, piece)]
    for group in adjacent(text, made):
        first, last = group[0], group[-1]
        is_list = bool(word_starts) and _is_code_list(text, group)
        if is_list and word_starts[-1] > last.start:
            shown.update(piece.start for piece in group)
            continue
        is_list = is_list and word_starts[0] < first.start
        if is_list or _is_open(without_thoughts, pieces, group, made):
            unclear = unclear or malformed_reply(
                "the words around it leave open whether this call is made or only "
                f"shown: {quote(text[first.start : first.start + 60])}; to make it, "
                "write it without such words; to show it, begin its lines with >."
            )
    return Sent(
        pieces=pieces,
        made=frozenset(piece.start for piece in made if piece.start not in shown),
        shown=frozenset(shown),
        unclear=unclear,
    )


def _without_thoughts(text: str, pieces: Sequence[Piece]) -> str:
    """Return the text with each thought replaced by line ends."""
    parts, at = list[str](), 0
    for piece in pieces:
        if piece.kind == "thought":
            parts += text[at : piece.start], "\n" * (piece.end - piece.start)
            at = piece.end
    return "".join([*parts, text[at:]]) if at else text


def nameless_call(text: str, sent: Sent) -> Fault | None:
    """Return the fault of a call's token with no call after it.

    After a call it may be an answer that the model imagines, unless it has arguments.
    """
    called = False
    for piece in sent.pieces:
        if piece.start in sent.made:
            called = True
        elif (
            piece.value is not None
            and piece.value.value != []
            and piece.start not in sent.shown
            and is_framed(text, piece.start)
            and not (called and _ARGUMENTS.isdisjoint(_keys(piece.value.value)))
        ):
            return broken(text, piece.start, "expected a call with its name").fault
    frames = _PART_OF_TOKEN.sub("", text.rstrip(_BRACKETS))
    if not without_frames(frames) and (opened := frame_that_opens(text)) is not None:
        return broken(text, opened, "expected a call, got nothing").fault
    return None


def _keys(value: Json) -> Collection[str]:
    return cast("dict[str, Json]", value) if isinstance(value, dict) else ()


def yaml_call(
    text: str, pieces: Sequence[Piece], is_tool: Callable[[str], bool]
) -> int | None:
    """Return where a call or message in YAML begins."""
    for start, block in _yaml_blocks(text, pieces):
        names = (match[1] or match[2] for match in _YAML_NAME.finditer(block))
        if _YAML_MESSAGE.search(block) or any(map(is_tool, names)):
            return start
    return None


def _yaml_blocks(text: str, pieces: Sequence[Piece]) -> Iterator[tuple[int, str]]:
    """Yield blocks that look like YAML messages: fences, and the beginning."""
    for piece in pieces:
        if piece.kind != "text":
            continue
        for fence in _YAML_FENCE.finditer(text, piece.start, piece.end):
            words = text[max(0, fence.start() - 400) : fence.start()]
            if not _is_shown(words, text[fence.end() : fence.end() + 300]):
                yield fence.start(), fence["block"]
    start = _YAML_START.match(text)
    if start is not None:
        yield start.start(1), start[1]


def _shown(text: str, pieces: Sequence[Piece]) -> set[int]:
    """Return the starts of the calls and values that are only shown."""
    shown: set[int] = set()
    since = last = -1
    fences = 0
    for piece in pieces:
        if piece.kind in ("value", "calls"):
            words = text[max(since, piece.start - 400, 0) : piece.start]
            following = text[piece.end : piece.end + 300]
            bare, tokens = _unfenced(words) if fences % 2 == 1 else (words, None)
            bare = strip_fence_before(bare)
            if tokens is not None:
                tokens += text[piece.start : piece.start + 12]
            # a model does not fence its own tokens between words
            fenced = tokens and without_frames(bare) and _OWN_TOKEN.match(tokens)
            follows = since >= 0 and since == last and not without_frames(bare)
            inside = fences % 2 == 1 and _in_program(words)
            code = _is_code(words + text[piece.start : piece.start + 4], following)
            goes_on = _LINE_GOES_ON.match(text, piece.end - 1)
            if (
                follows
                or inside
                or code
                or goes_on
                or fenced
                or _is_shown(bare, following)
                or (not _has_token(text, piece) and _is_inside(bare, following))
            ):
                shown.add(piece.start)
                last = piece.end
        if piece.kind == "text":
            fences += text.count("```", piece.start, piece.end)
        else:
            since = piece.end
    return shown


def _unfenced(words: str) -> tuple[str, str | None]:
    """Return the words before a call's fence, and the tokens in it."""
    outside, fence, inside = words.rpartition("```")
    tokens = _FENCE_WORD.sub("", inside)
    return (outside, tokens) if fence and not without_frames(tokens) else (words, None)


def _in_program(words: str) -> bool:
    """Return whether more than comments precede a call in its fence."""
    before = words.rpartition("```")[2]
    if before.startswith("diff\n"):
        return True
    start = before.find("\n") + 1 if "```" in words else 0
    return _COMMENTS.fullmatch(without_frames(before[start:])) is None


def _is_code(words: str, following: str) -> bool:
    """Return whether a call is Markdown's indented code between words."""
    before, _, code = words.rpartition("\n\n")
    line = before.rpartition("\n")[2]
    indented = code.startswith(("    ", "\t")) and not line.startswith((" ", "\t"))
    return bool(indented and line and without_frames(following))


def _is_words(text: str, piece: Piece) -> bool:
    part = text[piece.start : piece.end]
    return piece.kind == "text" and not between_calls(without_frames(part))


def _is_open(
    text: str, pieces: Sequence[Piece], group: Sequence[Piece], made: Sequence[Piece]
) -> bool:
    """Return whether the words around a call are about another one."""
    if len(pieces) == len(group):
        return False
    first, last = group[0], group[-1]
    since, until = _edge(pieces, first, -1), _edge(pieces, last, 1)
    words = text[max(since, first.start - 400) : first.start]
    line = _line(strip_fence_before(before_frames(words)))
    following = text[last.end : min(until, last.end + 300)]
    following = NEXT_QUESTION.split(
        behind_frames(strip_fence_after(following)), maxsplit=1
    )[0]
    is_question = line.endswith(_ASKS) and not is_framed(text, first.start)
    is_numbered = last is made[-1] and is_step(line, following)
    return (
        is_question
        or is_numbered
        or leads_elsewhere(line)
        or is_reported(following)
        # only after its own token: any other call in a sentence is shown
        or _is_inside(strip_fence_before(words), following)
    )


def _edge(pieces: Sequence[Piece], piece: Piece, step: Literal[1, -1]) -> int:
    """Return the outer end of the words before or after a call."""
    at = bisect_left(pieces, piece.start, key=lambda other: other.start) + step
    while 0 <= at < len(pieces) and pieces[at].kind in ("text", "marker", "thought"):
        at += step
    if not 0 <= at < len(pieces):
        return pieces[at - step].start if step < 0 else pieces[at - step].end
    return pieces[at].end if step < 0 else pieces[at].start


def _is_code_list(text: str, group: Sequence[Piece]) -> bool:
    """Return whether the calls are list items in backticks."""
    return all(
        _CODE_ITEM.match(
            text[max(0, piece.start - 80) : piece.start].rpartition("\n")[2]
            + text[piece.start : piece.start + 8]
        )
        for piece in group
    )


def _line(words: str) -> str:
    """Return the last line that is not empty."""
    return words.rstrip("\n\t `*").rpartition("\n")[2].strip()


def _is_shown(words: str, following: str) -> bool:
    """Return whether a call between the two texts is only shown."""
    words, following = before_frames(words), behind_frames(following)
    line = words.rpartition("\n")[2]
    mark = _QUOTES.get(line[-1:], "")
    if mark:  # a call alone between closed quotes is made
        _, closed, after = following.partition("\n")[0].partition(mark)
        return not closed or bool(line[:-1].strip() or after.strip(" .`"))
    return (
        QUOTED_LINE.match(line) is not None
        or _SHOWN.search(_line(words)) is not None
        or _is_quoted(words, following)
    )


def _is_quoted(words: str, following: str) -> bool:
    """Return whether a quotation begins before a call and ends after it."""
    before, after = words.rpartition("\n\n")[2], following.partition("\n\n")[0]
    before, after = before.replace("```", ""), after.replace("```", "")
    return any(
        close in after
        and (before.count(mark) > before.count(close) or before.count(mark) % 2 == 1)
        for mark, close in _QUOTES.items()
        if mark != "'"
    )


def _has_token(text: str, piece: Piece) -> bool:
    """Return whether a call begins with its family's token."""
    own = _OWN_TOKEN.match(text, piece.start)
    return own is not None or is_framed(text, piece.start)


def _is_inside(words: str, following: str) -> bool:
    """Return whether a sentence continues after a call."""
    words, following = before_frames(words), behind_frames(following)
    before, after = words.rstrip("\n\t *"), strip_fence_after(following)
    if not before or not words[-1].isspace() or _GOES_ON.match(after) is None:
        return False
    return before[-1].isalnum() or before[-1] == "," or after.lstrip()[0] in ",–—"


def _asks_consent(text: str, calls: Sequence[Piece], end: int) -> bool:
    """Return whether the model asks for consent after the last call."""
    words = _words_after(text, calls, end)
    if _AGREE.search(words):
        return True
    written = text[calls[0].start : calls[-1].end].lower()
    return any(_is_request_for(what, written) for what in _requests(words))


def _open_question(text: str, calls: Sequence[Piece], end: int) -> CallError | None:
    """Return the error of calls that are followed by another question."""
    for sentence in _SENTENCE.findall(
        _IN_QUOTES.sub("", _words_after(text, calls, end))
    ):
        asks_consent = _MORE.search(sentence) or _MAY_I.search(sentence)
        if not asks_consent and sentence.endswith(_ASKS):
            return malformed_reply(
                f"the question after the call, {quote(sentence.strip())}, leaves open "
                "whether the call is to be made; write the call without it, or ask the "
                "user without the call."
            )
    return None


def _words_after(text: str, calls: Sequence[Piece], end: int) -> str:
    """Return the words after the last call, without an imagined question."""
    words = behind_frames(text[calls[-1].end : min(end, calls[-1].end + 400)])
    return NEXT_QUESTION.split(words, maxsplit=1)[0]


def _requests(words: str) -> Iterator[str]:
    """Yield the actions that the model asks permission for."""
    for match in _MAY_I.finditer(words):
        if match["end"] == "?" or match["if"]:
            yield match["what"]


def _is_request_for(request: str, written: str) -> bool:
    """Return whether the request is for the call itself and nothing more."""
    if _MORE.search(request):
        return False
    action = _VERB.match(request)
    return _DO_IT.match(request) is not None or (
        action is not None
        and action["verb"].lower() in written
        and (action["noun"] or "").lower() in written
    )
