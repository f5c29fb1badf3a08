"""Guard a caller's `watch` function, which sees events as they happen.

The function is the program's own and may raise. That ends the run, and the caller gets
the exception unchanged. It must not count as a failure of the reported command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from neuraxis.errors import StorageError
from neuraxis.events import Event

Watch = Callable[[Event], None]
"""Function that sees every event as it happens."""


class _WatchFailed(StorageError):
    """Exception of a `watch`; ends the run, as a broken journal does."""

    def __init__(self, watch: Watch, raised: Exception) -> None:
        super().__init__(f"what watches the run raised {raised!r}")
        self.watch = watch
        self.raised = raised


def guard_watch(watch: Watch | None) -> Watch | None:
    """Return a `watch` whose exceptions become `_WatchFailed`."""
    if watch is None:
        return None

    def guarded(event: Event) -> None:
        try:
            watch(event)
        except _WatchFailed:
            raise
        except Exception as raised:
            raise _WatchFailed(watch, raised) from raised

    return guarded


@contextmanager
def reraise_watch_errors(watch: Watch | None) -> Generator[None]:
    """Raise the exception of the caller's own `watch` unchanged.

    The exception of an outer session's `watch` ends that session, too.
    """
    try:
        yield
    except _WatchFailed as failed:
        if failed.watch is watch:
            raise failed.raised from None
        raise


def watch_in_cell() -> Callable[[Event], None] | None:
    """Return a `watch` that shows a run's status; None: no notebook."""
    # IPython is never imported here: a notebook has imported it already
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Any = sys.modules["IPython.display"]
    from neuraxis.session.html.cell import StatusLine

    return StatusLine(display).show_event
