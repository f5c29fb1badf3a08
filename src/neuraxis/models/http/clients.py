"""HTTP clients of a model, one for each event loop.

Connections belong to the loop that opened them. Several loops may ask at the same time:
threads that share a model, each with the loop of its own session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

_Kept = tuple["httpx2.AsyncClient", AsyncGenerator[None, None]]


class Clients:
    """Clients of one model, by the loop that uses them."""

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._kept: dict[asyncio.AbstractEventLoop, _Kept] = {}

    async def here(self) -> httpx2.AsyncClient:
        """Return this loop's client, which is closed with it by `asyncio.run`."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is None:
            for other in list(self._kept):
                # its loop was closed without ending its generators
                if other.is_closed():
                    self._kept.pop(other, None)
            client = self._make()
            keeper = self._keep(loop, client)
            kept = self._kept[loop] = (client, keeper)
            # registers the generator with the loop, which then closes it
            await anext(keeper)
        return kept[0]

    async def close(self) -> None:
        """Close this loop's client; the next request makes another."""
        kept = self._kept.get(asyncio.get_running_loop())
        if kept is not None:
            await kept[1].aclose()

    async def _keep(
        self, loop: asyncio.AbstractEventLoop, client: httpx2.AsyncClient
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._kept.pop(loop, None)
            await client.aclose()
