"""No id is given twice, and no idempotency key to two calls."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Call, ConfigError, Context, Policy, Rule, Session, command
from neuraxis.events import (
    AssetStored,
    CallStarted,
    HistoryShortened,
    PlanChecked,
    SessionStarted,
)
from neuraxis.journal.memory import MemoryJournal
from neuraxis.messages import NativeCall
from neuraxis.models.scripted import ScriptedModel, ScriptedReply
from neuraxis.planning.load import read_plan
from neuraxis.session.past.call_ids import CallIds

ASKS = Policy(rules=[Rule(verdict="ask", target="pay.*")])
PAID: list[tuple[str, int, str]] = []


@pytest.fixture(autouse=True)
def _nothing_is_paid() -> None:
    PAID.clear()


@command(effects="once")
def pay(n: int, context: Context) -> int:
    """Pay."""
    PAID.append((context.call_id, n, context.idempotency_key))
    return n


@command(effects="read")
def blob(text: str) -> bytes:
    """Store an object."""
    return text.encode()


@command(effects="none")
def said(data: bytes) -> str:
    """Read an object."""
    return data.decode()


def plan(*calls: dict[str, Any]) -> str:
    """A reply that makes these calls."""
    return json.dumps(list(calls))


def a_pay(n: int, **more: Any) -> dict[str, Any]:
    """A call of `pay`."""
    return {"tool": "pay", "n": n, **more}


def given(folder: Path) -> dict[str, Any]:
    """The arguments of every session here."""
    return {
        "plugins": [pay, blob, said],
        "journal": folder / "j.db",
        "workspace": folder / "w",
    }


def later(folder: Path) -> dict[str, Any]:
    """Those of one whose payments wait for a person."""
    return given(folder) | {"approve": "later", "policy": ASKS}


def keys() -> list[str]:
    """Return the keys of all payments, once each."""
    return list(dict.fromkeys(key for *_, key in PAID))


@pytest.mark.parametrize("dialect", ["intents", "native"])
def test_report_a1_a_resumed_plan_keeps_its_ids(tmp_path: Path, dialect: str) -> None:
    """Whatever the session does next has an id, a key and a question of its own."""

    def reply(*numbers: int) -> Any:
        if dialect == "intents":
            return plan(*map(a_pay, numbers))
        calls = [
            NativeCall(id=f"c{n}", name="pay", arguments=json.dumps({"n": n}))
            for n in numbers
        ]
        return ScriptedReply(tool_calls=tuple(calls))

    more = later(tmp_path) | {"dialect": dialect}
    with Session(ScriptedModel([reply(1, 2)]), id="s", **more) as first:
        assert first.run_sync("go").outcome == "waiting"
    with Session.open("s", model=ScriptedModel([reply(9), "ok"]), **more) as again:
        for question in again.pending():
            again.approve(question.id)
        assert again.resume_sync().outcome == "waiting"
        assert [item.id for item in again.pending()] == ["a3"]
        again.approve("a3")
        assert again.resume_sync().outcome == "answered"
    assert [(own, n) for own, n, _ in PAID] == [("a1", 1), ("a2", 2), ("a3", 9)]
    assert len(keys()) == 3


def test_report_a1_a_resumed_session_replaces_no_object(tmp_path: Path) -> None:
    """`asset://a2` is the same object before and after."""
    first, second = [{"tool": "blob", "text": text} for text in ("FIRST", "SECOND")]
    reads = plan({"tool": "said", "data": "asset://a2/content/response"})
    with Session(
        ScriptedModel([plan(a_pay(1), first)]), id="s", **later(tmp_path)
    ) as first_time:
        first_time.run_sync("go")
    model = ScriptedModel([reads, plan(second), reads, "ok"])
    with Session.open("s", model=model, **later(tmp_path)) as again:
        again.approve("a1")
        answer = again.resume_sync()
    assert [item.value for item in answer.calls if item.call.command == "said"] == [
        "FIRST",
        "FIRST",
    ]
    assert [item.id for item in answer.assets] == ["a2", "a4"]


def test_report_a1_a_plan_that_was_killed_keeps_its_ids(tmp_path: Path) -> None:
    """Also the id of a step that did not begin."""
    program = f"""
        import os, signal
        from pathlib import Path
        from neuraxis import Session, command
        from neuraxis.models.scripted import ScriptedModel

        @command(effects="read")
        def dies() -> int:
            "Dies."
            os.kill(os.getpid(), signal.SIGKILL)

        @command(effects="once")
        def pay(n: int) -> int:
            "Pay."

        reply = '[{{"tool": "dies"}}, {{"tool": "pay", "n": 1}}]'
        Session(
            ScriptedModel([reply]), plugins=[dies, pay], id="s",
            journal=Path({str(tmp_path)!r}) / "j.db",
        ).run_sync("go")
    """
    code = textwrap.dedent(program)
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL

    @command(effects="read")
    def dies() -> int:
        """Does not die."""
        return 0

    more = given(tmp_path)
    more["plugins"] = [*more["plugins"], dies]
    with Session.open("s", model=ScriptedModel([plan(a_pay(9)), "ok"]), **more) as s:
        s.resume_sync()
    assert [own for own, *_ in PAID] == ["a3"]


def test_report_a1_every_id_that_the_journal_names_is_in_use() -> None:
    """A plan, a call, an object, the text of a summary, a program's own ids."""
    events = [
        PlanChecked(steps=({"id": "a1", "tool": "t"}, {"id": "a2", "tool": "t"})),
        PlanChecked(steps=({"id": "a3", "tool": "t"},), problems=({"code": "failed"},)),
        CallStarted(id="a4", plugin="p", command="c", tool="c", arguments={}),
        AssetStored(id="a5", kind="list"),
        HistoryShortened(how="summary", asset="a6"),
        # a long number is an id like any other, and is not counted up to
        PlanChecked(steps=({"id": "a99999999999"},), by_program=True),
    ]
    ids = CallIds()
    ids.replay(events)
    assert [ids.next(), ids.next()] == ["a3", "a7"]


def test_report_a3_an_id_of_the_models_is_refused(tmp_path: Path) -> None:
    """In one session, also after it was opened again.

    One's own is taken again for the same call, which is another attempt at it.
    """

    def call(n: int, own: str) -> Call:
        return Call(id=own, plugin=None, command="pay", arguments={"n": n})

    def refused(
        session: Session, *calls: Call, whose: str = "a call of the model"
    ) -> None:
        with pytest.raises(ConfigError, match=rf"is the id of {whose}"):
            asyncio.run(session.call_all(list(calls)))

    with Session(
        ScriptedModel([plan(a_pay(7)), "ok"]), id="s", **given(tmp_path)
    ) as session:
        asyncio.run(session.call(call(1, "c1")))
        asyncio.run(session.call(call(2, "a1")))
        asyncio.run(session.call(call(1, "c1")))
        refused(session, call(3, "c1"), whose="another call of the program")
        (model_made,) = session.run_sync("go").calls
        assert model_made.call.id == "a2"
        refused(session, call(5, "c2"), call(5, "a2"))
    with Session.open("s", model=ScriptedModel([]), **given(tmp_path)) as session:
        refused(session, call(6, "a2"))
        refused(session, call(4, "c1"), whose="another call of the program")
        asyncio.run(session.call(call(1, "c1")))
        asyncio.run(session.call(call(6, session.ids.new())))
    paid = [(own, n) for own, n, _ in PAID]
    assert paid[:3] == [("c1", 1), ("a1", 2), ("c1", 1)]
    assert paid[3:] == [("a2", 7), ("c1", 1), ("a3", 6)]
    assert PAID[0] == PAID[2] == PAID[4]  # other attempts at the same call
    assert len(keys()) == len(PAID) - 2


def test_a_saved_plan_with_other_parameters_has_other_keys(tmp_path: Path) -> None:
    """Its calls have the same ids and written arguments, but pay something else."""
    saved = read_plan("""
version: 1
parameters: {n: integer, more: {type: array, default: []}}
steps:
  - {tool: pay, arguments: {n: "{{ params['n'] }}"}}
  - {tool: pay, for_each: "{{ params['more'] }}", arguments: {n: "{{ item }}"}}
""")

    def run(session: Session, n: int, *more: int) -> None:
        params = {"n": n, "more": list(more)}
        asyncio.run(session.call_all(saved.calls, params=params))

    with Session(ScriptedModel([]), id="s", **given(tmp_path)) as session:
        run(session, 1)
        run(session, 2)
        run(session, 1, 5)
        run(session, 1, 6)
    with Session.open("s", model=ScriptedModel([]), **given(tmp_path)) as session:
        run(session, 1)  # another attempt at the first
    assert [n for _, n, _ in PAID] == [1, 2, 1, 5, 1, 6, 1]
    assert PAID[0] == PAID[-1]
    assert len(keys()) == len(PAID) - 1


async def test_report_a3_a_wrong_plan_leaves_its_ids_free(
    tmp_path: Path,
) -> None:
    """Nothing ran: the mended plan may have the same ids."""
    with Session(ScriptedModel([]), **given(tmp_path)) as session:
        wrong = Call(id="c1", plugin=None, command="pay", arguments={})
        assert (await session.call(wrong)).status == "failed"
        right = Call(id="c1", plugin=None, command="pay", arguments={"n": 1})
        assert (await session.call(right)).status == "done"


def test_report_a3_a_session_of_the_same_id_has_other_keys(tmp_path: Path) -> None:
    """In memory, or in another journal."""
    for journal in (None, None, tmp_path / "1.db", tmp_path / "2.db"):
        model = ScriptedModel([plan(a_pay(7)), "ok"])
        more = given(tmp_path) | {"journal": journal}
        with Session(model, id="user-7", **more) as session:
            session.run_sync("go")
    assert [own for own, *_ in PAID] == ["a1"] * 4
    assert len(keys()) == 4


def test_report_a3_a_call_that_is_tried_again_keeps_its_key(tmp_path: Path) -> None:
    """A call of a plan that waited, read again in another process."""
    seen: list[str] = []

    @command(effects="read")
    def looks(context: Context) -> int:
        """Look."""
        seen.append(context.idempotency_key)
        return len(seen)

    more = later(tmp_path)
    more["plugins"] = [*more["plugins"], looks]
    reply = plan({"tool": "looks"}, a_pay(1))
    with Session(ScriptedModel([reply]), id="s", **more) as session:
        session.run_sync("go")
    # as if the process had been killed before the end of `looks` was written
    db = sqlite3.connect(tmp_path / "j.db")
    db.execute("DELETE FROM events WHERE type = 'call_finished'")
    db.commit()
    db.close()
    with Session.open("s", model=ScriptedModel(["ok"]), **more) as session:
        session.approve("a2")
        session.resume_sync()
    assert len(seen) == 2
    assert len(set(seen)) == 1


def test_report_a3_what_is_called_is_part_of_the_key(tmp_path: Path) -> None:
    """A journal that was restored from a copy gives later ids a second time."""
    with Session(ScriptedModel(["ok"]), id="s", **given(tmp_path)) as session:
        session.run_sync("hello")
    copy = (tmp_path / "j.db").read_bytes()
    for n in (1, 2):
        for file in tmp_path.glob("j.db*"):
            if file.is_file():
                file.unlink()
        (tmp_path / "j.db").write_bytes(copy)
        model = ScriptedModel([plan(a_pay(n)), "ok"])
        with Session.open("s", model=model, **given(tmp_path)) as session:
            session.run_sync("go")
    assert [own for own, *_ in PAID] == ["a1", "a1"]
    assert len(keys()) == 2


def test_report_a3_a_journal_of_an_earlier_version_gets_its_key_once() -> None:
    """It stored none; from then on the key is the same."""
    journal = MemoryJournal()
    journal.append("s", SessionStarted(session="s", model="m", dialect="intents"))
    for _ in range(2):
        with Session.open("s", model=ScriptedModel(["ok"]), journal=journal) as session:
            session.run_sync("hello")
    begun = [
        entry.event.key
        for entry in journal.read("s")
        if isinstance(entry.event, SessionStarted)
    ]
    assert begun[0] == ""
    assert begun[1] == begun[2] != ""
