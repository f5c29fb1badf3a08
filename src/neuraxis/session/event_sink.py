"""Destinations of events: journal, watchers, and the parent run.

What the journal promises to hold after a kill is on disk before anybody is told of it:
who watches sees such an event, and all behind it, once `settled` was awaited.
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
from neuraxis.policy.unknown_calls import UnknownCalls, settlement
from neuraxis.session.run import RunLock
from neuraxis.session.watch import Watch

_PROMISED = frozenset(
    {ModelFinished, CallStarted, ApprovalAsked, ApprovalAnswered, SessionFinished}
)
_AT_ONCE = frozenset({FileChanged, RunUndone})
"""On disk when `emit` returns: a command's thread goes on and changes the file."""
_PROMISED_INSIDE = frozenset(
    {
        "model_finished",
        "call_started",
        "approval_asked",
        "approval_answered",
        "session_finished",
    }
)


class EventSink:
    """Pass the events of one session on, in their order.

    Args:
        session: its id.
        journal: where they are stored.
        turn: holds who watches the request that is being answered.
        outer: the run around the session.
        workspace: the session's.
        unknown: follows which calls have an unknown outcome.
    """

    def __init__(
        self,
        session: str,
        journal: Journal,
        turn: RunLock,
        outer: ParentRun | None,
        workspace: Path,
        unknown: UnknownCalls,
    ) -> None:
        self._session = session
        self._journal = journal
        self._turn = turn
        self._outer = outer
        self._workspace = workspace
        self._unknown = unknown
        self.is_durable = not isinstance(journal, MemoryJournal) or (
            outer is not None and outer.runtime.gate.settled is not None
        )
        """Whether there is anything to wait for."""
        self.is_nested = outer is not None
        self._emitted = self._promised = self._on_disk = 0
        """How many events there were, to the last one that is promised, and to the
        last one that is known to be on disk."""
        self._waiting: deque[tuple[int, Watch, Event]] = deque()
        """What is not announced yet: its number, who is told, the event."""

    def emit(self, event: Event, watch: Watch | None = None) -> None:
        """Store an event and pass it on.

        Args:
            event: what happened.
            watch: told beside who watches the request.

        Raises:
            StorageError: it cannot be stored.
        """
        kind = event.__class__
        if kind not in NOT_STORED:
            self._unknown.hear(event)
            try:
                self._journal.append(self._session, event, durable=kind in _AT_ONCE)
            except StorageError as error:
                if kind is not SessionFinished:
                    raise
                self._turn.unwritten = str(error)  # all is done: no answer is lost
            self._emitted += 1
            if self.is_durable and _is_promised(event):
                self._promised = self._emitted
        if watch is not None:
            self._announce(event, watch)
        if self._turn.watch is not None:
            self._announce(event, self._turn.watch)
        if self._outer is not None:
            self._outer.hear(self._session, self._workspace, event)

    def _announce(self, event: Event, watch: Watch) -> None:
        # progress is told in the command's own thread, after its start was announced
        if event.__class__ is not CallProgress and (
            self._waiting or self._promised > self._on_disk
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
        """Wait until what is promised is on disk, and announce it.

        Raises:
            StorageError: it cannot be written.
        """
        if self._promised > self._on_disk:
            await self.written()

    async def written(self) -> None:
        """Wait until all that was emitted is on disk, and announce it.

        Raises:
            StorageError: it cannot be written.
        """
        emitted = self._emitted
        await self._journal.settled(self._session)
        if self._outer is not None:
            await self._outer.settled()
        self._on_disk = max(self._on_disk, emitted)
        self._announce_until(emitted)

    async def end(self) -> None:
        """As `written`, but only notes what cannot be written."""
        try:
            await self.written()
        except StorageError as error:
            self._turn.unwritten = self._turn.unwritten or str(error)
            self._announce_until(self._emitted)

    def _announce_until(self, number: int) -> None:
        while self._waiting and self._waiting[0][0] <= number:
            _, watch, event = self._waiting.popleft()
            watch(event)

    def forget(self) -> None:
        """Announce nothing more: the run has ended."""
        self._waiting.clear()


def _is_promised(event: Event) -> bool:
    if event.__class__ in _PROMISED:
        return True
    if isinstance(event, Inside):
        return innermost(event.event)["type"] in _PROMISED_INSIDE
    return isinstance(event, MessageSent) and event.sender == "user"
