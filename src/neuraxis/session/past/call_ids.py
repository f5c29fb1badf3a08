"""Ids of a session's calls and attachments: none is given twice.

Whatever was planned, asked, begun, ended or stored has its id for good, also after the
session was closed or its process was killed. Only a program may use an id of its own
again, for the same call: that is another attempt at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import cast

import msgspec
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
from neuraxis.messages import Call
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

    used: set[str] = set()
    of_program: dict[str, int] = {}
    """Those of them that a program chose, each with what tells its call."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def next(self) -> str:
        """Return an id that nothing in the session has."""
        while (own := f"a{next(self._numbers)}") in self.used:
            pass
        self.used.add(own)
        return own

    def new(self) -> str:
        """Return an id for a call of the program's own."""
        own = self.next()
        self.used.discard(own)  # until that call is made
        return own

    def take(self, calls: Iterable[Call], session: str) -> None:
        """Reserve the ids of a program's own calls.

        Raises:
            ConfigError: one is that of a call of the model, of an attachment, or of
                another call of the program.
        """
        taken = {call.id: _mark(call.target, call.arguments) for call in calls}
        for own, mark in taken.items():
            if own in self.used and self.of_program.get(own) != mark:
                whose = (
                    "another call of the program"
                    if own in self.of_program
                    else "a call of the model, or of an object,"
                )
                raise ConfigError(
                    f"Call.id: {own!r} is the id of {whose} in session {session}; "
                    "expected an id of your own (session.ids.new() returns one)"
                )
        self.used.update(taken)
        self.of_program.update(taken)

    def replay(self, events: Iterable[Event | Unknown]) -> None:
        """Take up the ids that a journal names."""
        for event in events:
            match event:
                case PlanChecked(problems=()):  # else nothing ran
                    steps = cast("tuple[dict[str, Json], ...]", event.steps)
                    marks = {
                        str(step.get("id")): _mark(
                            step.get("tool"), step.get("arguments")
                        )
                        for step in steps
                    }
                    self.used.update(marks)
                    if event.by_program:
                        self.of_program |= marks
                case CallStarted() | CallFinished() | AssetStored() | ApprovalAsked():
                    self.used.add(event.id)
                case HistoryShortened():
                    self.used.add(event.asset)
                case _:
                    pass


def _mark(target: Json, arguments: Json) -> int:
    """Hash what is called, alike before and after a journal."""
    try:
        return hash(msgspec.json.encode([target, arguments], order="deterministic"))
    except (TypeError, ValueError):  # an object that no journal can hold
        return hash(repr((target, arguments)))
