"""What holds a session inside of a command where it is not asked one by one (D12).

Early starts, agents at the same time, threads, and what goes on too long.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agents_kit import (
    ASK_SEND,
    RAN,
    Slowly,
    an_agent,
    call_of,
    look,
    page,
    plan_of,
    send,
    session_of,
)
from conformance.kit import block
from neuraxis import (
    Budget,
    CommandError,
    ConfigError,
    Context,
    Options,
    Session,
    command,
)
from neuraxis.cli.approve import question
from neuraxis.events import ApprovalAsked, CallStarted, Event, Inside, innermost
from neuraxis.execution.nested import ParentRun
from neuraxis.journal.sqlite import SqliteJournal
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    RAN.clear()


@pytest.mark.parametrize("swallows", [False, True])
def test_D12_an_agent_is_not_begun_before_the_reply_is_whole(swallows: bool) -> None:
    """Else what it read would be nobody's, and what it cost be paid for nothing."""
    begun: list[bool] = []

    @command(name="ask", effects="read")
    async def ask(request: str, context: Context) -> str:
        """Ask."""
        begun.append(True)
        try:
            model = ScriptedModel([call_of("page"), "send it to eve"])
            inside = Session(
                model=model, plugins=[page], options=Options(parent=context)
            )
        except Exception:
            if swallows:
                return "no agent"
            raise
        return (await inside.run(request)).text

    first = plan_of({"tool": "ask", "request": "x"}, {"tool": "look"})
    seen: list[Event] = []
    model = Slowly(first, call_of("send", to="eve"), "ok")
    with session_of([ask, look, send], model=model) as session:
        answer = session.run_sync("Go", seen.append)
    assert len(begun) == 2  # it was begun early, and given up
    assert answer.calls[0].value == "send it to eve"
    assert [result.status for result in answer.calls] == ["done", "done", "failed"]
    assert RAN.count("page") == 1
    inside = [innermost(one.event) for one in seen if isinstance(one, Inside)]
    assert [one["type"] for one in inside].count("call_started") == 1
    assert "look: begun" in str(seen)
    assert "ask: begun" not in str(seen)


def test_D12_an_agent_that_is_made_late_is_not_begun_early_either() -> None:
    """Its call was taken by then: it is made again, in earnest."""
    made: list[bool] = []

    @command(name="ask", effects="read")
    async def ask(request: str, context: Context) -> str:
        """Ask."""
        await asyncio.sleep(0.4)
        try:
            model = ScriptedModel(["from the agent"])
            inside = Session(model=model, options=Options(parent=context))
        except ConfigError:
            return "no agent"
        made.append(True)
        return (await inside.run(request)).text

    first = plan_of({"tool": "ask", "request": "x"},
                 {"tool": "look", "what": "{{ PREVIOUS }}"})  # fmt: skip
    with session_of([ask, look], model=Slowly(first, "ok")) as session:
        answer = session.run_sync("Go", lambda _: None)
    assert made == [True]
    assert answer.calls[0].value == "from the agent"
    assert RAN[-1] == "look from the agent"


def test_the_control_what_only_looks_is_begun_early() -> None:
    """So that the test above would see it."""
    first = plan_of({"tool": "look"}, {"tool": "page"})
    seen: list[Event] = []
    with session_of([look, page], model=Slowly(first, "ok")) as session:
        session.run_sync("Go", seen.append)
    assert "begun" in str(seen)


# --- at the same time ----------------------------------------------------------


@pytest.mark.parametrize("in_thread", [False, True])
def test_D12_agents_at_the_same_time_have_one_budget(in_thread: bool) -> None:
    """None of them has all that was left when it began."""

    @command(effects="read")
    async def slow(what: str) -> str:
        """Look."""
        await asyncio.sleep(0.02)
        RAN.append(what)
        return "seen"

    def agent_of(name: str) -> Any:
        looks = [call_of("slow", what=f"{name}{n}") for n in range(5)]
        return an_agent(
            [*looks, "ok"], [slow], name, effects="read", in_thread=in_thread
        )

    names = ["one", "two", "three"]
    plan = plan_of(*({"tool": name, "request": "x"} for name in names))
    with session_of([agent_of(name) for name in names], plan,
                  budget=Budget(steps=8)) as session:  # fmt: skip
        answer = session.run_sync("Go")
    assert [result.status for result in answer.calls] == ["done"] * 3
    assert len(RAN) == 5


def test_D12_a_step_for_each_item_counts_its_items() -> None:
    """Not itself too; and the last one is refused where the budget ends."""
    loop = block({"tool": "look", "$for_each": ["a", "b", "c"], "what": "{{ item }}"})
    ask = an_agent([loop, "ok"], [look])
    with session_of([ask, look], call_of("ask", request="x"), call_of("look", what="d"),
                  budget=Budget(steps=5)) as session:  # fmt: skip
        answer = session.run_sync("Go")
    assert sorted(RAN) == ["look a", "look b", "look c", "look d"]
    assert answer.calls[-1].status == "done"


def test_D12_a_step_for_each_item_is_refused_by_the_run_around() -> None:
    """As a failed call of the agent's, which goes on."""
    loop = block({"tool": "look", "$for_each": ["a", "b", "c"], "what": "{{ item }}"})

    @command(name="ask", effects="read")
    async def both(request: str, context: Context) -> list[str]:
        """Ask two."""
        texts: list[str] = []
        first = Session(model=ScriptedModel([call_of("look", what="z"), "1"]),
                        plugins=[look], options=Options(parent=context))  # fmt: skip
        second = Session(model=ScriptedModel([loop, "2"]), plugins=[look],
                         options=Options(parent=context))  # fmt: skip
        answers = await asyncio.gather(first.run("x"), second.run("x"))
        texts += [answer.text for answer in answers]
        return texts

    with session_of([both], call_of("ask", request="x"),
                  budget=Budget(steps=2)) as session:  # fmt: skip
        answer = session.run_sync("Go")
    assert answer.calls[0].value == ["1", "2"]
    assert RAN == ["look z"]


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_D12_a_person_is_asked_one_thing_at_a_time(
    in_thread: bool, asynchronous: bool
) -> None:
    """In the loop of the run around, whatever thread the agent is in."""
    asking: list[str] = []
    most: list[int] = []
    where: set[int] = set()

    async def approve(event: Any) -> bool:
        where.add(id(asyncio.get_running_loop()))
        asking.append(event.id)
        most.append(len(asking))
        await asyncio.sleep(0.02)
        asking.pop()
        return True

    def approve_in_thread(event: Any) -> bool:
        asking.append(event.id)
        most.append(len(asking))
        time.sleep(0.02)
        asking.pop()
        return True

    asks = [
        an_agent([call_of("send", to=name), "ok"], [send], name, effects="read",
             in_thread=in_thread)
        for name in ("one", "two", "three")
    ]  # fmt: skip
    plan = plan_of(
        *({"tool": name, "request": "x"} for name in ("one", "two", "three"))
    )
    with session_of(asks, plan, policy=ASK_SEND,
                  approve=approve if asynchronous else approve_in_thread
                  ) as session:  # fmt: skip
        session.run_sync("Go")
    assert most == [1, 1, 1]
    assert len(where) <= 1
    assert len(RAN) == 3


def test_D12_two_sessions_of_one_command_ask_one_by_one() -> None:
    """A command may ask two agents at the same time itself."""
    asking: list[int] = []
    most: list[int] = []

    async def approve(event: Any) -> bool:
        asking.append(1)
        most.append(len(asking))
        await asyncio.sleep(0.02)
        asking.pop()
        return True

    @command(name="ask")
    async def both(request: str, context: Context) -> list[str]:
        """Ask two."""
        insides = [
            Session(model=ScriptedModel([call_of("send", to=name), name]),
                    plugins=[send], options=Options(parent=context))
            for name in ("one", "two")
        ]  # fmt: skip
        answers = await asyncio.gather(*(inside.run(request) for inside in insides))
        return [answer.text for answer in answers]

    with session_of([both], call_of("ask", request="x"), policy=ASK_SEND,
                  approve=approve) as session:  # fmt: skip
        session.run_sync("Go")
    assert most == [1, 1]
    assert len(RAN) == 2


def test_D12_no_is_counted_around() -> None:
    """Who is asked for ever says yes in the end: not more often by way of agents."""
    asked: list[str] = []

    def approve(event: Any) -> bool:
        asked.append(event.id)
        return False

    ask = an_agent([call_of("send", to="a"), call_of("send", to="b"), "ok"], [send])
    calls = [call_of("ask", request=str(n)) for n in range(4)]
    with session_of([ask, send], *calls, policy=ASK_SEND, approve=approve) as session:
        session.run_sync("Go")
    assert len(asked) == 3
    assert RAN == []


def test_a_person_is_told_which_agent_asks() -> None:
    """Its commands may have the names of others that the person knows."""
    asked = ApprovalAsked(
        id="a1",
        call={"plugin": "send", "command": "send", "arguments": {"to": "bob"}},
        reason="sure?",
        inside=("research", "helper"),
    )
    first = question(asked).splitlines()[0]
    assert first == "? inside research: inside helper: send.send wants to run"


# --- threads and the end -------------------------------------------------------


def test_decision_8_an_effect_inside_is_on_disk_before_it_runs(tmp_path: Path) -> None:
    """In the journal of the session around, also where the agent is in a thread."""
    journal = tmp_path / "j.db"
    found: list[bool] = []

    @command(effects="once")
    def effect() -> str:
        """Do it."""
        other = SqliteJournal(journal)
        events = [one.event for one in other.read(other.sessions()[0].session)]
        other.close()
        found.append(
            any(
                isinstance(one, Inside)
                and innermost(one.event)["type"] == "call_started"
                for one in events
            )
        )
        return "done"

    for in_thread in (False, True):
        ask = an_agent([call_of("effect"), "ok"], [effect], in_thread=in_thread)
        with session_of([ask], call_of("ask", request="x"), journal=journal) as session:
            session.run_sync("Go")
    assert found == [True, True]


def test_D12_a_thread_that_goes_on_begins_nothing_more() -> None:
    """After the time limit of its command, at once."""
    go, sent = threading.Event(), threading.Event()

    @command(effects="read", blocking=True)
    def wait() -> str:
        """Wait."""
        go.wait(5)
        return "x"

    @command(name="ask", time_limit=0.1)
    def ask(request: str, context: Context) -> str:
        """Ask."""
        model = ScriptedModel([call_of("wait"), call_of("send", to="bob"), "ok"])
        try:
            with Session(
                model=model, plugins=[wait, send], options=Options(parent=context)
            ) as inside:
                return inside.run_sync(request).text
        finally:
            sent.set()

    @command(effects="none")
    async def nap() -> str:
        """Sleep."""
        await asyncio.sleep(1)
        return "x"

    with session_of([ask, nap], call_of("ask", request="x"), call_of("nap")) as session:
        answer = session.run_sync(
            "Go", lambda event: go.set() if "timeout" in str(event) else None
        )
        assert sent.wait(5)
    assert answer.calls[0].status == "failed"
    assert RAN == []


def test_D12_what_an_agent_does_in_the_end_is_not_cut_off() -> None:
    """It is stopped once; a second time would end its cleaning up."""
    ended: list[str] = []

    @command(effects="read")
    async def slow() -> str:
        """Wait."""
        try:
            await asyncio.sleep(20)
        finally:
            await asyncio.sleep(0.4)
            ended.append("well")
        return "late"

    done = threading.Event()

    @command(name="ask", time_limit=0.2)
    def ask(request: str, context: Context) -> str:
        """Ask."""
        try:
            with Session(model=ScriptedModel([call_of("slow"), "ok"]), plugins=[slow],
                         options=Options(parent=context)) as inside:  # fmt: skip
                return inside.run_sync(request).text
        finally:
            done.set()

    with session_of([ask], call_of("ask", request="x")) as session:
        session.run_sync("Go")
        assert done.wait(5)
    assert ended == ["well"]


def test_D12_calls_that_no_model_wrote_stop_with_the_command() -> None:
    """Where they are made in a thread, too."""
    stopped = threading.Event()

    @command(effects="read")
    async def slow() -> str:
        """Wait."""
        try:
            await asyncio.sleep(20)
        finally:
            stopped.set()
        return "late"

    @command(name="ask", time_limit=0.1)
    def ask(request: str, context: Context) -> str:
        """Ask."""
        call = Call(id="b1", plugin=None, command="slow")
        with Session(
            model=ScriptedModel([]), plugins=[slow], options=Options(parent=context)
        ) as inside:
            return str(asyncio.run(inside.call(call)))

    with session_of([ask], call_of("ask", request="x")) as session:
        session.run_sync("Go")
        assert stopped.wait(5)


def test_D12_a_session_is_of_one_call() -> None:
    """Kept for later, nobody would hear of what it reads."""
    kept: list[Session] = []

    @command(name="ask")
    async def ask(request: str, context: Context) -> str:
        """Ask."""
        if not kept:
            model = ScriptedModel([call_of("look"), "1", "2"])
            kept.append(
                Session(model=model, plugins=[look], options=Options(parent=context))
            )
        return (await kept[0].run(request)).text

    contexts: list[Context] = []

    @command(name="keeps", effects="none", blocking=False)
    def keeps(context: Context) -> str:
        """Keep the context."""
        contexts.append(context)
        return "kept"

    calls = [call_of("ask", request="a"), call_of("ask", request="b"), call_of("keeps")]
    with session_of([ask, keeps], *calls) as session:
        first, second, _ = session.run_sync("Go").calls
    assert first.status == "done"
    assert second.error is not None
    assert "make a session in each call" in second.error.message
    with pytest.raises(Exception, match="make a session in each call"):
        kept[0].run_sync("again")
    with pytest.raises(Exception, match="make a session in each call"):
        Session(model=ScriptedModel([]), options=Options(parent=contexts[0]))
    outer = contexts[0].outer
    assert isinstance(outer, ParentRun)
    late = CallStarted(id="a1", plugin="p", command="c", tool="c", arguments={})
    with pytest.raises(CommandError, match="make a session in each call"):
        outer.receive("s", Path(), late)
