"""Engine in this process: coroutines in tasks, functions in threads.

A coroutine may swallow its cancellation, and a thread cannot be killed. After a while
either is abandoned: the caller continues, and a late result is discarded.
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
"""Seconds that a cancelled coroutine has for its cleanup."""
STOP_SECONDS = 0.5
"""Seconds that a thread which observes its cancellation has to end."""
_LOG = logging.getLogger("neuraxis.engines")
_EXITED = "the command raised GeneratorExit"


class InProcess:
    """Default engine: runs commands in this process.

    Args:
        nested: whether its calls are made inside a command; then they never wait for
            a free thread, since the command's thread waits for them.
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
            value = _called(call)
        else:
            started = time.monotonic()
            value = await self._run_thread(call, cancelled, seconds)
            if seconds is not None:
                seconds -= time.monotonic() - started
        # a `def` may return the coroutine of an `async def`
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
        if job.queued is not None:
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
        """Do nothing: all sessions share the threads, which end when idle."""


async def _wait_for_thread(job: Job, seconds: float | None) -> None:
    """Wait until the job has a thread.

    Raises:
        NoThreadFree: it had none in time, and will not start.
    """
    queued = cast("asyncio.Future[None]", job.queued)
    try:
        done, _ = await asyncio.wait((queued,), timeout=seconds)
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
    job.given_up = True  # if it has not started, it never will
    if cancelled is None:
        return _give_up(job.future, call)
    cancelled.set()
    return await _has_ended(job.future, call, STOP_SECONDS)


class _TaskState(Struct):
    """State of a command's task."""

    is_given_up: bool = False
    """Whether it was abandoned."""
    seconds: float | None = None
    """The call's time limit."""
    exit: SystemExit | None = None


async def _run_task(
    call: Callable[[], Awaitable[Any]],
    cancelled: threading.Event | None,
    seconds: float | None,
) -> Any:
    """Run a coroutine in a task that can be abandoned."""
    state = _TaskState(seconds=seconds)
    task = asyncio.get_running_loop().create_task(_await_call(call, state))
    slot = SLOT.get()
    if slot is not None:
        slot.thread_started()
        task.add_done_callback(lambda _: slot.thread_ended())
    try:
        await asyncio.sleep(0)  # most end here, and need no timer
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
        state.is_given_up = True
        raise
    state.is_given_up = not ended
    return ended


async def _has_ended(
    future: asyncio.Future[Any], call: Callable[[], Any], seconds: float
) -> bool:
    """Wait for a cancelled future; return whether it has ended."""
    try:
        await asyncio.wait((future,), timeout=seconds)
    except asyncio.CancelledError:
        _give_up(future, call)
        raise asyncio.CancelledError(GIVEN_UP) from None
    return _give_up(future, call)


def _give_up(future: asyncio.Future[Any], call: Callable[[], Any]) -> bool:
    """Return whether a future has ended; otherwise log its late end."""
    if future.done():
        _ = future.cancelled() or future.exception()  # mark the exception as retrieved
        return True
    given_up_at = time.monotonic()
    name = _name(call)

    def note(late: asyncio.Future[Any]) -> None:
        outcome = "was cancelled"
        if not late.cancelled():
            outcome = "returned" if late.exception() is None else "raised"
        _LOG.warning(
            "%s %s %.1f s after it was given up; its result is discarded",
            name,
            outcome,
            time.monotonic() - given_up_at,
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


def _called(call: Callable[[], Any]) -> Any:
    """Call, and tell a GeneratorExit as an error, as threads do.

    It would end the coroutine that awaits the call, and so the run.
    """
    try:
        return call()
    except GeneratorExit:
        raise RuntimeError(_EXITED) from None


async def _await_call(call: Callable[[], Awaitable[Any]], state: _TaskState) -> Any:
    try:
        value: Any = _called(call)
        if not _is_coroutine(value):
            value = await value
        while _is_coroutine(value):  # it may return another one
            value = await _drive_coroutine(value, state)
        return value
    except SystemExit as raised:
        state.exit = raised  # a task that raises it would end the loop


def _is_coroutine(value: object) -> bool:
    return type(value) is CoroutineType


@coroutine
def _drive_coroutine(
    work: Coroutine[Any, Any, Any], state: _TaskState
) -> Generator[Any, Any, Any]:
    """Await a coroutine; close it when its loop ends.

    At its end, `asyncio.run` cancels the remaining tasks and waits for them: forever,
    if one swallows its cancellation.
    """
    step = partial(work.send, None)
    while True:
        started = time.monotonic()
        try:
            awaited = step()
        except StopIteration as end:
            return end.value
        except GeneratorExit:
            raise RuntimeError(_EXITED) from None
        finally:
            took = time.monotonic() - started
            if state.seconds is not None and took > state.seconds:
                _LOG.warning(
                    "%s blocked the event loop for %.1f s, so that its time limit of "
                    "%g s could not end it. Make it a `def`, which runs in a thread",
                    work.__qualname__, took, state.seconds,
                )  # fmt: skip
        try:
            yield awaited
        except GeneratorExit:
            work.close()
            raise
        except BaseException as raised:
            if state.is_given_up:
                work.close()
                raise
            step = partial(work.throw, raised)
        else:
            step = partial(work.send, None)
