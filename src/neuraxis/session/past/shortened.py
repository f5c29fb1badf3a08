"""Shortened older messages of a conversation, and their full text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.events import HistoryShortened
from neuraxis.messages import Message

SUMMARY_DESCRIPTION = "the conversation so far, in full"
"""Description of the asset that holds the full text."""


class Summary(Struct, kw_only=True):
    """Full text of the messages that a summary replaced."""

    asset: str = ""
    """Id of the asset that stores it; empty: there is no summary."""
    text: str = ""

    def with_text(self, dropped: Sequence[Message]) -> str:
        """Return the text with these messages after it."""
        texts = (f"{item.role}:\n{item.content}" for item in dropped)
        return "\n\n".join([*filter(None, [self.text]), *texts])

    def add(self, dropped: Sequence[Message], asset: str) -> None:
        """Append messages; `asset` stores the text from now on."""
        self.text = self.with_text(dropped)
        self.asset = asset


def apply_shortening(history: list[Message], event: HistoryShortened) -> list[Message]:
    """Apply the event to the history; return the dropped messages.

    Messages are counted from the last: of the first ones, the program may have added
    or removed some.
    """
    moved = len(history) - event.of if event.of else 0
    for entry in event.messages:
        index, content = cast("tuple[int, str]", entry)
        if 0 <= index + moved < len(history):
            shortened = replace(history[index + moved], content=content, results=())
            history[index + moved] = replace(shortened, parts=(), assets=())
    end = max(0, event.dropped + moved) if event.dropped else 0
    dropped = history[:end]
    del history[:end]
    return dropped
