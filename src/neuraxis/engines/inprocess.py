"""Runs commands in this process: coroutines on the loop, the rest in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from neuraxis.engines import TimeLimitReached
from neuraxis.engines.threads import Threads


class InProcess:
    """The default engine. A thread cannot be killed: see `Engine.run`."""

    def __init__(self) -> None:
        self._threads = Threads()

    async def run(
        self,
        function: Callable[..., Any],
        positional: tuple[Any, ...],
        arguments: Mapping[str, Any],
        cancelled: threading.Event | None,
        *,
        is_async: bool = False,
        blocking: bool = True,
        seconds: float | None = None,
    ) -> Any:
        """The command's value; see `Engine.run`."""
        if is_async:
            awaited = function(*positional, **arguments)
        elif not blocking:
            return function(*positional, **arguments)
        else:
            awaited = self._threads.run(partial(function, *positional, **arguments))
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await awaited
        except TimeoutError:
            if not limit.expired():
                raise  # the command's own
            if cancelled is not None:
                cancelled.set()
            raise TimeLimitReached from None
        except asyncio.CancelledError:
            if cancelled is not None:
                cancelled.set()
            raise

    def close(self) -> None:
        """End the idle threads."""
        self._threads.close()
