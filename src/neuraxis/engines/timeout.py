"""A coroutine and its seconds flow in; what it gives flows out, or that it was late.

A timer costs more than many a command, and only what waits for something can be
stopped by one: it is set when the coroutine first waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from neuraxis.engines import TimeLimitReached

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives.

    Raises:
        TimeLimitReached: it waited for longer; it was cancelled and has ended.
    """
    until = asyncio.get_running_loop().time() + seconds
    try:
        begun = Begun(work, work.send(None))
    except StopIteration as ended:
        return ended.value
    limit = asyncio.timeout_at(until)
    try:
        async with limit:
            return await begun
    except TimeoutError:
        if limit.expired():
            raise TimeLimitReached from None
        raise  # its own


class Begun:
    """A coroutine that was begun by hand and waits for something, to be awaited."""

    __slots__ = ("_begun", "_first", "_waits_for")

    def __init__(self, begun: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._begun = begun
        self._waits_for = waits_for
        self._first = True

    def __await__(self) -> Generator[Any, Any, Any]:
        return self  # pyright: ignore[reportReturnType] - what `await` asks of one

    def __iter__(self) -> Begun:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Tell what the coroutine waits for; from the second time on, wake it."""
        if self._first:
            self._first = False
            return self._waits_for
        return self._begun.send(value)

    def throw(self, raised: BaseException) -> Any:
        """Raise it where the coroutine waits."""
        return self._begun.throw(raised)

    def close(self) -> None:
        """End the coroutine."""
        self._begun.close()
