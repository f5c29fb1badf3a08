"""One run of a session, in the hands of who started it: awaited, or watched live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

from neuraxis.answers import Answer
from neuraxis.events import Event

Watch = Callable[[Event], None]
"""Sees every event as it happens."""
Drive = Callable[[str, Watch | None], Awaitable[Answer]]
"""`Session.drive`."""


class Run:
    """One run: `await` it for the answer, or `async for` its events."""

    def __init__(self, drive: Drive, text: str) -> None:
        self._drive_with = drive
        self._text = text
        self.answer: Answer | None = None
        """The answer, once the run has ended."""

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._drive(None).__await__()

    async def _drive(self, watch: Watch | None) -> Answer:
        self.answer = await self._drive_with(self._text, watch)
        return self.answer

    async def __aiter__(self) -> AsyncIterator[Event]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self._drive(queue.put_nowait))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
