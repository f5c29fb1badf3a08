"""A run in the hands of who started it: its events come when they happen."""

from __future__ import annotations

import asyncio
import threading

import pytest

from neuraxis import Context, Session, command
from neuraxis.events import CallFinished, CallProgress, Event
from neuraxis.policy import EVERYTHING
from neuraxis.testing import ScriptedModel


@pytest.mark.parametrize("debug", [False, True])
def test_progress_of_a_thread_is_heard_while_it_runs(debug: bool) -> None:
    """The command goes on only after its progress was seen."""
    seen = threading.Event()

    @command(effects="read")
    def works(context: Context) -> bool:
        """Tells that it works."""
        context.progress("half of it", 0.5)
        return seen.wait(5)

    model = ScriptedModel(['[{"tool": "works"}]', "done"])
    session = Session(model=model, plugins=[works], policy=EVERYTHING)

    async def watch() -> list[Event]:
        events: list[Event] = []
        async for event in session.run("go"):
            events.append(event)
            if isinstance(event, CallProgress):
                seen.set()
        return events

    events = asyncio.run(asyncio.wait_for(watch(), 20), debug=debug)
    kinds = CallProgress | CallFinished
    told = [event for event in events if isinstance(event, kinds)]
    assert [type(event) for event in told] == [CallProgress, CallFinished]
    assert isinstance(told[1], CallFinished)
    assert told[1].value is True
