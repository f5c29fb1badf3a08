"""Slots that limit how many calls of one command run at once.

A thread cannot be killed: after its time limit, or after its call was abandoned, it
still runs. It keeps its slot until it ends.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar


class Slots:
    """Limit on parallel calls of a command, in one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._free = asyncio.Semaphore(limit)
        self._abandoned = 0

    async def take(self, seconds: float) -> Slot | None:
        """Return a slot; None: abandoned threads hold them all."""
        while True:
            all_abandoned = self._abandoned >= self._limit
            try:
                async with asyncio.timeout(seconds if self._free.locked() else None):
                    await self._free.acquire()
            except TimeoutError:
                if all_abandoned:
                    return None
            else:
                return Slot(self)

    def call_ended(self, slot: Slot) -> None:
        """Free the slot of an ended call, unless its threads still run."""
        if slot.threads:
            self._abandoned += 1
        else:
            self._free.release()

    def threads_ended(self) -> None:
        """Free the slot of an abandoned call whose last thread has ended."""
        self._abandoned -= 1
        self._free.release()


class Slot:
    """Slot of one call; used only in its event loop's thread."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._is_abandoned = False
        self.threads = 0

    def thread_started(self) -> None:
        """Count a thread that starts to work for the call."""
        self.threads += 1

    def thread_ended(self) -> None:
        """Count a thread of the call that has ended."""
        self.threads -= 1
        if self._is_abandoned and not self.threads:
            self._is_abandoned = False  # later threads have no slot to free
            self._slots.threads_ended()

    def end_call(self) -> None:
        """End the call."""
        self._is_abandoned = self.threads > 0
        self._slots.call_ended(self)


SLOT: ContextVar[Slot | None] = ContextVar("neuraxis_place", default=None)
"""Slot of the call that runs in this context."""
