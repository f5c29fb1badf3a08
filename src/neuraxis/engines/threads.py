"""Daemon threads for commands that block: as many as there are calls, reused.

asyncio's own pool has cores + 4 threads, so ten calls of 50 ms take 100 ms on two
cores; and a thread of `concurrent.futures` that hangs keeps the process from ending.
All sessions of a process share them: a service makes a session for each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from neuraxis.engines.slots import SLOT, Slot

IDLE_SECONDS = 10.0
"""An idle thread ends after this time."""

_Job = tuple[
    Callable[[], Any],
    asyncio.AbstractEventLoop,
    asyncio.Future[Any],
    contextvars.Context,
    Slot | None,
]


class Threads:
    """`run` gives a future for a function that runs in an idle or a new thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin without any thread, as a forked process has to."""
        self._idle: list[queue.SimpleQueue[_Job | None]] = []
        self._lock = threading.Lock()

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Start `function` now; an abandoned future leaves its thread running."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context, place = contextvars.copy_context(), SLOT.get()
        if place is not None:
            place.begin()
            context.run(SLOT.set, None)  # what a command runs itself is not held
        job = (function, loop, future, context, place)
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue[_Job | None]()
            threading.Thread(
                target=self._work, args=(inbox,), name="neuraxis-command", daemon=True
            ).start()
        inbox.put(job)
        return future

    def _work(self, inbox: queue.SimpleQueue[_Job | None]) -> None:
        while True:
            try:
                job = inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                # taken from the idle list a moment ago: the job is on its way
                job = inbox.get()
            if job is None:
                return
            function, loop, future, context, place = job
            value: Any = None
            error: BaseException | None = None
            try:
                # given up before it began: nobody would hear what it does
                value = None if future.cancelled() else context.run(function)
            except BaseException as raised:  # noqa: BLE001 - handed to the caller
                error = raised
            with self._lock:
                self._idle.append(inbox)
            with contextlib.suppress(RuntimeError):  # closed loop: nobody waits
                loop.call_soon_threadsafe(_settle, future, value, error, place)
            del job, function, loop, future, context, value, error, place

    def close(self) -> None:
        """End the idle threads."""
        with self._lock:
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)


THREADS = Threads()
"""Those of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREADS.forget)


def _settle(
    future: asyncio.Future[Any],
    value: Any,
    error: BaseException | None,
    place: Slot | None,
) -> None:
    if place is not None:
        place.end()
    if future.done():  # the time limit or the person was faster
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, SystemExit):
        # written as a script: its end is a failed call, and not that of the session
        ended = RuntimeError(f"the command called sys.exit({error.code!r})")
        ended.__cause__ = error
        future.set_exception(ended)
    elif isinstance(error, StopIteration | GeneratorExit):
        # a future refuses the one, and the other would end the coroutine that awaits
        # it; a command that leaks them has a bug
        kind = type(error).__name__
        future.set_exception(RuntimeError(f"the command raised {kind}"))
    else:
        future.set_exception(error)
