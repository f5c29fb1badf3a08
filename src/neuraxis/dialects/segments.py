"""Shared parts of the lenient readers: groups of values, surrounding texts.

A reply is cut into values that belong together and the texts around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from neuraxis.call_errors import malformed_reply, truncated_reply
from neuraxis.dialects.families.cut import (
    before_frames,
    behind_frames,
    between_calls,
    without_frames,
)
from neuraxis.messages import CallError, Completion, Reply
from neuraxis.parsing.json_scan import (
    Piece,
    is_closed,
    strip_fence_after,
    strip_fence_before,
    thought_text,
)

FENCED = "a fence or tag around the block"
ONLY_FIRST = "only the first block was read"

_NEXT_QUESTION = re.compile(r"^(?:q:|# Evaluate this)", re.MULTILINE)
_SHOWN = re.compile(
    r"(?i:\b(?:examples?|e\.g|for instance|such as|you (?:c|w|sh)ould|once you)\b"
    r"(?:[^.]|\.(?=\S)|(?<=e\.g)\.)*+$)"
    r"|(?i:(?:\b(?:not|never|without)|n['’]t)\s+(?:\w+\s+)?"
    r"(?:call|do|execut|mak|run|send|us|writ)\w*\b[^.]*$)"
    r"|(?i:\b(?:shall|should|may|can|do|would)\s+(?:i|we|you)\b[^.]*\?$)"
    r"|^(?:if|for|while|def|with|try|elif|else|except)\b.*:$"
)
"""What the line before a call says of one that is shown, refused or asked about."""
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "«": "»"}
_REACT = re.compile(
    r"\s*(?:Question:[^\n]*\n\s*)?Thought:.*?(?:\nFinal Answer:|\Z)", re.DOTALL
)
_COMMENTS = re.compile(r"(?:[\s,;]|(?:\#|//)[^\n]*+)*+")
_GOES_ON = re.compile(
    r"[ \t]*+[,–—][ \t]+[^\W\d]|\s++(?!(?:and )?then\b|[a-z_]\w*+[(.])[a-z]"
)
_FENCE_WORD = re.compile(r"\A[\w-]*+\s*+")
_OWN_TOKEN = re.compile(r"<|\[TOOL_CALLS\]")
_ANSWER_LABEL = re.compile(r"\s*a:[ \t]*\n?")


_WHOLE = ("stop", "tool_calls", "answer")
"""Finish reasons of a complete reply (rule D10)."""


def was_cut(completion: Completion) -> bool:
    """Return whether the server cut the reply off (rule D10)."""
    return completion.finish_reason not in _WHOLE


def cut_reply(text: str) -> Reply:
    """Return the reply for a cut-off text: only plain text remains."""
    bare = text.strip() if not re.search(r"[{<\[]", text) else ""
    return Reply(texts=(bare,) if bare else (), errors=(truncated_reply(),))


def thoughts(text: str, found: Sequence[Piece]) -> tuple[str, ...]:
    """Return the thoughts among the pieces, without their tags."""
    return tuple(
        thought_text(text[piece.start : piece.end])
        for piece in found
        if piece.kind == "thought"
    )


def open_thought(text: str, found: Sequence[Piece]) -> CallError | None:
    """Return an error for an unclosed thought, which may hide the reply."""
    if not found or found[-1].kind != "thought":
        return None
    if is_closed(text[found[-1].start : found[-1].end]):
        return None
    return malformed_reply("the thought that begins with <think> is not closed.")


def own_turn(found: list[Piece], is_ours: Callable[[Piece], bool]) -> list[Piece]:
    """Return the pieces before the end of the model's turn.

    Behind it stands what the model imagines that others say.
    """
    called = False
    for index, piece in enumerate(found):
        if called and piece.marker == "turn":
            return found[:index]
        called = called or is_ours(piece)
    return found


def shown_calls(text: str, found: Sequence[Piece]) -> set[int]:
    """Return the starts of calls that are quoted or only shown."""
    shown: set[int] = set()
    since = last = -1
    fences = 0
    for piece in found:
        if piece.kind in ("value", "calls"):
            words = text[max(since, piece.start - 400, 0) : piece.start]
            rest = text[piece.end : piece.end + 300]
            bare, tokens = _unfenced(words) if fences % 2 == 1 else (words, None)
            bare = strip_fence_before(bare)
            if tokens is not None:
                tokens += text[piece.start : piece.start + 12]
            # a model does not fence its own tokens
            fenced = tokens and bare.strip() and _OWN_TOKEN.match(tokens)
            follows = since >= 0 and since == last and not without_frames(bare)
            inside = fences % 2 == 1 and _in_program(words)
            code = _is_code(words + text[piece.start : piece.start + 4], rest)
            if follows or inside or code or fenced or _is_shown(bare, rest):
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
    """Return whether more than comments stands before a call in its fence."""
    before = words.rpartition("```")[2]
    if before.startswith("diff\n"):
        return True
    start = before.find("\n") + 1 if "```" in words else 0
    return _COMMENTS.fullmatch(without_frames(before[start:])) is None


def _is_code(words: str, rest: str) -> bool:
    """Return whether words stand around Markdown's indented code."""
    before, _, code = words.rpartition("\n\n")
    line = before.rpartition("\n")[2]
    indented = code.startswith(("    ", "\t")) and not line.startswith((" ", "\t"))
    return bool(indented and line and without_frames(rest))


def _is_shown(words: str, rest: str) -> bool:
    words, rest = before_frames(words), behind_frames(rest)
    line = words.rpartition("\n")[2]
    mark = _QUOTES.get(line[-1:], "")
    if mark:  # alone in its marks a call is one, if they are closed
        _, closed, after = rest.partition("\n")[0].partition(mark)
        return not closed or bool(line[:-1].strip() or after.strip(" .`"))
    said = words.rstrip("\n\t `*").rpartition("\n")[2].strip()
    return (
        re.match(r"\s*>(?!>)", line) is not None
        or _SHOWN.search(said) is not None
        or _is_quoted(words, rest)
        or _is_inside(words, rest)
    )


def _is_quoted(words: str, rest: str) -> bool:
    """Return whether a quotation begins before a call and ends behind it."""
    before, after = words.rpartition("\n\n")[2], rest.partition("\n\n")[0]
    before, after = before.replace("```", ""), after.replace("```", "")
    return any(
        close in after
        and (before.count(mark) > before.count(close) or before.count(mark) % 2 == 1)
        for mark, close in _QUOTES.items()
        if mark != "'"
    )


def _is_inside(words: str, rest: str) -> bool:
    """Return whether a sentence goes on behind a call."""
    before, after = words.rstrip("\n\t *"), strip_fence_after(rest)
    if not before or not words[-1].isspace() or _GOES_ON.match(after) is None:
        return False
    return before[-1].isalnum() or before[-1] == "," or after.lstrip()[0] in ",–—"


def adjacent(text: str, values: Sequence[Piece]) -> list[list[Piece]]:
    """Group values with nothing between them but fences and commas.

    The tokens of a chat template are fences, too.
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


def said_around(
    text: str,
    found: Sequence[Piece],
    block: Collection[Piece],
    is_ours: Callable[[Piece], bool],
    notes: dict[str, None],
) -> tuple[str, ...]:
    """Return the text around the block, without thoughts, frames and fences."""
    taken = {piece.start for piece in block}
    stretches = [""]
    after_block = block_seen = False
    for piece in found:
        part = text[piece.start : piece.end]
        kept = piece.marker == "turn" and not part.startswith("<")
        if block and (piece.start in taken or is_ours(piece) or piece.marker):
            bare = strip_fence_before(stretches[-1])
            if bare != stretches[-1]:
                notes[FENCED] = None
            stretches[-1] = bare
            stretches.append("")
            after_block = True
            block_seen = block_seen or piece.start in taken
            continue
        if (piece.marker and not kept) or piece.kind == "thought":
            stretches.append("")
            continue
        if after_block:
            part = strip_fence_after(part)
            after_block = False
        if block_seen and (question := _NEXT_QUESTION.search(part)) is not None:
            notes["a question that the model asked itself"] = None
            stretches[-1] += part[: question.start()]
            break
        stretches[-1] += part
    label = _ANSWER_LABEL.match(stretches[0])
    if label is not None:
        stretches[0] = stretches[0][label.end() :]
    thought = _REACT.match(stretches[0])
    if thought is not None and (block or thought[0].endswith(":")):
        stretches[0] = stretches[0][thought.end() :]
    bare = [
        without_frames(part) or ("" if block else part.strip()) for part in stretches
    ]
    said = tuple(part for part in bare if part)
    if block and said:
        notes["text around the block"] = None
    return said
