"""Guard a caller's `watch` function, which sees events as they happen.

The function is the program's own and may raise. That ends the run, and the caller gets
the exception unchanged. It must not count as a failure of the reported command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from neuraxis.errors import StorageError
from neuraxis.events import Event

Watch = Callable[[Event], None]
"""Function that sees every event as it happens."""


class WatchFailed(StorageError):
    """Exception of a `watch`; ends the run, as a broken journal does."""

    def __init__(self, watch: Watch, raised: Exception) -> None:
        super().__init__(f"what watches the run raised {raised!r}")
        self.watch = watch
        self.raised = raised

    def seen_by(self, watch: Watch | None) -> Exception:
        """Return the exception that the caller with this `watch` gets.

        It is what its own `watch` raised. That of an outer session's ends that session,
        too.
        """
        return self.raised if self.watch is watch else self


def guard_watch(watch: Watch | None) -> Watch | None:
    """Return a `watch` whose exceptions become `WatchFailed`."""
    if watch is None:
        return None

    def guarded(event: Event) -> None:
        try:
            watch(event)
        except WatchFailed:
            raise
        except Exception as raised:
            raise WatchFailed(watch, raised) from raised

    return guarded


def watch_in_cell() -> Callable[[Event], None] | None:
    """Return a `watch` that shows a run's status; None: no notebook."""
    # IPython is never imported here: a notebook has imported it already
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Any = sys.modules["IPython.display"]
    from neuraxis.session.html.cell import StatusLine

    return StatusLine(display).show_event
