"""Daemon threads for commands that block: bounded, reused, shared by all sessions.

asyncio's own pool has cores + 4 threads, so ten calls of 50 ms take 100 ms on two
cores; and a thread of `concurrent.futures` that hangs keeps the process from ending.
All sessions of a process share them: a service makes a session for each request. Calls
beyond the limit wait in a queue, but not those made inside a command: its thread
waits for them, so they could wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from neuraxis.engines.slots import SLOT, Slot
from neuraxis.errors import ConfigError

IDLE_SECONDS = 10.0
"""An idle thread ends after this time."""
MOST = 256
"""Calls that have a thread at the same time, unless the settings say otherwise."""

_IS_INSIDE: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "neuraxis_inside_of_a_thread", default=False
)


class Job:
    """One function that a thread runs, or will run."""

    __slots__ = (
        "bounded", "context", "function", "future", "given_up", "loop", "place",
        "waits",
    )  # fmt: skip

    def __init__(self, function: Callable[[], Any], *, bounded: bool) -> None:
        self.function = function
        self.bounded = bounded
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.waits: asyncio.Future[None] | None = None
        """Ends when a thread begins; None: none had to be waited for."""
        self.given_up = False
        """Nobody waits any more: it is not begun."""
        self.context = contextvars.copy_context()
        self.context.run(_IS_INSIDE.set, True)
        self.place: Slot | None = SLOT.get()
        if self.place is not None:
            self.place.begin()
            self.context.run(SLOT.set, None)  # what a command runs itself is not held

    def is_wanted(self) -> bool:
        """Return whether somebody still waits for it."""
        return not self.given_up and not self.future.cancelled()


class Threads:
    """Thread pool in which a nested call never waits."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.forget()

    def forget(self) -> None:
        """Begin without any thread, as a forked process has to."""
        self._idle: list[queue.SimpleQueue[Job | None]] = []
        self._waiting: deque[Job] = deque()
        self._busy = 0
        self._lock = threading.Lock()

    def run(
        self, function: Callable[[], Any], *, bounded: bool = True
    ) -> asyncio.Future[Any]:
        """Start `function`; an abandoned future leaves its thread running."""
        return self.start(function, bounded=bounded).future

    def start(self, function: Callable[[], Any], *, bounded: bool = True) -> Job:
        """Start `function` now, or as soon as a thread is free.

        Args:
            function: what a thread runs.
            bounded: whether it waits where as many threads as may are busy. What is
                called inside a command never waits.

        Raises:
            RuntimeError: the system gives no thread, and there is none to wait for.
        """
        job = Job(function, bounded=bounded and not _IS_INSIDE.get())
        with self._lock:
            if job.bounded and self._busy >= self.most:
                job.waits = job.loop.create_future()
                self._waiting.append(job)
                return job
            self._busy += job.bounded
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue[Job | None]()
            thread = threading.Thread(
                target=self._work, args=(inbox,), name="neuraxis-command", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:  # the system has no more of them
                self._queue_or_raise(job)
                return job
        inbox.put(job)
        return job

    def _queue_or_raise(self, job: Job) -> None:
        """Queue a job without a thread; raise where none will end."""
        with self._lock:
            self._busy -= job.bounded
            if job.bounded and self._busy:
                job.waits = job.loop.create_future()
                self._waiting.append(job)
                return
        if job.place is not None:
            job.place.end()
        raise

    def give_up(self, job: Job) -> None:
        """Do not begin a job that nobody waits for any more."""
        job.given_up = True
        with self._lock:
            try:
                self._waiting.remove(job)
            except ValueError:
                return  # a thread has it
        if job.place is not None:
            job.place.end()

    def _work(self, inbox: queue.SimpleQueue[Job | None]) -> None:
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
            while job is not None:
                job = self._run(job, inbox)

    def _run(self, job: Job, inbox: queue.SimpleQueue[Job | None]) -> Job | None:
        """Run a job and return the next, if it may begin."""
        value: Any = None
        error: BaseException | None = None
        waits = job.waits
        if waits is not None:
            with contextlib.suppress(RuntimeError):  # as below
                job.loop.call_soon_threadsafe(_begin, waits)
        try:
            # given up before it began: nobody would hear what it does
            value = job.context.run(job.function) if job.is_wanted() else None
        except BaseException as raised:  # noqa: BLE001 - handed to the caller
            error = raised
        following: Job | None = None
        with self._lock:
            self._busy -= job.bounded
            if self._waiting and self._busy < self.most:
                following = self._waiting.popleft()
                self._busy += 1
            else:
                self._idle.append(inbox)
        with contextlib.suppress(RuntimeError):  # closed loop: nobody waits
            job.loop.call_soon_threadsafe(_settle, job.future, value, error, job.place)
        return following

    def close(self) -> None:
        """End the idle threads."""
        with self._lock:
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)


THREADS = Threads()
"""Those of this process."""


def limit_threads(most: object) -> None:
    """Limit the threads that run calls in this process.

    Args:
        most: as the settings say it; None: nothing changes.

    Raises:
        ConfigError: it is no whole number above 0.
    """
    if most is None:
        return
    text = str(most)
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise ConfigError(
            f"commands.threads: expected a whole number above 0, got {text[:40]!r}"
        )
    THREADS.most = int(text[:9])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREADS.forget)


def _begin(waits: asyncio.Future[None]) -> None:
    if not waits.done():
        waits.set_result(None)


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
