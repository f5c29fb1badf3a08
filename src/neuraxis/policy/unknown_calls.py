"""Calls of `once` commands whose outcome is unknown.

The model alone cannot call such a command again: its plugin (`reconcile(call_id)`) or
the user is asked first, and until then further calls of it are refused. The state is
built from the events of this process and, by `replay`, of an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from msgspec import Struct

from neuraxis.events import (
    CallFinished,
    CallStarted,
    Event,
    MessageSent,
    SessionStarted,
    Unknown,
)
from neuraxis.specs import Json

TELLING = frozenset({CallStarted, CallFinished, SessionStarted, MessageSent})
"""Events that can concern such a call; the others need not be recorded."""
_CODES = frozenset({"outcome_unknown", "cancelled", "timeout"})
"""Errors of calls that may have had their effect."""


class UnknownCalls(Struct, kw_only=True):
    """The unknown calls of one session."""

    _running: dict[str, CallStarted] = {}
    _unknown: dict[str, CallStarted] = {}

    def record(self, event: Event | Unknown) -> None:
        """Update the state by one event."""
        if isinstance(event, CallStarted):
            self._running.pop(event.part_of, None)  # each item has its own outcome
            if event.effects == "once" and event.items is None:
                self._began(event)
        elif not (self._running or self._unknown):
            return
        elif isinstance(event, CallFinished):
            self._ended(event)
        elif isinstance(event, SessionStarted) or (
            isinstance(event, MessageSent) and event.sender == "user"
        ):
            self._unknown |= self._running  # interrupted: their end is unknown
            self._running.clear()

    def _began(self, started: CallStarted) -> None:
        # it could begin, so the outcome of the earlier calls was settled
        for earlier in self.of(started.plugin, started.command):
            del self._unknown[earlier.id]
        self._running[started.id] = started

    def _ended(self, event: CallFinished) -> None:
        self._unknown.pop(event.id, None)
        started = self._running.pop(event.id, None)
        if started is not None and _code(event.error) in _CODES:
            self._unknown[event.id] = started

    def replay(self, events: Iterable[Event | Unknown]) -> None:
        """Replay a journal, whose unfinished calls are unknown."""
        for event in events:
            self.record(event)
        self._unknown |= self._running
        self._running.clear()

    def of(self, plugin: str, command: str) -> list[CallStarted]:
        """Return the unknown calls of a command, the oldest first."""
        return [
            call
            for call in self._unknown.values()
            if (call.plugin, call.command) == (plugin, command)
        ]

    def get(self, call_id: str) -> CallStarted | None:
        """Return the call with this id, if its outcome is unknown."""
        return self._unknown.get(call_id)

    @property
    def all(self) -> tuple[CallStarted, ...]:
        """Every call whose outcome is unknown, the oldest first."""
        return tuple(self._unknown.values())


def settlement(
    call: CallStarted, happened: bool, by: str, error: Mapping[str, Json]
) -> CallFinished:
    """Return the end of a call whose outcome was settled.

    Args:
        call: its start.
        happened: whether it had its effect.
        by: who says so.
        error: the error to report if it had none.
    """
    return CallFinished(
        id=call.id,
        plugin=call.plugin,
        command=call.command,
        tool=call.tool,
        status="done" if happened else "failed",
        value=f"{by} says that it had its effect" if happened else None,
        error=None if happened else dict(error),
        part_of=call.part_of,
    )


def _code(error: Json) -> str:
    fields = cast("dict[str, Json]", error) if isinstance(error, dict) else {}
    return str(fields.get("code"))
