"""one Protocol Cancellation; no threading.Event without its __init__."""

from __future__ import annotations

import threading


class Stopped(threading.Event):
    """Whether a run was stopped; what waiting for it takes is made when one waits."""

    def __init__(self) -> None:
        self._is_set = False  # and nothing of Event's own: this is cheap
        self._heard: threading.Event | None = None

    def is_set(self) -> bool:
        """Whether the run was stopped."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run is stopped."""
        with _MAKING:
            heard = self._heard = self._heard or threading.Event()
        # `set` says so first and looks then who waits: one of the two sees the other
        return self._is_set or heard.wait(timeout)

    def set(self) -> None:
        """Stop the run."""
        self._is_set = True
        if self._heard is not None:
            self._heard.set()

    def clear(self) -> None:
        """A run that was stopped stays so."""


_MAKING = threading.Lock()


class Unheard(threading.Event):
    """For a command that cannot hear it: its time limit must not stop the others."""

    def __init__(self, run: threading.Event) -> None:
        self._run = run  # and nothing of Event's own: this is cheap

    def is_set(self) -> bool:
        """Whether the whole run was stopped."""
        return self._run.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the whole run is stopped."""
        return self._run.wait(timeout)

    def set(self) -> None:
        """Nobody hears it."""

    def clear(self) -> None:
        """There is nothing to take back."""


class Linked(threading.Event):
    """Set for one call by its time limit, or for all by the run."""

    def __init__(self, run: threading.Event) -> None:
        super().__init__()
        self._run = run
        self.over = False
        """Whether the command has ended, or was given up."""

    def is_set(self) -> bool:
        """Whether this call, or the whole run, was stopped."""
        return self._run.is_set() or super().is_set()
