"""Conversation whose older messages were shortened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.events import HistoryShortened
from neuraxis.messages import Message

SUMMED_UP = "the conversation so far, in full"
"""Description of the object that holds what was summed up."""


class SummedUp(Struct, kw_only=True):
    """Full text of what a session's summary stands for."""

    asset: str = ""
    """Where it is kept; empty: nothing was summed up."""
    text: str = ""

    def add(self, dropped: Sequence[Message], asset: str) -> None:
        """Append messages, which another asset holds from now on."""
        texts = (f"{item.role}:\n{item.content}" for item in dropped)
        self.text = "\n\n".join([*filter(None, [self.text]), *texts])
        self.asset = asset


def shorten(history: list[Message], event: HistoryShortened) -> list[Message]:
    """Do to the messages what the event tells; return those it drops."""
    for change in event.messages:
        index, content = cast("tuple[int, str]", change)
        if 0 <= index < len(history):
            now = replace(history[index], content=content, results=())
            history[index] = replace(now, parts=(), assets=())
    dropped = history[: event.dropped]
    del history[: event.dropped]
    return dropped
