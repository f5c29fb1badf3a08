"""Runs commands in this process: coroutines on the loop, the rest in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import CoroutineType
from typing import Any, cast

from neuraxis.engines import TimeLimitReached
from neuraxis.engines.threads import THREADS


class InProcess:
    """The default engine. A thread cannot be killed: see `Engine.run`."""

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
        """Run a command and return its value; see `Engine.run`."""
        task, limit = asyncio.current_task(), asyncio.timeout(seconds)
        before = 0 if task is None else task.cancelling()
        try:
            async with limit:
                if is_async:
                    value = await function(*positional, **arguments)
                elif blocking:
                    call = partial(function, *positional, **arguments)
                    value = await THREADS.run(call)
                else:
                    value = function(*positional, **arguments)
                # a `def` may return what an `async def` gave it
                if type(value) is CoroutineType:
                    return await cast("Awaitable[Any]", value)
                return value
        except TimeoutError:
            if not limit.expired():
                raise  # the command's own
            if cancelled is not None:
                cancelled.set()
            raise TimeLimitReached from None
        except asyncio.CancelledError:
            if cancelled is not None:
                cancelled.set()
            task = None
            raise
        finally:
            # An `asyncio.TaskGroup` that failed leaves its task, which is that of the
            # run, as one that is being cancelled (Python 3.11 and 3.12).
            while task is not None and task.cancelling() > before:
                task.uncancel()

    def close(self) -> None:
        """End the idle threads; another session's next call makes one again."""
        THREADS.close()
