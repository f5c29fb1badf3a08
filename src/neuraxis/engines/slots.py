"""Slots that limit how many calls of one command run at once.

A thread cannot be killed: one that is over its time limit, or whose call is given up,
still runs. It keeps its place until it ends.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar


class Slots:
    """Limit on parallel calls of a command, in one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free = asyncio.Semaphore(most)
        self._late = 0

    async def take(self, seconds: float) -> Slot | None:
        """Return a slot; None: abandoned threads hold them all."""
        while True:
            all_late = self._late >= self._most
            try:
                async with asyncio.timeout(seconds if self._free.locked() else None):
                    await self._free.acquire()
            except TimeoutError:
                if all_late:
                    return None
            else:
                return Slot(self)

    def ended(self, place: Slot) -> None:
        """A call is over; its threads may still run."""
        if place.threads:
            self._late += 1
        else:
            self._free.release()

    def left(self) -> None:
        """The last thread of a call that is over has ended."""
        self._late -= 1
        self._free.release()


class Slot:
    """That of one call; used in the thread of its loop only."""

    def __init__(self, places: Slots) -> None:
        self._places = places
        self._is_late = False
        self.threads = 0

    def begin(self) -> None:
        """A thread begins to work for the call."""
        self.threads += 1

    def end(self) -> None:
        """A thread of the call has ended."""
        self.threads -= 1
        if self._is_late and not self.threads:
            self._is_late = False  # what begins from here on has no place to give back
            self._places.left()

    def leave(self) -> None:
        """The call is over."""
        self._is_late = self.threads > 0
        self._places.ended(self)


SLOT: ContextVar[Slot | None] = ContextVar("neuraxis_place", default=None)
"""That of the call that is run here; its threads keep it."""
