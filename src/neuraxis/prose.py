"""The words of a streaming reply, without the calls in it.

Words that were returned cannot be taken back. So words after a call, and words of a
reply that begins like a call or an envelope, are returned only at the end of the run.
"""

from __future__ import annotations

import re

from neuraxis.events import Event, ModelChunk, ModelStarted, SessionFinished

_NAME = r"[^\W\d][\w.-]{0,80}"
_BLOCK = rf"\[\s*(?:\{{|[\"'`]?(?:\Z|{_NAME}(?:\(|\Z)))|\{{\s*(?:[\"'“‘]|\Z)"
_ARGUMENTS = rf"\(\s*+(?:\Z|[)*{{]|(?:{_NAME}\s*+)?(?:\Z|=(?!=)))"
_FENCE = r"```\w{0,12}\s{0,4}"
_NOT_PROSE = re.compile(
    # a reference to an object, a marker of calls, a tag of calls or thoughts
    r"<(?:[|｜<]|!--|/?[a-z_:-]{0,20}(?:tool|function|think|invoke)|[/!]?[\w:-]{0,20}\Z)"
    r"|✿|>>>|>{1,2}\Z|\](?:<\]|<?\Z)|\[TOOL_CALLS|\[THINK\]|```tool_|^\**Action:|`{1,2}\Z"
    # JSON, or a list of calls as Python writes it
    rf"|(?P<code>(?:{_FENCE}|[*`]{{0,2}})(?:{_BLOCK})|{_FENCE}(?:<|\Z)"
    # on its line, item of a list or fenced: that, or a name with its arguments
    rf"|^[ \t]*(?:(?:[-*•]|\d{{1,2}}[.)]?)(?:[ \t]+|\Z))?(?:{_FENCE}|[*`]{{1,3}})?"
    rf"(?:\Z|{_BLOCK}|(?:print\(|Call:[ ]?)?{_NAME}[ \t]*+(?:{_ARGUMENTS}"
    rf"|(?::[ \t]*+)?\n?\s{{0,4}}(?:\Z|{_BLOCK}))))",
    re.IGNORECASE | re.MULTILINE,
)
"""What may begin a call, a thought or a block of JSON, or a prefix of one."""
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_LABEL = re.compile(r"a(?::[ \t]*\n?|\Z)")
"""What the prompt of tool intents ends with, and models repeat."""


class Prose:
    """The words for the user, piece by piece, from a run's events.

    `prose = Prose()`, then `prose(event)` for each event returns the new words, mostly
    none. Words that the model writes before a call are included. If a reply breaks off
    and is requested again, words that are the same as before are not returned again.
    """

    def __init__(self) -> None:
        self._heard = ""
        self._said_before = False
        """Whether an earlier reply had words."""
        self.said = ""
        """What was returned of the last reply so far."""
        self._is_repeated = False
        """Whether the reply broke off and came anew."""

    def __call__(self, event: Event) -> str:
        """Return the new words for the user that an event brings."""
        match event:
            case ModelStarted() if event.again:
                # what was returned stays read: the same words are not returned again
                self._heard, self._is_repeated = "", True
            case ModelStarted():
                self._is_repeated = False
                self._said_before = self._said_before or bool(self.said)
                self._heard = self.said = ""
            case ModelChunk():
                self._hear(event.text)
                so_far = self._so_far()
                if self._is_repeated and self.said.startswith(so_far):
                    return ""
                return self._new(so_far)
            case SessionFinished():
                new = self._new(event.text)
                self._said_before, self.said = False, ""
                return new
            case _:
                pass
        return ""

    def _hear(self, text: str) -> None:
        since = max(0, len(self._heard) - 12)  # the tag may come in pieces
        self._heard = (self._heard + text).lstrip()
        if self._heard[:6].lower() == "<think":
            end = _END_OF_THOUGHT.search(self._heard, since)
            self._heard = self._heard[end.end() :].lstrip() if end else self._heard

    def _so_far(self) -> str:
        """Return the words of the reply that no later piece can change."""
        text = self._heard
        label = _LABEL.match(text)
        text = text[label.end() :] if label else text
        if not text or text[0] in "<[{`":
            return self.said
        # what was returned is no prefix of a call: look behind it
        known = len(self.said) if text.startswith(self.said) else 0
        for found in _NOT_PROSE.finditer(text, known):
            if not found["code"] or not _in_program(text[: found.start()]):
                return text[: found.start()].rstrip()
        return text.rstrip()

    def _new(self, whole: str) -> str:
        """Return the words of the reply that were not returned before."""
        before, self.said = self.said, whole or self.said
        shown = before if whole.startswith(before) else ""  # it was completed
        new = whole[len(shown) :]
        is_apart = new and not shown and (before or self._said_before)
        return f"\n\n{new}" if is_apart else new


def _in_program(before: str) -> bool:
    """Return whether code precedes a place in its fence."""
    _, fence, code = before.rpartition("```")
    return bool(before.count("```") % 2 and fence and code.partition("\n")[2].strip())
