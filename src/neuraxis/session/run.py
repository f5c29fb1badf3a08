"""A run of a session, which the caller awaits or watches live.

A `Run` begins once. When it has ended, its answer may be awaited again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic

from msgspec.structs import replace

from neuraxis.errors import SessionBusy, StorageError
from neuraxis.events import Event
from neuraxis.models import Model
from neuraxis.models.accumulate import close_model
from neuraxis.session.answer import Answer, Out
from neuraxis.session.watch import Watch, guard_watch, watch_in_cell

AnswerRequest = Callable[[str, Watch | None], Awaitable[Answer[Out]]]
"""Function that answers a request, and may be watched."""
EndingTasks = set[asyncio.Task[Any]]
"""Abandoned tasks of a session's runs, until they have ended."""


class RunLock:
    """Lock of a session: it answers one request at a time."""

    def __init__(self) -> None:
        self._taken = threading.Lock()
        self._ending = threading.Lock()
        """Held while it is released, so that postponed work is done once."""
        self._postponed: Callable[[], None] | None = None
        self.watch: Watch | None = None
        self.unwritten = ""
        """Why the end of the request could not be written to the journal."""
        self.left: EndingTasks = set()

    @property
    def busy(self) -> bool:
        """Return whether a request is being answered."""
        return self._taken.locked()

    def begin(self, session: str, watch: Watch | None, *, is_inside: bool) -> None:
        """Acquire the lock, until `end`.

        In a notebook's cell a run that nobody watches shows its status, unless it
        `is_inside` a command.

        Raises:
            SessionBusy: another request holds it.
        """
        if not self._taken.acquire(blocking=False):
            raise SessionBusy(
                f"session {session} is already answering a request; wait for it, or "
                "make another session"
            )
        if watch is None and not is_inside:
            watch = watch_in_cell()
        self.watch, self.unwritten = guard_watch(watch), ""

    def end(self) -> None:
        """Release the lock, and run the postponed work."""
        self.watch = None
        with self._ending:
            postponed, self._postponed = self._postponed, None
            self._taken.release()
        if postponed is not None:
            with contextlib.suppress(StorageError):  # the answer reports it
                postponed()

    def with_write_error(self, answer: Answer[Out]) -> Answer[Out]:
        """Return the answer, with the error if the journal failed."""
        if not self.unwritten:
            return answer
        return replace(answer, error=answer.error or self.unwritten)

    def leave(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task in this loop; the next run waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self.left.add(task)
        task.add_done_callback(self.left.discard)

    def postpone(self, work: Callable[[], None]) -> bool:
        """Postpone `work` if a request is being answered; return whether it is."""
        with self._ending:
            busy = self.busy
            if busy:
                self._postponed = work
        return busy


async def wait_for_ended(left: EndingTasks) -> None:
    """Wait for the abandoned tasks of this loop."""
    this_loop = asyncio.get_running_loop()
    ending = [task for task in left if task.get_loop() is this_loop]
    if ending:
        await asyncio.wait(ending)


async def run_in_loop(
    drive: AnswerRequest[Out],
    text: str,
    watch: Watch | None,
    lock: RunLock,
    model: Model,
) -> Answer[Out]:
    """Answer a request in its own loop; close the model's connections."""
    busy = lock.busy  # in another thread, whose connections are in use
    try:
        return await drive(text, watch)
    finally:
        if not busy:
            await close_model(model)  # its connections belong to this loop
        await wait_for_ended(lock.left)


async def await_all(works: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """Await all in order, even if one of them raises."""
    async with contextlib.AsyncExitStack() as after:
        for work in works:
            after.push_async_callback(_awaited, work)


async def _awaited(work: Coroutine[Any, Any, Any]) -> None:
    await work


def check_open(claim: weakref.finalize[..., Any], session: str) -> None:
    """Check that a session is open.

    Raises:
        StorageError: the session was closed.
    """
    if not claim.alive:
        raise StorageError(
            f"session {session} was closed; make another Session. If its journal is on "
            f"disk, Session.open({session!r}, journal=…) continues it"
        )


class Run(Generic[Out]):
    """One run: `await` it for the answer, or `async for` its events.

    A task takes it as it takes a coroutine: `asyncio.create_task(session.run(...))`.
    You can do both: awaiting a run after watching its events returns the answer of the
    same run. Leaving the `async for` early ends the run. While the session answers
    another request, both raise `SessionBusy`.
    """

    def __init__(self, drive: AnswerRequest[Out], text: str, left: EndingTasks) -> None:
        self._drive_with = drive
        self._text = text
        self._left = left
        self._begun = False
        self._is_known = False
        """Whether the caller was warned that the run must be awaited."""
        self._task: asyncio.Task[Answer[Out]] | None = None
        self._driven: dict[Any, Coroutine[Any, Any, Answer[Out]]] = {}
        """What each task drives that took the run as its coroutine."""
        self.answer: Answer[Out] | None = None
        """The answer, once the run has ended."""

    def __repr__(self) -> str:
        # an error or a print shows this repr, which says what to do
        self._is_known = True
        return (
            f"<a run of {self._text!r:.40}: in async code `await` it, or `async for` "
            "its events; elsewhere use session.run_sync>"
        )

    def __del__(self) -> None:
        if not (self._begun or self._is_known):  # as for a coroutine
            text = f"the run of {self._text!r:.40} was never awaited: nothing was done"
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)

    # at run time, for users without a type checker who take a run for its answer
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in Answer.__struct_fields__:
                raise AttributeError(f"{name!r} is the answer's; this is {self!r}")
            raise AttributeError(f"a Run has no {name!r}")

        def __iter__(self) -> Any:
            raise TypeError(f"this is {self!r}")

    def __await__(self) -> Generator[Any, None, Answer[Out]]:
        return self._ended().__await__()

    # a task takes what has these three for a coroutine; each task has its own, so that
    # the second one is told that the run was begun

    def send(self, value: Any, /) -> Any:
        """Go on to the next wait, as a coroutine does."""
        return self._go_on("send", value)

    def throw(self, raised: BaseException, /) -> Any:
        """Raise an exception in the run, such as its task's cancellation."""
        return self._go_on("throw", raised)

    def close(self) -> None:
        """End what tasks drive; a run that did not begin does nothing."""
        self._is_known = True
        while self._driven:
            self._driven.popitem()[1].close()

    def _go_on(self, how: str, given: Any) -> Any:
        self._is_known, task = True, asyncio.current_task()
        work = self._driven.get(task) or self._ended()
        self._driven[task] = work
        try:
            return getattr(work, how)(given)
        except BaseException:  # also its end, which is a `StopIteration`
            self._driven.pop(task, None)
            raise

    async def _ended(self) -> Answer[Out]:
        if self.answer is not None:
            return self.answer
        if self._task is not None:
            # a cancelled waiter must not stop the run: others may await it
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                return self._task.result()
        return await self.drive(None)

    async def drive(self, watch: Watch | None) -> Answer[Out]:
        """Return the answer; `watch` sees every event as it happens."""
        self._begin()
        return await self._answered(watch)

    def _begin(self) -> None:
        if self._begun:
            raise RuntimeError(
                f"the run of {self._text!r:.40} was begun already, and is not run "
                "twice; session.run(...) makes another"
            )
        self._begun = True

    async def _answered(self, watch: Watch | None) -> Answer[Out]:
        # only one run at a time: an abandoned run may still be ending
        if self._left:
            await wait_for_ended(self._left)
        self.answer = await self._drive_with(self._text, watch)
        return self.answer

    def __aiter__(self) -> EventStream:
        self._begin()
        stream = EventStream(self._answered, self._left)
        self._task = stream.task
        return stream


class EventStream:
    """Stream of a run's events; leaving the `async for` ends the run.

    Not an async generator: after `break`, a generator ends only when the event loop
    reaches it, and the next line may start another run.
    """

    def __init__(
        self,
        answered: Callable[[Watch], Coroutine[Any, Any, Answer]],
        left: EndingTasks,
    ) -> None:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        loop, thread_id = asyncio.get_running_loop(), threading.get_ident()

        def watch(event: Event) -> None:
            if threading.get_ident() == thread_id:
                queue.put_nowait(event)
                return
            # progress is reported in the command's thread, not in this loop's
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(queue.put_nowait, event)

        self._queue, self._loop, self._here, self._left = queue, loop, thread_id, left
        self._is_over = False
        self.task = asyncio.create_task(answered(watch))
        self.task.add_done_callback(lambda _: queue.put_nowait(None))

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        if self._is_over:
            raise StopAsyncIteration
        try:
            event = await self._queue.get()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if event is not None:
            return event
        self._is_over = True
        await self.task
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel the run, unless it has ended, and wait for it."""
        self._is_over = True
        if not self.task.done():
            _cancel(self.task, self._left)
            await asyncio.wait([self.task])

    def __del__(self) -> None:
        if self._is_over or self.task.done():
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            if threading.get_ident() == self._here:
                _cancel(self.task, self._left)
            else:
                self._loop.call_soon_threadsafe(_cancel, self.task, self._left)


def _cancel(task: asyncio.Task[Any], left: EndingTasks) -> None:
    left.add(task)
    task.add_done_callback(_retrieve_exception)
    task.add_done_callback(left.discard)
    task.cancel()


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # mark it as retrieved: asyncio would log a warning
