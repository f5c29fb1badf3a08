"""Engine in this process: coroutines in tasks, functions in threads.

A coroutine may swallow its cancellation and a thread cannot be ended. Either is given
up after a while: the caller goes on, and what it returns late is thrown away.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from functools import partial
from types import CoroutineType, coroutine
from typing import Any, cast

from msgspec import Struct

from neuraxis.engines import GIVEN_UP, NoThreadFree, TimeLimitReached
from neuraxis.engines.slots import SLOT
from neuraxis.engines.threads import THREADS, Job

CLEAN_UP_SECONDS = 5.0
"""Seconds in which a cancelled coroutine has to end."""
HEAR_SECONDS = 0.5
"""Seconds in which a thread that can hear it has to end."""
_LOG = logging.getLogger("neuraxis.engines")


class InProcess:
    """The default engine. A thread cannot be killed: see `Engine.run`.

    Args:
        nested: whether its calls are made inside a command, whose thread they would
            wait for.
    """

    def __init__(self, *, nested: bool = False) -> None:
        self._nested = nested

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
        call = partial(function, *positional, **arguments)
        if is_async:
            return await _run_task(call, cancelled, seconds)
        if not blocking:
            value = call()
        else:
            started = time.monotonic()
            value = await self._run_thread(call, cancelled, seconds)
            if seconds is not None:
                seconds -= time.monotonic() - started
        # a `def` may return what an `async def` gave it
        if _is_coroutine(value):
            return await _run_task(lambda: value, cancelled, seconds)
        return value

    async def _run_thread(
        self,
        call: partial[Any],
        cancelled: threading.Event | None,
        seconds: float | None,
    ) -> Any:
        job = THREADS.start(call, bounded=not self._nested)
        if job.waits is not None:
            await _wait_for_thread(job, seconds)
        try:
            done, _ = await asyncio.wait((job.future,), timeout=seconds)
        except asyncio.CancelledError:
            if not await _leave_thread(job, call, cancelled):
                raise asyncio.CancelledError(GIVEN_UP) from None
            raise
        if done:
            return job.future.result()
        ended = await _leave_thread(job, call, cancelled)
        raise TimeLimitReached(still_running=not ended)

    def close(self) -> None:
        """Nothing: idle threads serve all sessions, and end by themselves."""


async def _wait_for_thread(job: Job, seconds: float | None) -> None:
    """Wait until the job has a thread.

    Raises:
        NoThreadFree: it had none in time, and is not begun any more.
    """
    waits = cast("asyncio.Future[None]", job.waits)
    try:
        done, _ = await asyncio.wait((waits,), timeout=seconds)
    except asyncio.CancelledError:
        THREADS.give_up(job)
        raise
    if not done:
        THREADS.give_up(job)
        raise NoThreadFree


async def _leave_thread(
    job: Job, call: partial[Any], cancelled: threading.Event | None
) -> bool:
    """Ask a thread to stop; return whether it has."""
    job.given_up = True  # where it has not begun yet, it does not
    if cancelled is None:
        return _give_up(job.future, call)
    cancelled.set()
    return await _has_ended(job.future, call, HEAR_SECONDS)


class _TaskState(Struct):
    """State of a command's task."""

    is_left: bool = False
    """Whether it was given up."""
    exit: SystemExit | None = None


async def _run_task(
    call: Callable[[], Awaitable[Any]],
    cancelled: threading.Event | None,
    seconds: float | None,
) -> Any:
    """Run a coroutine in a task that can be given up."""
    state = _TaskState()
    task = asyncio.get_running_loop().create_task(_held(call, state))
    place = SLOT.get()
    if place is not None:
        place.begin()
        task.add_done_callback(lambda _: place.end())
    try:
        await asyncio.sleep(0)  # in which most end, so that no timer is begun
        done = task.done() or (await asyncio.wait((task,), timeout=seconds))[0]
    except asyncio.CancelledError:
        if not await _leave_task(task, call, cancelled, state):
            raise asyncio.CancelledError(GIVEN_UP) from None
        raise
    if not done:
        ended = await _leave_task(task, call, cancelled, state)
        raise TimeLimitReached(still_running=not ended)
    if state.exit is not None:
        raise state.exit
    return task.result()


async def _leave_task(
    task: asyncio.Task[Any],
    call: Callable[[], Any],
    cancelled: threading.Event | None,
    state: _TaskState,
) -> bool:
    """Cancel a task; return whether it has ended."""
    if cancelled is not None:
        cancelled.set()
    task.cancel()
    try:
        ended = await _has_ended(task, call, CLEAN_UP_SECONDS)
    except BaseException:
        state.is_left = True
        raise
    state.is_left = not ended
    return ended


async def _has_ended(
    future: asyncio.Future[Any], call: Callable[[], Any], seconds: float
) -> bool:
    """Wait a moment for what was asked to stop."""
    try:
        await asyncio.wait((future,), timeout=seconds)
    except asyncio.CancelledError:
        _give_up(future, call)
        raise asyncio.CancelledError(GIVEN_UP) from None
    return _give_up(future, call)


def _give_up(future: asyncio.Future[Any], call: Callable[[], Any]) -> bool:
    """Return whether it has ended; note the end of what has not."""
    if future.done():
        _ = future.cancelled() or future.exception()  # looked at: nobody else does
        return True
    since = time.monotonic()
    name = _name(call)

    def note(late: asyncio.Future[Any]) -> None:
        how = "was cancelled"
        if not late.cancelled():
            how = "returned" if late.exception() is None else "raised"
        _LOG.warning(
            "%s %s %.1f s after it was given up; its result is discarded",
            name,
            how,
            time.monotonic() - since,
        )

    future.add_done_callback(note)
    return False


def _name(call: Callable[[], Any]) -> str:
    """Return the name of a command's function."""
    names = [
        getattr(part, "__qualname__", "")
        for part in (*getattr(call, "args", ())[:1], getattr(call, "func", call))
    ]
    return next(filter(None, names), "a command")


async def _held(call: Callable[[], Awaitable[Any]], state: _TaskState) -> Any:
    try:
        value: Any = call()
        if not _is_coroutine(value):
            value = await value
        while _is_coroutine(value):  # it may return another one
            value = await _steps(value, state)
        return value
    except SystemExit as raised:
        state.exit = raised  # a task that raises it would end the loop


def _is_coroutine(value: object) -> bool:
    return type(value) is CoroutineType


@coroutine
def _steps(
    given: Coroutine[Any, Any, Any], state: _TaskState
) -> Generator[Any, Any, Any]:
    """Await a coroutine; close it when its loop ends.

    `asyncio.run` cancels what still runs and waits for it: for ever, where the
    cancellation is swallowed.
    """
    step = partial(given.send, None)
    while True:
        try:
            waits = step()
        except StopIteration as end:
            return end.value
        try:
            yield waits
        except GeneratorExit:
            given.close()
            raise
        except BaseException as raised:
            if state.is_left:
                given.close()
                raise
            step = partial(given.throw, raised)
        else:
            step = partial(given.send, None)
