"""Engine protocol: run a command's untrusted code for a checked call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class TimeLimitReached(Exception):
    """Error: the command exceeded its time limit."""


class Engine(Protocol):
    """Engine that runs one command and passes its exceptions on unchanged."""

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
            positional: passed first, by position.
            arguments: passed by name.
            cancelled: set when the command must stop (time limit, Ctrl-C); None: the
                command cannot observe it.
            is_async: `function` returns an awaitable.
            blocking: False: a `def` that returns at once and needs no thread.
            seconds: the time limit; None: none.

        Raises:
            TimeLimitReached: it did not end in time; its thread may still run.
        """
        ...

    def close(self) -> None:
        """Stop idle workers."""
        ...
