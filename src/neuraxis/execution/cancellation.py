"""Cancellation of a run, and of one call in it."""

from __future__ import annotations

import threading

from msgspec import Struct


class RunCancellation(Struct):
    """Cancellation flag of one run; nobody waits for it."""

    stopped: bool = False


class CallCancellation(threading.Event):
    """Cancellation flag of one call: its own, or that of the run."""

    def __init__(self, run: RunCancellation) -> None:
        super().__init__()
        self._run = run
        self.over = False
        """Whether the command has ended, or was abandoned."""

    def is_set(self) -> bool:
        """Return whether this call, or the whole run, was stopped."""
        return self._run.stopped or super().is_set()
