"""Cancellation of a run, and of one call in it."""

from __future__ import annotations

import threading

from msgspec import Struct


class RunCancellation(Struct):
    """Cancellation flag of one run."""

    stopped: bool = False


class CallCancellation(threading.Event):
    """Cancellation flag of one call; also set if its run was stopped."""

    def __init__(self, run: RunCancellation) -> None:
        super().__init__()
        self._run = run
        self.over = False
        """Whether the command has ended, or was abandoned."""

    def is_set(self) -> bool:
        """Return whether this call, or the whole run, was stopped."""
        return self._run.stopped or super().is_set()
