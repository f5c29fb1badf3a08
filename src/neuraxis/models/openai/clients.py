"""A way to make a client flows in; each event loop that asks gets one of its own.

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
    """The clients of one model, by the loop that uses them."""

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._kept: dict[asyncio.AbstractEventLoop, _Kept] = {}

    async def here(self) -> httpx2.AsyncClient:
        """The client of this loop; it is closed with it, as `asyncio.run` ends one."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is None:
            for other in list(self._kept):
                if other.is_closed():  # by somebody who ended nothing else of it
                    self._kept.pop(other, None)
            client = self._make()
            keeper = self._keep(loop, client)
            kept = self._kept[loop] = (client, keeper)
            await anext(keeper)  # so that the loop knows it, and ends it
        return kept[0]

    async def close(self) -> None:
        """Close that of this loop; another one may be made."""
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
