"""Daemon threads for commands that block: bounded, reused, shared by all sessions.

asyncio's own pool has cores + 4 threads, so ten calls of 50 ms take 100 ms on two
cores, and a hanging thread of `concurrent.futures` prevents the process from ending.
All sessions of a process share the threads: a service makes a session per request.
Calls beyond the limit wait in a queue, but calls made inside a command do not: its
thread waits for them, so this could deadlock.
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
"""Seconds after which an idle thread ends."""
MOST = 256
"""Default maximum of calls that have a thread at the same time."""

_IS_INSIDE: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "neuraxis_inside_of_a_thread", default=False
)


class Job:
    """One function that a thread runs, or will run."""

    __slots__ = (
        "bounded", "context", "function", "future", "given_up", "loop", "queued",
        "slot",
    )  # fmt: skip

    def __init__(self, function: Callable[[], Any], *, bounded: bool) -> None:
        self.function = function
        self.bounded = bounded
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.queued: asyncio.Future[None] | None = None
        """Set when a thread starts the job; None: it did not have to wait."""
        self.given_up = False
        """Whether its caller has stopped waiting; then it does not start."""
        self.context = contextvars.copy_context()
        self.context.run(_IS_INSIDE.set, True)
        self.slot: Slot | None = SLOT.get()
        if self.slot is not None:
            self.slot.thread_started()
            self.context.run(SLOT.set, None)  # calls inside a command use no slot

    def is_wanted(self) -> bool:
        """Return whether its caller still waits for it."""
        return not self.given_up and not self.future.cancelled()


class Threads:
    """Thread pool in which a nested call never waits."""

    def __init__(self, limit: int = MOST) -> None:
        self.limit = limit
        self.reset()

    def reset(self) -> None:
        """Forget all threads, as after a fork."""
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
            function: the function to run.
            bounded: whether it waits while the maximum of threads is busy. Calls inside
                a command never wait.

        Raises:
            RuntimeError: the system has no more threads, and none is busy.
        """
        job = Job(function, bounded=bounded and not _IS_INSIDE.get())
        with self._lock:
            if job.bounded and self._busy >= self.limit:
                job.queued = job.loop.create_future()
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
            except RuntimeError:  # the system has no more threads
                self._queue_or_raise(job)
                return job
        inbox.put(job)
        return job

    def _queue_or_raise(self, job: Job) -> None:
        """Queue a job without a thread; raise if no thread is busy."""
        with self._lock:
            self._busy -= job.bounded
            if job.bounded and self._busy:
                job.queued = job.loop.create_future()
                self._waiting.append(job)
                return
        if job.slot is not None:
            job.slot.thread_ended()
        raise

    def give_up(self, job: Job) -> None:
        """Drop a job whose caller has stopped waiting."""
        job.given_up = True
        with self._lock:
            try:
                self._waiting.remove(job)
            except ValueError:
                return  # a thread runs it
        if job.slot is not None:
            job.slot.thread_ended()

    def _work(self, inbox: queue.SimpleQueue[Job | None]) -> None:
        while True:
            try:
                job = inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                # just taken from the idle list: a job follows
                job = inbox.get()
            if job is None:
                return
            while job is not None:
                job = self._run(job, inbox)

    def _run(self, job: Job, inbox: queue.SimpleQueue[Job | None]) -> Job | None:
        """Run a job and return the next queued one, if any."""
        value: Any = None
        error: BaseException | None = None
        queued = job.queued
        if queued is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                job.loop.call_soon_threadsafe(_begin, queued)
        try:
            # skip a job that was abandoned before it started
            value = job.context.run(job.function) if job.is_wanted() else None
        except BaseException as raised:  # noqa: BLE001 - raised to the caller
            error = raised
        next_job: Job | None = None
        with self._lock:
            self._busy -= job.bounded
            if self._waiting and self._busy < self.limit:
                next_job = self._waiting.popleft()
                self._busy += 1
            else:
                self._idle.append(inbox)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            job.loop.call_soon_threadsafe(_settle, job.future, value, error, job.slot)
        return next_job

    def close(self) -> None:
        """Stop the idle threads."""
        with self._lock:
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)


THREADS = Threads()
"""Threads of this process."""


def limit_threads(limit: object) -> None:
    """Limit the threads that run calls in this process.

    Args:
        limit: the setting's value; None: nothing changes.

    Raises:
        ConfigError: it is not a whole number above 0.
    """
    if limit is None:
        return
    text = str(limit)
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise ConfigError(
            f"commands.threads: expected a whole number above 0, got {text[:40]!r}"
        )
    THREADS.limit = int(text[:9])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREADS.reset)


def _begin(queued: asyncio.Future[None]) -> None:
    if not queued.done():
        queued.set_result(None)


def _settle(
    future: asyncio.Future[Any],
    value: Any,
    error: BaseException | None,
    slot: Slot | None,
) -> None:
    if slot is not None:
        slot.thread_ended()
    if future.done():  # cancelled by the time limit or the user
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, SystemExit):
        # a command written as a script: it must not end the session
        ended = RuntimeError(f"the command called sys.exit({error.code!r})")
        ended.__cause__ = error
        future.set_exception(ended)
    elif isinstance(error, StopIteration | GeneratorExit):
        # a future refuses StopIteration, and GeneratorExit would end the coroutine that
        # awaits it; a command that leaks one has a bug
        kind = type(error).__name__
        future.set_exception(RuntimeError(f"the command raised {kind}"))
    else:
        future.set_exception(error)
