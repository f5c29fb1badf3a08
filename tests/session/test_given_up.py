"""Commands that do not stop: the session goes on, and says what is true of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Budget, Session, command, run_many
from neuraxis.engines import in_process
from neuraxis.errors import NoAnswer
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
        assert "It may still take effect" in first.error.message
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


async def test_R7_the_log_names_the_command_that_ended_late(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever its arguments are converted by."""
    release, ended = threading.Event(), threading.Event()

    @command(effects="once", time_limit=0.05)
    def pay(day: date) -> None:
        """Pay."""
        release.wait(20)
        ended.set()

    with Session(model=ScriptedModel([]), plugins=[pay], workspace=tmp_path) as session:
        arguments: Any = {"day": "2026-01-31"}
        call = Call(id="1", plugin=None, command="pay", arguments=arguments)
        assert (await session.call(call)).status == "failed"
        release.set()
        await asyncio.to_thread(ended.wait, 10)
        await asyncio.sleep(0.05)
    assert "pay returned" in caplog.text
    assert "_converting" not in caplog.text


@pytest.mark.parametrize("way", ["sync", "await", "wait_for", "events"])
def test_R7_the_runs_seconds_end_a_deaf_def_with_an_answer(
    tmp_path: Path, way: str
) -> None:
    """Its outcome is `budget`, in every way to run: nothing is raised."""
    release = threading.Event()

    @command(effects="read")
    def deaf() -> None:
        """Does not listen."""
        release.wait(20)

    with Session(
        ScriptedModel(['[{"tool": "deaf"}]', "never asked"]),
        plugins=[deaf],
        workspace=tmp_path,
        budget=Budget(seconds=0.1),
    ) as session:

        async def asked() -> Answer[Any] | None:
            run = session.run("q")
            if way == "await":
                return await run
            if way == "wait_for":
                return await asyncio.wait_for(run, 20)
            async for _ in run:
                pass
            return run.answer

        answer = session.run_sync("q") if way == "sync" else asyncio.run(asked())
        release.set()
    assert answer is not None
    assert answer.outcome == "budget"
    assert "longer than 0.1 seconds" in answer.error


@pytest.mark.parametrize(("tool", "said"), [("pay", "what pay (a1) did"), ("look", "")])
def test_a_call_that_the_runs_seconds_end_is_in_the_answer(
    tool: str, said: str, tmp_path: Path
) -> None:
    """The money may be gone: the program is told, and what it raises says so."""

    @command(effects="read")
    async def look() -> str:
        """Looks."""
        await asyncio.sleep(20)
        return "seen"

    @command(effects="once")
    async def pay() -> str:
        """Pays."""
        await asyncio.sleep(20)
        return "paid"

    with Session(
        ScriptedModel([json.dumps([{"tool": tool}, {"tool": "pay"}]), "never asked"]),
        plugins=[look, pay],
        workspace=tmp_path,
        budget=Budget(seconds=0.1),
    ) as session:
        answer = session.run_sync("q")
    assert [each.error and each.error.code for each in answer.calls] == ["cancelled"]
    assert answer.calls[0].call.command == tool
    assert answer.error.startswith("the run took longer than 0.1 seconds")
    assert ("not known" in answer.error) is bool(said)
    assert said in answer.error
    with pytest.raises(NoAnswer, match=re.escape(answer.error)):
        answer.check()


async def test_R7_one_slow_row_ends_no_batch(tmp_path: Path) -> None:
    """The other rows are answered."""
    release = threading.Event()

    @command(effects="read")
    def wait(row: int) -> int:
        """Does not listen in row 1."""
        if row == 1:
            release.wait(20)
        return row

    def make(row: int) -> Session:
        replies = [f'[{{"tool": "wait", "row": {row}}}]', "done"]
        return Session(
            ScriptedModel(replies),
            plugins=[wait],
            workspace=tmp_path,
            budget=Budget(seconds=0.3),
        )

    ended = [each async for each in run_many(make, range(3), request=str, at_once=1)]
    release.set()
    assert [each.answer.outcome for each in ended] == ["answered", "budget", "answered"]
