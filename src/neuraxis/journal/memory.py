"""In-memory journal: the default of a Python `Session`, and of tests."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from neuraxis.errors import SessionBusy
from neuraxis.events import (
    Event,
    MessageSent,
    PlanChecked,
    SessionFinished,
)
from neuraxis.journal import Entry, SessionInfo
from neuraxis.specs import Json


class _Stored(Struct, frozen=True, gc=False):
    """An event and its time; its place is its number."""

    at: float
    event: Event


class MemoryJournal:
    """Journal in memory, with a list of events for each session."""

    def __init__(self) -> None:
        self._sessions: defaultdict[str, list[_Stored]] = defaultdict(list)
        self._open: set[str] = set()

    def claim(self, session: str, *, is_new: bool = False) -> None:
        """Open a session.

        Raises:
            SessionBusy: it is open already.
        """
        if session in self._open:
            raise SessionBusy(
                f"session {session} is open already, in this process; close it "
                "there, or begin another session"
            )
        self._open.add(session)

    def release(self, session: str) -> None:
        """Close a session, so that it can be opened elsewhere."""
        self._open.discard(session)

    async def settled(self, session: str) -> None:
        """Return at once: nothing is written to disk."""

    def append(self, session: str, event: Event, *, durable: bool = False) -> None:
        """Append an event."""
        self._sessions[session].append(_Stored(time.time(), event))

    def read(self, session: str) -> Sequence[Entry]:
        """Return all events of a session, oldest first."""
        stored = self._sessions.get(session, ())
        return [
            Entry(seq=seq, at=item.at, event=item.event)
            for seq, item in enumerate(stored, 1)
        ]

    def sessions(self) -> Sequence[SessionInfo]:
        """Return all sessions, the most recently used first."""
        infos = [
            SessionInfo(
                session=session,
                started=entries[0].at,
                ended=entries[-1].at,
                events=len(entries),
                title=session_title(entry.event for entry in entries),
                state=_last_state(entry.event for entry in reversed(entries)),
            )
            for session, entries in self._sessions.items()
        ]
        return sorted(infos, key=lambda info: info.ended, reverse=True)

    def delete(self, session: str) -> None:
        """Delete all events of a session."""
        self._sessions.pop(session, None)

    def close(self) -> None:
        """Do nothing: there is no file."""


def session_title(events: Iterable[Event]) -> str:
    """Return the beginning of the user's first message, or the called commands."""
    plans: list[PlanChecked] = []
    for event in events:
        if isinstance(event, MessageSent) and event.sender == "user":
            return short_title(event.content)
        if isinstance(event, PlanChecked):
            plans.append(event)
    return calls_title(plans[0].steps) if plans else ""


def calls_title(steps: Iterable[Mapping[str, Json]]) -> str:
    """Return the title of a session without a request: the called commands."""
    return short_title(", ".join(str(step["tool"]) for step in steps))


def short_title(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _last_state(newest_first: Iterable[Event]) -> str:
    for event in newest_first:
        if isinstance(event, SessionFinished):
            return event.outcome
        if isinstance(event, MessageSent):
            return "unfinished"
    return ""
