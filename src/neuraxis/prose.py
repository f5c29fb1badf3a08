"""The words of a streaming reply, without the calls in it.

What is read here cannot be taken back, so it is careful: words behind a call, and
those of a reply that begins like a call or an envelope, come with the run's end.
"""

from __future__ import annotations

import re

from neuraxis.events import Event, ModelChunk, ModelStarted, SessionFinished

# A reference to an object, a marker of calls, a tag of calls or thoughts, a block of
# JSON, or a prefix of one.
_NOT_PROSE = re.compile(
    r"<(?:\||!--|/?(?:tool_call|function|think)|[/!]?[a-z_-]{0,9}\Z)"
    r"|```[a-z_]{0,12}\s{0,4}(?:[\[{]|\Z)|`{1,2}\Z"
    r"|^[ \t]*(?:\[\s*(?:\{|\Z)|\{\s*(?:\"|\Z))",
    re.IGNORECASE | re.MULTILINE,
)
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_LABEL = re.compile(r"a(?::[ \t]*\n?|\Z)")
"""What the prompt of tool intents ends with, and models repeat."""


class Prose:
    """The words for the user, piece by piece, from a run's events.

    `prose = Prose()`, then `prose(event)` for each event returns the new words, mostly
    none. Words that the model writes before a call are included.
    """

    def __init__(self) -> None:
        self._heard = ""
        self._said_before = False
        """Whether an earlier reply had words."""
        self.said = ""
        """What was returned of the last reply so far."""

    def __call__(self, event: Event) -> str:
        """Return the new words for the user that an event brings."""
        match event:
            case ModelStarted():
                self._said_before = self._said_before or bool(self.said)
                self._heard = self.said = ""
            case ModelChunk():
                self._hear(event.text)
                return self._new(self._so_far())
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
        found = _NOT_PROSE.search(text, len(self.said))
        return text[: found.start() if found else None].rstrip()

    def _new(self, whole: str) -> str:
        """Return what the reply's words have more than before."""
        before, self.said = self.said, whole or self.said
        said = before if whole.startswith(before) else ""  # it was completed
        new = whole[len(said) :]
        is_apart = new and not said and (before or self._said_before)
        return f"\n\n{new}" if is_apart else new
