r"""Read calls from a reply that is still streaming.

A call is returned as soon as the closing brace of its object has arrived. Only
unambiguous input is read: the block begins the reply (after a closed thought, or a
fence for the envelopes), every object is strict JSON, and the dialect's `decode`
accepts each alone. At anything else the reader ends and returns no more; `decode` reads
the whole reply as always.

Its calls are the first calls that `decode` will return, or `decode` will find a mistake
and nothing of the reply counts. One thing cannot be known in advance: a `</think>`
after the block turns everything before it into a thought. So whatever is done with
these calls must be undoable (see `neuraxis.execution.early_start`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from neuraxis.messages import Call, Chunk, NativeCall, Reply
from neuraxis.parsing.flawless_json import read_flawless

LONGEST_ITEM = 200_000
"""Maximum characters of one object; a longer one ends the reader."""

_SPACE = " \t\r\n"
_OPEN_THOUGHT = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_TAGS = ("<think>", "<thinking>")
_FENCE = re.compile(r"```+[\w-]*\s+(?=\S)")
_FENCE_SO_FAR = re.compile(r"`{1,2}|```+[\w-]*\s*")
_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'["\\]')


class _Brackets:
    """Finds the end of an object whose text arrives in pieces."""

    __slots__ = ("_at", "_depth", "_quoted", "text")

    def __init__(self) -> None:
        self.text = ""
        self._at = self._depth = 0
        self._quoted = False

    def object(self) -> str | None:
        """Remove the object at the beginning of `text`; None if incomplete."""
        text = self.text
        while True:
            pattern = _INSIDE if self._quoted else _OUTSIDE
            match = pattern.search(text, self._at)
            if match is None:
                self._at = len(text)
                return None
            char, end = match[0], match.end()
            if char == "\\":
                if end == len(text):
                    self._at = end - 1
                    return None
                end += 1
            elif char == '"':
                self._quoted = not self._quoted
            elif char in "{[":
                self._depth += 1
            else:
                self._depth -= 1
            self._at = end
            if not self._depth:
                self.text, self._at = text[end:], 0
                return text[:end]


def _is_flawless(text: str) -> bool:
    read = read_flawless(text)
    return read is not None and read[1] == len(text) and isinstance(read[0], dict)


class TextReader:
    """Reads calls from text: a list after a marker, or initial messages.

    Args:
        read: decodes one object alone, with the dialect.
        start: the marker that opens the frame, with a list after it; empty: the
            reply begins with the block, a list or bare objects, or with its fence.
    """

    def __init__(self, read: Callable[[str], Reply], *, start: str = "") -> None:
        self.ended = False
        self._read = read
        self._start = start
        self._brackets = _Brackets()
        self._thought = 0
        self._listed = False
        self._state: Literal["head", "block", "item", "inside", "behind"] = "head"

    def feed(self, chunk: Chunk) -> Sequence[Call]:
        """Return the calls that this chunk completed."""
        if self.ended or not chunk.text:
            return ()
        brackets = self._brackets
        brackets.text += chunk.text
        calls = list(self._calls())
        self.ended = self.ended or len(brackets.text) > LONGEST_ITEM
        if self.ended:
            brackets.text = ""
        return calls

    def _calls(self) -> Iterator[Call]:
        if self._state == "head" and self._head():
            self._state = "block"
        while not self.ended and self._state != "head":
            if self._state != "inside" and not self._opened():
                return
            item = self._brackets.object()
            if item is None:
                return
            self._state = "behind"
            reply = self._read(item) if _is_flawless(item) else None
            if reply is None or reply.errors or len(reply.calls) > 1:
                self.ended = True
                return
            yield from reply.calls
            if not reply.calls and not self._listed:
                # if it is no message, the block ended before it
                self.ended = True

    def _head(self) -> bool:
        """Skip what may precede the block; return whether it begins here."""
        while text := self._brackets.text.lstrip():
            self._brackets.text = text
            low = text[:10].lower()
            if low not in _TAGS and any(tag.startswith(low) for tag in _TAGS):
                return False
            if _OPEN_THOUGHT.match(text):
                end = _END_OF_THOUGHT.search(text, max(0, self._thought - 12))
                self._thought = len(text)
                if end is None:
                    return False
                self._brackets.text, self._thought = text[end.end() :], 0
                continue
            if self._start:
                if text.startswith(self._start):
                    self._brackets.text = text[len(self._start) :]
                    return True
                self.ended = not self._start.startswith(text)
                return False
            if text[0] == "`":
                if (fence := _FENCE.match(text)) is not None:
                    self._brackets.text = text[fence.end() :]
                    return True
                self.ended = _FENCE_SO_FAR.fullmatch(text) is None
                return False
            return True
        return False

    def _opened(self) -> bool:
        """Go to the next object; return whether it begins here, else end."""
        while text := self._brackets.text.lstrip(_SPACE):
            self._brackets.text = text
            char, state = text[0], self._state
            if state == "block" and char == "[":
                self._listed = True
                self._state = "item"
            elif state == "behind" and char == ",":
                self._state = "item"
            elif char == "{" and (
                state == "item"
                or (state == "block" and not self._start)
                or (state == "behind" and not self._listed)
            ):
                self._state = "inside"
                return True
            else:
                self.ended = True
                return False
            self._brackets.text = text[1:]
        return False


class DeltaReader:
    """Reads native calls from a server's deltas, one index after the other.

    Args:
        read: decodes one call alone, with the dialect; None: it has a mistake.
    """

    def __init__(self, read: Callable[[NativeCall], Call | None]) -> None:
        self.ended = False
        self._read = read
        self._index = -1
        self._id = self._name = ""
        self._given: set[NativeCall] = set()
        self._brackets = _Brackets()
        self._done = True

    def feed(self, chunk: Chunk) -> Sequence[Call]:
        """Return the calls that this chunk completed."""
        calls: list[Call] = []
        for delta in chunk.tool_calls:
            if self.ended:
                break
            if delta.index == self._index + 1 and self._done:
                self._index, self._done = delta.index, False
                self._id = self._name = ""
                self._brackets = _Brackets()
            elif delta.index != self._index:
                self.ended = True
                break
            self._id = self._id or delta.id or ""
            self._name = self._name or delta.name or ""
            if self._done:  # text after the object makes the call malformed
                self.ended = bool(delta.arguments.strip())
            elif delta.arguments:
                calls += self._add(delta.arguments)
        return calls

    def _add(self, text: str) -> Iterator[Call]:
        brackets = self._brackets
        brackets.text = (brackets.text + text).lstrip(_SPACE)
        if not brackets.text:
            return
        item = brackets.object() if brackets.text[0] == "{" else ""
        if item is None:
            self.ended = len(brackets.text) > LONGEST_ITEM
            return
        self._done = True
        native = NativeCall(id=self._id, name=self._name, arguments=item)
        trailing = brackets.text.strip()
        call = None
        if self._name and not trailing and _is_flawless(item):
            call = self._read(native)
        if call is None:
            self.ended = True
            return
        if native in self._given:  # repeated under its id: one call
            return
        if native.id:
            self._given.add(native)
        yield call
