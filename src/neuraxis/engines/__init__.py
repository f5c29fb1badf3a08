"""Engine protocol: run a command's untrusted code for a checked call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class TimeLimitReached(Exception):
    """The command did not end within its time limit.

    Args:
        still_running: whether it still runs after it was asked to stop.
    """

    def __init__(self, *, still_running: bool = False) -> None:
        super().__init__("the command did not end within its seconds")
        self.still_running = still_running


class NoThreadFree(Exception):
    """The command did not start: no thread was free in time."""


GIVEN_UP = "the command goes on all the same"
"""Argument of the `CancelledError` of a call whose command did not end.

It is no subclass: `asyncio.timeout` and task groups recognise only `CancelledError`
itself as their own cancellation.
"""


class Engine(Protocol):
    """Engine that runs commands and raises their exceptions unchanged."""

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
        """Run a command and return its value.

        Args:
            function: the command's code.
            positional: positional arguments.
            arguments: keyword arguments.
            cancelled: set when the command must stop (time limit, Ctrl-C); None: the
                command cannot observe it.
            is_async: `function` returns an awaitable.
            blocking: False: a `def` that returns at once and needs no thread.
            seconds: the time limit; None: none.

        Raises:
            TimeLimitReached: the command did not end in time.
            NoThreadFree: the command did not start, since all threads were busy.
            asyncio.CancelledError: the caller was cancelled; with `GIVEN_UP` if the
                command did not end.
        """
        ...

    def close(self) -> None:
        """Stop idle workers."""
        ...
