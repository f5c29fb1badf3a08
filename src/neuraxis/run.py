"""One run of a session, in the hands of who started it: awaited, or watched live."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

from neuraxis.answers import Answer
from neuraxis.events import Event

Watch = Callable[[Event], None]
"""Sees every event as it happens."""
Drive = Callable[[str, Watch | None], Awaitable[Answer]]
"""`Session.drive`."""


def also(emit: Watch, watch: Watch | None) -> Watch:
    """What sees an event if both do."""
    if watch is None:
        return emit

    def both(event: Event) -> None:
        emit(event)
        watch(event)

    return both


class Run:
    """One run: `await` it for the answer, or `async for` its events."""

    def __init__(self, drive: Drive, text: str) -> None:
        self._drive_with = drive
        self._text = text
        self.answer: Answer | None = None
        """The answer, once the run has ended."""

    def __repr__(self) -> str:
        # also what `asyncio.run` says of it, which takes a coroutine only
        return (
            f"<a run of {self._text!r:.40}: in async code `await` it, or `async for` "
            "its events; elsewhere use session.run_sync>"
        )

    if not TYPE_CHECKING:  # for people without one, who take a run for its answer

        def __getattr__(self, name: str) -> Any:
            if name in Answer.__slots__:
                raise AttributeError(f"{name!r} is the answer's; this is {self!r}")
            raise AttributeError(f"a Run has no {name!r}")

        def __iter__(self) -> Any:
            raise TypeError(f"this is {self!r}")

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._drive(None).__await__()

    async def _drive(self, watch: Watch | None) -> Answer:
        self.answer = await self._drive_with(self._text, watch)
        return self.answer

    async def __aiter__(self) -> AsyncIterator[Event]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        loop, here = asyncio.get_running_loop(), threading.get_ident()

        def watch(event: Event) -> None:
            if threading.get_ident() == here:
                queue.put_nowait(event)
                return
            # a command tells its progress in its own thread, which wakes nobody here
            with contextlib.suppress(RuntimeError):  # closed loop: nobody watches
                loop.call_soon_threadsafe(queue.put_nowait, event)

        task = asyncio.create_task(self._drive(watch))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
