"""Cancellation of one call, by its time limit or the run."""

from __future__ import annotations

import threading


class CallCancellation(threading.Event):
    """Cancellation flag of one call: its own, or that of the run."""

    def __init__(self, run: threading.Event) -> None:
        super().__init__()
        self._run = run
        self.over = False
        """Whether the command has ended, or was abandoned."""

    def is_set(self) -> bool:
        """Return whether this call, or the whole run, was stopped."""
        return self._run.is_set() or super().is_set()
