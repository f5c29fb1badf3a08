"""Ids of a session's calls and attachments: none is given twice.

Whatever was planned, asked, begun, ended or stored has its id for good, also after the
session was closed or its process was killed. Only a program may use an id of its own
again: that is another attempt at its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import cast

from msgspec import Struct, field

from neuraxis.errors import ConfigError
from neuraxis.events import (
    ApprovalAsked,
    AssetStored,
    CallFinished,
    CallStarted,
    Event,
    HistoryShortened,
    PlanChecked,
    SessionStarted,
    Unknown,
)
from neuraxis.specs import Json


def key_of(events: Iterable[Event | Unknown], new: str) -> str:
    """Return the random part of a session's idempotency keys.

    Args:
        events: of the session; an earlier version stored no such part.
        new: the part, if there is none.
    """
    stored = (event.key for event in events if isinstance(event, SessionStarted))
    return next(filter(None, stored), new)


class CallIds(Struct, kw_only=True):
    """Ids in use in one session; mutable."""

    used: set[str] = field(default_factory=set[str])
    of_program: set[str] = field(default_factory=set[str])
    """Those of them that a program chose for its own calls."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def next(self) -> str:
        """Return an id that nothing in the session has."""
        own = next(
            own for own in map("a{}".format, self._numbers) if own not in self.used
        )
        self.used.add(own)
        return own

    def new(self) -> str:
        """Return an id for a call of the program's own."""
        own = self.next()
        self.used.discard(own)  # until that call is made
        return own

    def take(self, ids: Iterable[str], session: str) -> None:
        """Reserve the ids of a program's own calls.

        Raises:
            ConfigError: one is that of a call of the model, or of an attachment.
        """
        ids = tuple(ids)
        for own in ids:
            if own in self.used and own not in self.of_program:
                raise ConfigError(
                    f"Call.id: {own!r} is the id of a call of the model, or of an "
                    f"object, in session {session}; expected an id of your own "
                    "(session.ids.new() returns one)"
                )
        self.used.update(ids)
        self.of_program.update(ids)

    def replay(self, events: Iterable[Event | Unknown]) -> None:
        """Take up the ids that a journal names."""
        for event in events:
            match event:
                case PlanChecked(problems=()):  # else nothing ran
                    steps = cast("tuple[dict[str, Json], ...]", event.steps)
                    ids = {str(step.get("id")) for step in steps}
                    self.used |= ids
                    self.of_program |= ids if event.by_program else set()
                case CallStarted() | CallFinished() | AssetStored() | ApprovalAsked():
                    self.used.add(event.id)
                case HistoryShortened():
                    self.used.add(event.asset)
                case _:
                    pass
