"""A loop that was cut off tells what ended: nothing finished is called unknown."""

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Budget, Policy, Rule, Session, command
from neuraxis.events import CallStarted
from neuraxis.models.scripted import ScriptedModel

KILLED = """
    import os, signal
    from pathlib import Path
    from neuraxis import Budget, Session, command
    from neuraxis.models.scripted import ScriptedModel

    @command(effects="read")
    def rows() -> list[dict]:
        "All rows."
        return [{{"id": i}} for i in range({count})]

    @command(effects="{kind}")
    def enrich(id: int) -> str:
        "Enrich."
        if id == {dies}:
            import time
            time.sleep(0.3)  # the journal writes the ends so far
            os.kill(os.getpid(), signal.SIGKILL)
        return "row %s fine" % id + "." * {long}

    loop = {{"tool": "enrich", "$for_each": "{{{{ r }}}}", "id": "{{{{ item['id'] }}}}",
            "$max_items": 1000}}
    import json
    plan = json.dumps([{{"tool": "rows", "as": "r"}}, loop])
    Session(
        ScriptedModel([plan]), plugins=[rows, enrich], id="s",
        journal=Path({folder!r}) / "j.db",
        budget=Budget(steps=1000, steps_per_tool=1000),
    ).run_sync("go")
"""


def kill(
    folder: Path, kind: str, *, count: int = 10, dies: int = 5, long: int = 0
) -> None:
    """Run a loop in another process, which is killed in one of its items."""
    filled = KILLED.format(
        folder=str(folder), kind=kind, count=count, dies=dies, long=long
    )
    code = textwrap.dedent(filled)
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL


def reopened(folder: Path, kind: Any, *replies: str) -> tuple[Session, list[str]]:
    """Return the session, and a list that gets what its model sees last."""
    seen: list[str] = []
    left = iter((*replies, "ok"))

    @command(effects="read")
    def rows() -> list[dict[str, int]]:
        """All rows."""
        return []

    @command(effects=kind)
    def enrich(id: int) -> str:
        """Enrich."""
        return f"row {id} again"

    @command(effects="none")
    def told(what: Any) -> Any:
        """Tell."""
        return what

    def reply(prompt: Any) -> str:
        seen.append(prompt.messages[-1].content)
        return next(left)

    given: Any = {"plugins": [rows, enrich, told], "journal": folder / "j.db"}
    return Session.open("s", model=ScriptedModel(reply), **given), seen


@pytest.mark.parametrize("kind", ["once", "idempotent"])
def test_report_a4_a_killed_loop_tells_its_items(tmp_path: Path, kind: str) -> None:
    """To the model, in `answer.calls`, and by reference."""
    kill(tmp_path, kind)
    session, seen = reopened(tmp_path, kind)
    with session:
        answer = session.resume_sync()
        unknown = [call.id for call in session.unknown_calls]
        kept = session.assets.root("a2")["content"]["response"]
    assert "Items 0 to 4 ended. How item 5 ended is not known" in seen[0]
    assert "Items 6 to 9 did not begin" in seen[0]
    rest = "[6:]" if kind == "once" else "[5:]"
    assert rest in seen[0]
    assert '"response":"row 4 fine"' in seen[0]
    rows, loop = answer.calls
    assert rows.status == "done"
    assert [entry["status"] for entry in loop.value] == ["done"] * 5 + ["failed"]
    assert loop.value[5]["error"]["code"] == "outcome_unknown"
    assert kept == loop.value
    assert loop.error is not None
    assert loop.error.code == ("outcome_unknown" if kind == "once" else "cancelled")
    assert unknown == (["a2.5"] if kind == "once" else [])
    again, _ = reopened(tmp_path, kind)
    with again:
        assert again.assets.root("a2")["content"]["response"] == kept


def test_report_a4_a_long_list_of_results_is_an_object(tmp_path: Path) -> None:
    """The prompt has its address; the answer has all of it."""
    kill(tmp_path, "idempotent", count=400, dies=300, long=200)
    session, seen = reopened(tmp_path, "idempotent")
    with session:
        answer = session.resume_sync()
    assert "Items 0 to 299 ended" in seen[0]
    assert "Items 301 to 399 did not begin" in seen[0]
    assert len(seen[0]) < 20_000
    assert '"asset_id":"a2"' in seen[0]
    assert len(answer.calls[1].value) == 301
    assert len(answer.asset("a2").value) == 301


def test_report_a4_the_order_of_the_conversation_stays(tmp_path: Path) -> None:
    """After a resume the results stand before the reply that saw them."""
    kill(tmp_path, "once")
    session, _ = reopened(tmp_path, "once")
    with session:
        session.resume_sync()
        live = [(item.role, item.content) for item in session.history]
    again, _ = reopened(tmp_path, "once")
    with again:
        assert [(item.role, item.content) for item in again.history] == live
    assert [role for role, _ in live] == ["user", "assistant", "user", "assistant"]


def looping(stop: Callable[[], None], budget: Budget | None = None) -> Session:
    """Return a session whose third item waits for ever."""

    @command(effects="once")
    async def enrich(id: int) -> str:
        """Enrich."""
        if id == 2:
            stop()
            await asyncio.sleep(60)
        return f"row {id} fine"

    plan = json.dumps(
        [{"tool": "enrich", "$for_each": [0, 1, 2, 3], "id": "{{ item }}"}]
    )
    return Session(ScriptedModel([plan, "ok"]), plugins=[enrich], budget=budget)


async def test_report_a4_a_stopped_loop_keeps_what_ended() -> None:
    """Also in this process: a limit, then `resume`."""
    with looping(lambda: None, Budget(seconds=0.3)) as session:
        stopped = await session.run("go")
        assert stopped.outcome == "budget"
        (loop,) = stopped.calls
        assert [one["status"] for one in loop.value] == ["done", "done", "failed"]
        assert loop.error is not None
        assert "How item 2 ended is not known" in loop.error.message
        assert "Item 3 did not begin" in loop.error.message


async def test_report_a4_a_cancelled_loop_is_told_when_it_goes_on() -> None:
    """The task was cancelled, as where a client goes away."""
    with looping(lambda: task.cancel()) as session:

        async def run() -> None:
            await session.run("go")

        task = asyncio.create_task(run())
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await session.resume()
    (loop,) = answer.calls
    assert [one["status"] for one in loop.value] == ["done", "done", "failed"]
    told = session.history[-2].content
    assert "Items 0 to 1 ended. How item 2 ended is not known" in told


async def test_a_loop_over_a_command_of_unknown_outcome_asks() -> None:
    """The loop's own start is not taken for a person's word."""
    ran: list[int] = []

    @command(effects="once")
    async def pay(n: int) -> int:
        """Pay."""
        ran.append(n)
        if n == 1:
            task.cancel()
            await asyncio.sleep(60)
        return n

    first = '[{"tool": "pay", "n": 1}]'
    loop = '[{"tool": "pay", "$for_each": [2, 3], "n": "{{ item }}"}]'
    model = ScriptedModel([first, loop, "ok"])
    with Session(model, plugins=[pay], policy=Policy(yes_to=["*"])) as session:

        async def run() -> None:
            await session.run("go")

        task = asyncio.create_task(run())
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await session.run("go on")
        assert [call.id for call in session.unknown_calls] == ["a1"]
    assert ran == [1]
    assert answer.calls[0].status == "failed"


async def test_a_loop_of_a_plan_that_waited_keeps_what_ended(tmp_path: Path) -> None:
    """Approved, stopped in the middle, and resumed: no item runs twice."""
    ran: list[int] = []

    @command(effects="once")
    async def pay(n: int) -> int:
        """Pay."""
        ran.append(n)
        if n == 2:
            task.cancel()
            await asyncio.sleep(60)
        return n

    loop = '[{"tool": "pay", "$for_each": [1, 2, 3], "n": "{{ item }}"}]'
    more: Any = {
        "plugins": [pay],
        "journal": tmp_path / "j.db",
        "approve": "later",
        "policy": Policy(rules=[Rule(verdict="ask", target="pay.*")]),
    }
    with Session(ScriptedModel([loop]), id="s", **more) as session:
        await session.run("go")
        (question,) = session.pending()
        session.approve(question.id)

        async def resume() -> None:
            await session.resume()

        task = asyncio.create_task(resume())
        with pytest.raises(asyncio.CancelledError):
            await task
    with Session.open("s", model=ScriptedModel(["ok"]), **more) as session:
        answer = await session.resume()
    assert ran == [1, 2]
    (result,) = answer.calls
    assert [one["status"] for one in result.value][:2] == ["done", "failed"]


def test_events_tell_how_many_items_a_loop_has() -> None:
    """`items` of its start; an item and a call of its own have none."""
    begun: list[CallStarted] = []

    @command(effects="read")
    def look(n: int) -> int:
        """Look."""
        return n

    loop = '[{"tool": "look", "$for_each": [1, 2], "n": "{{ item }}"}]'
    with Session(ScriptedModel([loop, "ok"]), plugins=[look]) as session:
        session.run_sync(
            "go",
            lambda event: (
                begun.append(event) if isinstance(event, CallStarted) else None
            ),
        )
    assert [(one.id, one.items) for one in begun] == [
        ("a1", 2),
        ("a1.0", None),
        ("a1.1", None),
    ]
