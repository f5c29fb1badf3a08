"""Runs commands in this process: coroutines on the loop, the rest in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import CoroutineType
from typing import Any

from neuraxis.engines import TimeLimitReached
from neuraxis.engines.threads import THREADS
from neuraxis.engines.timeout import Begun


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
        """The command's value; see `Engine.run`."""
        given: Any = None
        if not is_async and not blocking:
            given = function(*positional, **arguments)
            if given.__class__ is not CoroutineType:
                return given
        until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        limit: asyncio.Timeout | None = None
        task, before = None, 0
        awaited: Awaitable[Any]
        try:
            if given is not None:
                awaited = given
            elif is_async:
                awaited = function(*positional, **arguments)
                if awaited.__class__ is CoroutineType:
                    # A timer costs more than many a command that never waits.
                    begun: Any = awaited
                    try:
                        awaited = Begun(begun, begun.send(None))
                    except StopIteration as ended:
                        awaited = ended.value
                        if awaited.__class__ is not CoroutineType:
                            return awaited
            else:
                awaited = THREADS.run(partial(function, *positional, **arguments))
            limit = asyncio.timeout_at(until)
            task = asyncio.current_task()
            before = 0 if task is None else task.cancelling()
            async with limit:
                value = await awaited
                # a `def` that gives what an `async def` gave it
                return await value if value.__class__ is CoroutineType else value
        except TimeoutError:
            if limit is None or not limit.expired():
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
