"""A run that is stopped while it asks: the call that it asks about was not begun."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from neuraxis import Session, command
from neuraxis.events import ApprovalAsked, CallFinished, CallStarted, Event
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import Policy, Rule

done: list[str] = []


@command(effects="once")
def pay(to: str) -> str:
    """Pay somebody."""
    done.append(to)
    return "paid"


async def test_a_call_that_was_asked_about_was_not_begun(tmp_path: Path) -> None:
    """Ctrl-C at the question: neither person nor model is told that it may be done."""
    asked = asyncio.Event()
    events: list[Event] = []

    async def approve(question: ApprovalAsked) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    model = ScriptedModel([json.dumps([{"tool": "pay", "to": "ann"}]), "ok"])
    with Session(
        model,
        plugins=[pay],
        workspace=tmp_path / "w",
        policy=Policy(rules=[Rule(verdict="ask", target="*.pay")]),
        approve=approve,
    ) as session:
        running = asyncio.create_task(session.drive("pay ann", events.append))
        await asked.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert not any(isinstance(event, CallStarted) for event in events)
        (end,) = [event for event in events if isinstance(event, CallFinished)]
        assert isinstance(end.error, dict)
        message = str(end.error["message"])
        assert "pay was not run: the run was cut off before it" in message
        await session.run("and now?")
        told = str([message.content for message in model.prompts[-1].messages])
        assert "may have done its work" not in told
    assert done == []
