"""HTTP clients of a model, one per event loop.

Connections belong to the loop that opened them. Several loops may send at the same
time: threads that share a model, each with the loop of its own session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

_Entry = tuple["httpx2.AsyncClient", AsyncGenerator[None, None]]


class Clients:
    """Clients of one model, by the loop that uses them."""

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._entries: dict[asyncio.AbstractEventLoop, _Entry] = {}

    async def current(self) -> httpx2.AsyncClient:
        """Return this loop's client, which is closed with it by `asyncio.run`."""
        loop = asyncio.get_running_loop()
        entry = self._entries.get(loop)
        if entry is None:
            for other in list(self._entries):
                # its loop was closed without ending its generators
                if other.is_closed():
                    self._entries.pop(other, None)
            client = self._make()
            keeper = self._close_with_loop(loop, client)
            entry = self._entries[loop] = (client, keeper)
            # registers the generator with the loop, which closes it at its end
            await anext(keeper)
        return entry[0]

    async def close(self) -> None:
        """Close this loop's client; the next request makes another."""
        entry = self._entries.get(asyncio.get_running_loop())
        if entry is not None:
            await entry[1].aclose()

    async def _close_with_loop(
        self, loop: asyncio.AbstractEventLoop, client: httpx2.AsyncClient
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._entries.pop(loop, None)
            await client.aclose()
