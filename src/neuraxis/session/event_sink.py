"""Destinations of events: journal, watchers, and the parent run.

Durable events are on disk before any watcher sees them: such an event, and all events
after it, are announced only after `settled` was awaited.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

from neuraxis.call_errors import had_no_effect, to_json
from neuraxis.errors import ConfigError, StorageError
from neuraxis.events import (
    NOT_STORED,
    ApprovalAnswered,
    ApprovalAsked,
    CallProgress,
    CallStarted,
    Event,
    FileChanged,
    Inside,
    MessageSent,
    ModelFinished,
    RunUndone,
    SessionFinished,
    innermost,
)
from neuraxis.execution.nested import ParentRun
from neuraxis.formatting import check_flag
from neuraxis.journal import Journal
from neuraxis.journal.memory import MemoryJournal
from neuraxis.policy.unknown_calls import TELLING, UnknownCalls, settlement
from neuraxis.session.run import RunLock
from neuraxis.session.watch import Watch, WatchFailed

_DURABLE = frozenset(
    {ModelFinished, CallStarted, ApprovalAsked, ApprovalAnswered, SessionFinished}
)
_WRITE_AT_ONCE = frozenset({FileChanged, RunUndone})
"""On disk when `emit` returns: a command's thread goes on and changes the file."""
_DURABLE_NESTED = frozenset(
    {
        "model_finished",
        "call_started",
        "approval_asked",
        "approval_answered",
        "session_finished",
    }
)


class EventSink:
    """Pass on the events of one session, in their order.

    Args:
        session: the session's id.
        journal: stores the events.
        lock: holds the `watch` of the current request.
        outer: the parent run of a nested session.
        workspace: the session's workspace.
        unknown: tracks the calls with an unknown outcome.
    """

    def __init__(
        self,
        session: str,
        journal: Journal,
        lock: RunLock,
        outer: ParentRun | None,
        workspace: Path,
        unknown: UnknownCalls,
    ) -> None:
        self._session = session
        self._journal = journal
        self._lock = lock
        self._outer = outer
        self._workspace = workspace
        self._unknown = unknown
        self.is_durable = not isinstance(journal, MemoryJournal) or (
            outer is not None and outer.runtime.gate.settled is not None
        )
        """Whether the journal is on disk, so that events must be awaited."""
        self.is_nested = outer is not None
        self._emitted = self._durable = self._on_disk = 0
        """Numbers of the newest event, the newest durable one, and the newest that is
        known to be on disk."""
        self._waiting: deque[tuple[int, Watch, Event]] = deque()
        """Events not announced yet, each with its number and watcher."""

    def emit(self, event: Event, watch: Watch | None = None) -> None:
        """Store an event and pass it on.

        Args:
            event: what happened.
            watch: another watcher, beside that of the current request.

        Raises:
            StorageError: the event cannot be stored.
        """
        kind = event.__class__
        if kind not in NOT_STORED:
            if kind in TELLING:
                self._unknown.record(event)
            try:
                self._journal.append(
                    self._session, event, durable=kind in _WRITE_AT_ONCE
                )
            except StorageError as error:
                if kind is not SessionFinished:
                    raise
                self._lock.unwritten = str(error)  # the answer itself is not lost
            self._emitted += 1
            if self.is_durable and _is_durable(event):
                self._durable = self._emitted
        if watch is not None:
            self._announce(event, watch)
        if self._lock.watch is not None:
            self._announce(event, self._lock.watch)
        if self._outer is not None:
            self._outer.receive(self._session, self._workspace, event)

    def _announce(self, event: Event, watch: Watch) -> None:
        # progress is reported in the command's thread, after its start was announced
        if event.__class__ is not CallProgress and (
            self._waiting or self._durable > self._on_disk
        ):
            self._waiting.append((self._emitted, watch, event))
        else:
            watch(event)

    def settle(self, call_id: str, happened: bool) -> None:
        """Record whether a call with an unknown outcome had its effect.

        Raises:
            ConfigError: there is no such call.
        """
        check_flag("happened", happened)
        call = self._unknown.get(call_id)
        if call is None:
            listed = ", ".join(item.id for item in self._unknown.all) or "none"
            raise ConfigError(
                f"settle: expected a call whose outcome is unknown ({listed}), got "
                f"{call_id!r}"
            )
        error = to_json(had_no_effect(call.tool))
        self.emit(settlement(call, happened, "the user", error))

    async def settled(self) -> None:
        """Wait until the durable events are on disk, and announce them.

        Raises:
            StorageError: they cannot be written.
        """
        if self._durable > self._on_disk:
            await self.written()

    async def written(self) -> None:
        """Wait until all events are on disk, and announce them.

        Raises:
            StorageError: they cannot be written.
        """
        emitted = self._emitted
        await self._journal.settled(self._session)
        if self._outer is not None:
            await self._outer.settled()
        self._on_disk = max(self._on_disk, emitted)
        self._announce_until(emitted)

    async def end(self) -> None:
        """Wait as `written` does; record what cannot be written."""
        try:
            await self.written()
        except WatchFailed:
            raise  # the program's own
        except StorageError as error:
            self._lock.unwritten = self._lock.unwritten or str(error)
            self._announce_until(self._emitted)

    def _announce_until(self, number: int) -> None:
        while self._waiting and self._waiting[0][0] <= number:
            _, watch, event = self._waiting.popleft()
            watch(event)

    def forget(self) -> None:
        """Drop the events not announced yet: the run has ended."""
        self._waiting.clear()


def _is_durable(event: Event) -> bool:
    if event.__class__ in _DURABLE:
        return True
    if isinstance(event, Inside):
        return innermost(event.event)["type"] in _DURABLE_NESTED
    return isinstance(event, MessageSent) and event.sender == "user"
