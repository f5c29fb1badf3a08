"""What a later run, or a later process, tells the model of what was cut off."""

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from neuraxis import CommandError, Options, Session, command
from neuraxis.dialects import find_dialect
from neuraxis.events import (
    ApprovalAsked,
    CallFinished,
    CallStarted,
    Event,
    MessageSent,
    ModelFinished,
    PlanChecked,
    SessionFinished,
    SessionStarted,
)
from neuraxis.journal.memory import MemoryJournal
from neuraxis.messages import NativeCall
from neuraxis.models.scripted import ScriptedModel, ScriptedReply
from neuraxis.session.past.resume import restore_history


@command(effects="once")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@command(effects="once")
async def slow() -> str:
    """Takes long."""
    await asyncio.sleep(30)
    return "x"


@command(effects="read")
def breaks() -> str:
    """Fails."""
    raise CommandError("no")


@command(effects="read")
def lists(n: int) -> list[int]:
    """Many numbers."""
    return [n] * 20_000


PLAN = [
    {"tool": "pay", "amount": 5},
    {"tool": "slow"},
    {"tool": "pay", "amount": 7},
]


def session(tmp_path: Path, *replies: Any, **options: Any) -> Session:
    earlier = options.pop("earlier", None)
    options |= {
        "model": ScriptedModel(list(replies)),
        "plugins": [pay, slow, breaks, lists],
        "workspace": tmp_path / "w",
        "journal": tmp_path / "j.db",
    }
    return Session(**options) if earlier is None else Session.open(earlier, **options)


async def cut_off(session: Session) -> None:
    """Ctrl-C while the slow call runs."""
    begun = asyncio.Event()

    def watch(event: Event) -> None:
        if isinstance(event, CallStarted) and event.command == "slow":
            begun.set()

    task = asyncio.create_task(session.drive("pay", watch))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])


async def test_a_plan_that_was_stopped_is_told_with_the_next_request(
    tmp_path: Path,
) -> None:
    """What was paid before Ctrl-C must not be paid again: live, and after a resume."""
    first = session(tmp_path, json.dumps(PLAN), "I see")
    await cut_off(first)
    await first.drive("go on")
    told = first.history[-3].content
    for part in ("paid 5", '"cancelled"', "pay was not run"):
        assert part in told
    first.close()
    later = session(tmp_path, earlier=first.id)
    assert [m.content for m in first.history] == [m.content for m in later.history]
    later.close()


async def test_native_calls_that_were_stopped_are_all_answered(tmp_path: Path) -> None:
    """A server refuses a conversation in which a tool call has no answer."""
    calls = tuple(
        NativeCall(id=f"s{number}", name=str(call["tool"]), arguments=json.dumps(
            {key: value for key, value in call.items() if key != "tool"}
        ))
        for number, call in enumerate(PLAN)
    )  # fmt: skip
    reply = ScriptedReply(tool_calls=calls, finish_reason="tool_calls")
    first = session(tmp_path, reply, "I see", dialect="native")
    await cut_off(first)
    await first.drive("go on")
    first.close()
    later = session(tmp_path, earlier=first.id, dialect="native")
    for history in (first.history, later.history):
        assert ("s0", "s1", "s2") == tuple(c.id for c in history[1].tool_calls)
        assert [(m.role, m.tool_call_id) for m in history[2:5]] == [
            ("tool", "s0"),
            ("tool", "s1"),
            ("tool", "s2"),
        ]
        assert "paid 5" in history[2].content
    later.close()


def test_a_process_killed_between_two_calls_loses_no_result(tmp_path: Path) -> None:
    """kill -9: the call before is told as it ended, the running one as unknown."""
    code = f"""
        import json, os
        from pathlib import Path
        from neuraxis import command
        import tests.session.past.test_resume as here

        @command(effects="once")
        def slow() -> str:
            os.kill(os.getpid(), 9)

        here.slow = slow
        session = here.session(Path({str(tmp_path)!r}), json.dumps(here.PLAN))
        print(session.id, flush=True)
        session.run_sync("pay")
    """
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    later = session(tmp_path, earlier=killed.stdout.strip())
    told = later.history[-1].content
    for part in ("paid 5", '"outcome_unknown"', "pay was not run"):
        assert part in told
    later.close()


async def test_what_the_program_called_itself_is_not_told(tmp_path: Path) -> None:
    """Calls that no model wrote are no part of the conversation."""
    from neuraxis.messages import Call

    with session(tmp_path, "hello") as first:
        await first.drive("hi")
        await first.call(
            Call(id="a1", plugin=None, command="pay", arguments={"amount": 1})
        )
    with session(tmp_path, earlier=first.id) as later:
        assert len(later.history) == 2


def test_a_plan_of_the_program_does_not_hide_that_of_the_model() -> None:
    """A call of the program in the middle of a run is not what the model waits for."""
    step = {"tool": "pay", "arguments": {}}
    names: Any = {"plugin": "p", "command": "pay", "tool": "pay"}
    events: list[Event] = [
        MessageSent(sender="user", receiver="model", content="go"),
        ModelFinished(text="[...]", finish_reason="stop"),
        PlanChecked(steps=({**step, "id": "a1"}, {**step, "id": "a2"})),
        CallStarted(id="a1", **names, arguments={}, effects="once"),
        PlanChecked(steps=({**step, "id": "own"},), by_program=True),
        CallStarted(id="own", **names, arguments={}, effects="once"),
        CallFinished(id="own", **names, status="done", value="of the program"),
    ]
    (told,) = restore_history(events, find_dialect("intents")).unseen
    assert "unknown" in told.content
    assert "of the program" not in told.content
    assert told.content.count('"tool":"pay"') == 2, told.content


def test_a_reply_that_a_second_process_ran_is_not_run_by_a_third() -> None:
    """Killed before the plan was checked, resumed, cut off again: nothing twice."""
    step: dict[str, Any] = {"tool": "pay", "arguments": {}, "id": "a1"}
    names: Any = {"id": "a1", "plugin": "p", "command": "pay", "tool": "pay"}
    begun = SessionStarted(session="s", model="m", dialect="intents", plugins=())
    asked = ApprovalAsked(
        id="a2", call={"plugin": "p", "command": "pay"}, reason="money", expires=9e9
    )
    events: list[Event] = [
        begun,
        MessageSent(sender="user", receiver="model", content="go"),
        ModelFinished(text="[...]", finish_reason="stop"),
        begun,
        PlanChecked(steps=(step, step | {"id": "a2"})),
        CallStarted(**names, arguments={}, effects="once"),
        CallFinished(**names, status="done", value="paid"),
    ]
    past = restore_history([*events, begun], find_dialect("intents"))
    assert not past.pending
    assert "paid" in past.unseen[0].content
    waiting = SessionFinished(outcome="waiting", text="", error="", seconds=0.1)
    past = restore_history([*events, asked, waiting, begun], find_dialect("intents"))
    assert ("a1", "a2") == past.waits


def test_a_failed_call_has_no_answer_to_refer_to(tmp_path: Path) -> None:
    """It had none before; null is not what it answered."""
    with session(tmp_path, '[{"tool": "breaks"}]', "done") as first:
        first.run_sync("go")
        assert not first.assets.known("a1")
    with session(tmp_path, earlier=first.id) as later:
        assert not later.assets.known("a1")


def test_the_repeated_answer_is_an_asset_again(tmp_path: Path) -> None:
    """A call that was answered with an earlier result can be referred to later."""
    calls = ['[{"tool": "lists", "n": 1}]'] * 3
    options: dict[str, Any] = {"options": Options(asset_folder=tmp_path / "a")}
    with session(tmp_path, *calls, "done", **options) as first:
        first.run_sync("go")
        assert ("a1", "a2", "a3") == tuple(first.assets.ids)
    with session(tmp_path, earlier=first.id, **options) as later:
        assert ("a1", "a2", "a3") == tuple(later.assets.ids)
        assert [1] * 20_000 == later.assets.root("a3")["content"]["response"]


def test_D10_a_cut_reply_stays_cut_when_its_run_goes_on() -> None:
    """Killed between the reply and its check: its calls may not be whole."""
    paid: list[int] = []

    @command(effects="once")
    def pay(n: int) -> int:
        """Pay."""
        paid.append(n)
        return n

    cut = ScriptedReply(text='[{"tool": "pay", "n": 1}]', finish_reason="length")
    first, second = MemoryJournal(), MemoryJournal()
    with Session(
        ScriptedModel([cut, "ok"]), plugins=[pay], journal=first, id="s"
    ) as one:
        one.run_sync("go")
    for entry in first.read("s"):
        second.append("s", entry.event)
        if isinstance(entry.event, ModelFinished):
            break
    given: dict[str, Any] = {"plugins": [pay], "journal": second}
    with Session.open("s", model=ScriptedModel(["not done"]), **given) as other:
        assert other.resume_sync().text == "not done"
    assert paid == []
