"""An event loop for synchronous callers, reused between calls of `run_sync`.

`asyncio.run` makes a loop each time, which costs more than a whole run of a session.
This one stays open while it is idle. It is closed with its session, when the session
is garbage-collected, at the end of the process, and before the process is forked.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

from neuraxis.errors import ConfigError

T = TypeVar("T")

_loops: weakref.WeakSet[SyncLoop] = weakref.WeakSet()
"""All instances whose loops must be closed before a fork."""


class SyncLoop:
    """Run coroutines to their end, one after another; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runner: asyncio.Runner | None = None
        self._finalizer: weakref.finalize[..., SyncLoop] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; its leftover tasks are cancelled.

        Raises:
            RuntimeError: this thread runs a loop already.
            KeyboardInterrupt: Ctrl-C was pressed; the coroutine was cancelled.
        """
        if _is_loop_running():
            work.close()
            raise RuntimeError(
                "run_sync cannot be called where an event loop is running, as in "
                "Jupyter and in async functions; there: answer = await session.run(...)"
            )
        if not self._lock.acquire(blocking=False):
            return asyncio.run(work)  # another thread uses the loop
        try:
            if self._runner is None:
                self._runner = asyncio.Runner()
                _loops.add(self)
                # refer to the runner: a reference to self would keep self alive
                self._finalizer = weakref.finalize(self, _close, self._runner)
            results: list[T] = []
            self._runner.run(_alone(work, results))
            return results[0]
        finally:
            asyncio.set_event_loop(None)  # an idle loop must not stay the current one
            self._lock.release()

    def close(self) -> None:
        """Close the loop; the next `run` makes another."""
        if not self._lock.acquire(blocking=False):
            return  # a coroutine still runs in it
        try:
            runner, self._runner = self._runner, None
            if runner is None:
                return
            if self._finalizer is not None:
                self._finalizer.detach()
            _close(runner)
        finally:
            self._lock.release()


def check_sync_close(closes_async: bool) -> None:
    """Refuse a synchronous close of async plugins in a running loop.

    Raises:
        ConfigError: a loop runs, and a plugin's `close` is an `async def`.
    """
    if closes_async and _is_loop_running():
        raise ConfigError(
            "session: the close() of a plugin is an `async def`, which in async code "
            "must be awaited: write `async with Session(...)`, or `await "
            "session.aclose()`"
        )


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _alone(work: Coroutine[Any, Any, T], results: list[T]) -> None:
    """Await `work`, then cancel its leftover tasks, as `asyncio.run` does.

    The result goes into `results`: `asyncio.Runner` writes out the `repr` of its task
    with the returned value, which may be all the rows of an answer.
    """
    try:
        results.append(await work)
    finally:
        loop = asyncio.get_running_loop()
        leftover = asyncio.all_tasks() - {asyncio.current_task()}
        for task in leftover:
            task.cancel()
        if leftover:
            await asyncio.wait(leftover)
        for task in leftover:
            if not task.cancelled() and (error := task.exception()) is not None:
                loop.call_exception_handler(
                    {
                        "message": "unhandled exception in a task that nobody awaited",
                        "exception": error,
                        "task": task,
                    }
                )


def _close(runner: asyncio.Runner) -> None:
    # not `Runner.close`, which waits for threads: a command may have left one hanging
    loop = runner.get_loop()
    if loop.is_running() or loop.is_closed():
        return
    if not _is_loop_running():
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _close_all() -> None:
    """Close all loops, before a fork shares their selectors with a child."""
    for loop in list(_loops):
        loop.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)
