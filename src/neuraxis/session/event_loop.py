"""An event loop for code that has none: coroutines flow in, what they give flows out.

`asyncio.run` makes a loop and throws it away each time, which costs more than a whole
run of a session does. This one is kept from run to run. It is only kept while it is
idle and nobody could be hurt by it: it is closed with its session, when the session is
forgotten, at the end of the process, and before the process is forked.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import weakref
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

# What the functions of `signal` are around: those look up a name for each handler,
# which takes as long as all else here.
_set_handler: Any = getattr(signal.signal, "__wrapped__", signal.signal)
_handler: Any = getattr(signal.getsignal, "__wrapped__", signal.getsignal)

_kept: weakref.WeakSet[OwnLoop] = weakref.WeakSet()
"""Those that may have a loop, for the moment before a fork."""


class OwnLoop:
    """Runs coroutines to their end, one after another; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._forgotten: weakref.finalize[..., OwnLoop] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives. No task is left behind; Ctrl-C cancels it.

        Raises:
            RuntimeError: this thread runs a loop already.
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        if _runs_a_loop():
            work.close()
            raise RuntimeError(
                "run_sync cannot be called where an event loop is running, as in "
                "Jupyter and in async functions; there: answer = await session.run(...)"
            )
        if not self._lock.acquire(blocking=False):
            return asyncio.run(work)  # another thread has it
        try:
            loop = self._loop
            if loop is None:
                loop = self._loop = asyncio.new_event_loop()
                _kept.add(self)
                # holds the loop and not this object, so that it may be forgotten
                self._forgotten = weakref.finalize(self, _close, loop)
            try:
                return _run(loop, work)
            finally:
                _cancel_what_is_left(loop)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Let go of the loop; it is made again when it is needed again."""
        if not self._lock.acquire(blocking=False):
            return  # it runs
        try:
            loop, self._loop = self._loop, None
            if loop is None:
                return
            if self._forgotten is not None:
                self._forgotten.detach()
            if not _runs_a_loop():
                loop.run_until_complete(loop.shutdown_asyncgens())
            # which does not wait for threads: a command may have left one that hangs
            loop.close()
        finally:
            self._lock.release()


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.Runner.run`, whose handler is slow to put in place."""
    task = loop.create_task(work)
    pressed = False

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed or task.done():
            raise KeyboardInterrupt
        pressed = True
        task.cancel()
        loop.call_soon_threadsafe(_wake)  # it may wait for something else

    handled = (
        threading.current_thread() is threading.main_thread()
        and _handler(signal.SIGINT) is signal.default_int_handler
    )
    if handled:
        try:
            _set_handler(signal.SIGINT, on_interrupt)
        except ValueError:  # not the main interpreter
            handled = False
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError:
        if pressed and task.uncancel() == 0:
            raise KeyboardInterrupt from None
        raise
    finally:
        if handled:
            last = _set_handler(signal.SIGINT, signal.default_int_handler)
            if last is not on_interrupt and last is not None:
                # a command put its own in place
                _set_handler(signal.SIGINT, last)


def _wake() -> None:
    """Does nothing: the loop looks up."""


def _cancel_what_is_left(loop: asyncio.AbstractEventLoop) -> None:
    """End the tasks that nobody awaited, as `asyncio.run` does."""
    left = asyncio.all_tasks(loop)
    if not left:
        return
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.wait(left))
    for task in left:
        if not task.cancelled() and (error := task.exception()) is not None:
            loop.call_exception_handler(
                {
                    "message": "unhandled exception while a run's tasks were ended",
                    "exception": error,
                    "task": task,
                }
            )


def _close(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_running():
        loop.close()


def _close_all() -> None:
    """A child must not share what a loop waits on with its parent."""
    for own in list(_kept):
        own.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)
