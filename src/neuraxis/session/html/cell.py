"""Status line of a run in a notebook's cell."""

from __future__ import annotations

import time
from html import escape
from typing import Any

from neuraxis.events import (
    CallFinished,
    CallProgress,
    CallStarted,
    Event,
    ModelStarted,
    SessionFinished,
)

_PAUSE = 0.1
"""Seconds between two reports of progress that are shown."""


class StatusLine:
    """One line that is updated as the run proceeds."""

    def __init__(self, display: Any) -> None:
        self._html = display.HTML
        self._handle = display.display(self._html("…"), display_id=True)
        self._started, self._shown, self._steps = time.monotonic(), 0.0, 0

    def show_event(self, event: Event) -> None:
        """Show an event, if it changes the status."""
        match event:
            case ModelStarted():
                self._show(f"{event.model} is asked …")
            case CallStarted():
                self._show(f"{event.tool} …")
            case CallProgress() if time.monotonic() - self._shown > _PAUSE:
                self._show(event.message, event.fraction)
            case CallFinished() if not event.part_of:
                self._steps += 1
            case SessionFinished():
                seconds = time.monotonic() - self._started
                calls = "1 call" if self._steps == 1 else f"{self._steps} calls"
                self._show(f"{event.outcome}: {calls}, {seconds:.1f} s")
            case _:
                pass

    def _show(self, text: str, fraction: float | None = None) -> None:
        self._shown = time.monotonic()
        bar = "" if fraction is None else f'<progress value="{fraction}"></progress>'
        shown = f"<p>{escape(text[:200])} {bar}</p>"
        self._handle.update(self._html(shown))
