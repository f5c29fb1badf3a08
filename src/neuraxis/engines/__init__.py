"""Where commands run: the seam between a checked call and foreign code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class TimeLimitReached(Exception):
    """The command did not end within its seconds."""


class Engine(Protocol):
    """Runs one command. What the command raises comes out unchanged."""

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
        """The command's value.

        Args:
            function: the command's code.
            positional: passed first, by position.
            arguments: passed by name.
            cancelled: set when the command is to stop (time limit, Ctrl-C); None: it
                cannot hear it.
            is_async: `function` gives an awaitable.
            blocking: False: a `def` that returns at once; no thread is paid for it.
            seconds: the time limit; None: none.

        Raises:
            TimeLimitReached: it did not end in time; its thread may still run.
        """
        ...

    def close(self) -> None:
        """Let go of idle workers."""
        ...
