"""Commands that do not stop: the session goes on, and says what is true of them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest

from neuraxis import Session, command
from neuraxis.engines import in_process
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel


async def test_R3_a_session_goes_on_after_a_command_that_swallows_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is told that it still runs, and the next call is answered."""
    monkeypatch.setattr(in_process, "CLEAN_UP_SECONDS", 0.05)
    release = asyncio.Event()

    @command(effects="idempotent", time_limit=0.1)
    async def stubborn() -> str:
        """Does not stop."""
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return "late"

    @command(effects="read")
    async def other() -> str:
        """Answers."""
        return "here"

    with Session(
        model=ScriptedModel([]), plugins=[stubborn, other], workspace=tmp_path
    ) as session:
        first = await asyncio.wait_for(
            session.call(Call(id="1", plugin=None, command="stubborn")), 10
        )
        assert first.error is not None
        assert first.error.code == "timeout"
        assert "is still running" in first.error.message
        assert "It may still do its work" in first.error.message
        assert "was stopped" not in first.error.message
        second = await session.call(Call(id="2", plugin=None, command="other"))
        assert second.value == "here"
        release.set()
        await asyncio.sleep(0.05)
        assert first.value is None


async def test_R7_a_cancelled_def_that_runs_on_is_told_as_running(
    tmp_path: Path,
) -> None:
    """Not as stopped: a thread that does not listen cannot be."""
    release, begun = threading.Event(), threading.Event()

    @command(effects="read")
    def deaf() -> None:
        """Does not listen."""
        begun.set()
        release.wait(20)

    told: list[str] = []

    def watch(event: object) -> None:
        error = getattr(event, "error", None)
        if isinstance(error, dict):
            told.append(str(error["message"]))

    with Session(
        model=ScriptedModel([]), plugins=[deaf], workspace=tmp_path
    ) as session:
        running = asyncio.ensure_future(
            session.call(Call(id="1", plugin=None, command="deaf"), watch=watch)
        )
        await asyncio.to_thread(begun.wait, 10)
        running.cancel()
        done, _ = await asyncio.wait((running,), timeout=5)
        release.set()
    assert done
    assert running.cancelled()
    assert len(told) == 1
    assert "still running" in told[0]
