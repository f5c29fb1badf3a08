"""Ids of a session's calls and attachments, which are unique for good.

An id that was planned, asked about, started or stored is never used again, even after
the process was killed. Only the program may repeat its own id, with the same call: that
is another attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


def session_key(events: Iterable[Event | Unknown], new: str) -> str:
    """Return the random part of a session's idempotency keys.

    Args:
        events: the session's events; earlier versions stored no such part.
        new: returned if the events have none.
    """
    stored = (event.key for event in events if isinstance(event, SessionStarted))
    return next(filter(None, stored), new)


def plan_key(key: str, params: Mapping[str, Json] | None) -> str:
    """Return that part for a saved plan with these parameters.

    Its calls have the same ids and arguments whatever the parameters are.
    """
    return f"{key}{_encoded(dict(params))!r}" if params else key


class CallIds(Struct, kw_only=True):
    """Ids in use in one session; mutable."""

    used: set[str] = set()
    program_ids: dict[str, int] = {}
    """The ids that the program chose, each with a digest of its call."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def next(self) -> str:
        """Return an unused id, and reserve it."""
        while (new_id := f"a{next(self._numbers)}") in self.used:
            pass
        self.used.add(new_id)
        return new_id

    def new(self) -> str:
        """Return an unused id for one of the program's own calls."""
        new_id = self.next()
        self.used.discard(new_id)  # `take` reserves it with its call
        return new_id

    def take(self, calls: Iterable[Call], session: str) -> None:
        """Reserve the ids of a program's own calls.

        Raises:
            ConfigError: an id belongs to a call of the model, to an attachment, or to
                another call of the program.
        """
        digests = {call.id: _digest(call.target, call.arguments) for call in calls}
        for call_id, digest in digests.items():
            if call_id in self.used and self.program_ids.get(call_id) != digest:
                owner = (
                    "another call of the program"
                    if call_id in self.program_ids
                    else "a call of the model, or of an object,"
                )
                raise ConfigError(
                    f"Call.id: {call_id!r} is the id of {owner} in session {session}; "
                    "expected an id of your own (session.ids.new() returns one)"
                )
        self.used.update(digests)
        self.program_ids.update(digests)

    def replay(self, events: Iterable[Event | Unknown]) -> None:
        """Reserve the ids in a journal's events."""
        for event in events:
            match event:
                case PlanChecked(problems=()):  # else nothing ran
                    steps = cast("tuple[dict[str, Json], ...]", event.steps)
                    digests = {
                        str(step.get("id")): _digest(
                            step.get("tool"), step.get("arguments")
                        )
                        for step in steps
                    }
                    self.used.update(digests)
                    if event.by_program:
                        self.program_ids |= digests
                case CallStarted() | CallFinished() | AssetStored() | ApprovalAsked():
                    self.used.add(event.id)
                case HistoryShortened():
                    self.used.add(event.asset)
                case _:
                    pass


def _digest(target: Json, arguments: Json) -> int:
    """Hash a call; the hash survives a round trip through the journal."""
    return hash(_encoded([target, arguments]))


def _encoded(value: Json) -> bytes | str:
    """Return the same text for the same value, in every process."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (TypeError, ValueError):  # an object without a JSON form
        return repr(value)
