"""A run that is resumed several times, by one session: nothing is done twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Policy, Rule, Session, command
from neuraxis.events import CallFinished, CallStarted, MessageSent, SessionFinished
from neuraxis.messages import NativeCall
from neuraxis.models.scripted import ScriptedModel, ScriptedReply
from neuraxis.settings import Settings

POLICY = Policy(
    rules=[Rule(verdict="ask", target="pay.*", reason="it is money")], default="allow"
)
DONE: list[str] = []


@command(effects="once")
def pay(to: str) -> str:
    """Pay somebody."""
    DONE.append(f"pay {to}")
    return f"paid {to}"


class Box:
    """An object without a JSON form."""


@command(effects="read")
def boxes() -> dict[str, object]:
    """Boxes, which are stored."""
    return {"count": 3, "first": Box()}


@command(effects="once")
def note(text: str) -> str:
    """Write a note."""
    DONE.append(f"note {text}")
    return "noted"


def session(folder: Path, *replies: Any, **given: Any) -> Session:
    """The session `s`, which begins or goes on; its questions wait."""
    DONE.clear()
    given = {
        "model": ScriptedModel(list(replies)),
        "plugins": [pay, note, boxes],
        "workspace": folder / "w",
        "journal": folder / "j.db",
        "policy": POLICY,
        "approve": "later",
        "settings": Settings(),
        **given,
    }
    if (folder / "j.db").exists():
        return Session.open("s", **given)
    return Session(id="s", **given)


def a_plan(*calls: dict[str, Any], native: bool = False) -> Any:
    """A reply with these calls."""
    if not native:
        return json.dumps(list(calls))
    return ScriptedReply(
        tool_calls=tuple(
            NativeCall(
                id=f"n{index}",
                name=call["tool"],
                arguments=json.dumps({k: v for k, v in call.items() if k != "tool"}),
            )
            for index, call in enumerate(calls)
        ),
        finish_reason="tool_calls",
    )


CALLS = (
    {"tool": "note", "text": "x"},
    {"tool": "pay", "to": "ann"},
    {"tool": "pay", "to": "bob"},
)


@pytest.mark.parametrize("dialect", ["intents", "native"])
def test_a_reopened_plan_that_waits_again_does_nothing_twice(
    tmp_path: Path, dialect: str
) -> None:
    """Its second `resume` knows what the first one did, and its answers."""
    reply = a_plan(*CALLS, native=dialect == "native")
    with session(tmp_path, reply, dialect=dialect) as first:
        assert first.run_sync("pay them").outcome == "waiting"
        assert DONE == ["note x"]
    with session(tmp_path, "All is done.", dialect=dialect) as later:
        later.approve("a2")
        assert later.resume_sync().outcome == "waiting"
        later.approve("a3")
        assert later.resume_sync().text == "All is done."
    assert DONE == ["pay ann", "pay bob"]


def test_a_reopened_plan_that_waits_again_may_be_dropped(tmp_path: Path) -> None:
    """Each native call has its answer in the next request."""
    with session(tmp_path, a_plan(*CALLS, native=True), dialect="native") as first:
        first.run_sync("pay them")
    model = ScriptedModel(["As you like."])
    with session(tmp_path, model=model, dialect="native") as later:
        assert later.resume_sync().outcome == "waiting"
        later.run_sync("never mind")
    told = [item.tool_call_id for item in model.prompts[0].messages]
    assert [name for name in told if name] == ["n0", "n1", "n2"]


def test_an_open_question_outlives_the_no_to_another(tmp_path: Path) -> None:
    """The run keeps waiting for it, and every no is told with its reason."""
    with session(tmp_path, a_plan(*CALLS), "All is done.") as first:
        first.run_sync("pay them")
        first.deny("a2", "not ann")
        assert first.resume_sync().outcome == "waiting"
        assert [question.id for question in first.pending()] == ["a3"]
        first.deny("a3", "not bob")
        assert first.resume_sync().text == "All is done."
        told = first.history[-2].content
    assert "not ann" in told
    assert "not bob" in told
    assert DONE == ["note x"]


def test_a_stored_result_is_shown_as_if_the_plan_had_not_waited(
    tmp_path: Path,
) -> None:
    """The beginning of it, beside its reference."""
    reply = a_plan({"tool": "boxes"}, {"tool": "pay", "to": "ann"})
    with session(tmp_path, reply, "All is done.") as first:
        first.run_sync("pay them")
        first.approve("a2")
        first.resume_sync()
        waited = first.history[-2].content
    allowed = Policy(default="allow")
    (tmp_path / "other").mkdir()
    with session(tmp_path / "other", reply, "Done.", policy=allowed) as other:
        other.run_sync("pay them")
        assert other.history[-2].content == waited
    assert '"count":3' in waited


def test_R4_a_loop_that_waits_has_not_ended(tmp_path: Path) -> None:
    """Its end is reported once: when its plan has gone on."""
    loop = {"tool": "pay", "$for_each": ["ann", "bob"], "to": "{{ item }}"}
    rule = Rule(verdict="ask", target="pay.*", arguments={"to": "bob"}, reason="bob")
    policy = Policy(rules=[rule], default="allow")
    with session(tmp_path, json.dumps([loop]), "ok", policy=policy) as one:
        assert one.run_sync("go").outcome == "waiting"
        assert DONE == ["pay ann"]
        one.approve("a1")
        (loop_result,) = one.resume_sync().calls
        assert loop_result.value == ["paid ann", "paid bob"]
        events = [entry.event for entry in one.journal.read("s")]
    ends = [event.id for event in events if isinstance(event, CallFinished)]
    assert ends == ["a1.0", "a1.1", "a1"]


@pytest.mark.parametrize("dialect", ["intents", "native"])
def test_R4_an_unknown_outcome_is_told_once_and_the_history_stays(
    tmp_path: Path, dialect: str
) -> None:
    """The approved call was cut off: each later process has the same conversation."""
    given = {"dialect": dialect, "plugins": [pay, note]}
    reply: Any = json.dumps(
        [{"tool": "pay", "to": "ann"}, {"tool": "note", "text": "x"}]
    )
    if dialect == "native":
        calls = (
            NativeCall(id="n1", name="pay", arguments='{"to": "ann"}'),
            NativeCall(id="n2", name="note", arguments='{"text": "x"}'),
        )
        reply = ScriptedReply(tool_calls=calls, finish_reason="tool_calls")
    with session(tmp_path, reply, **given) as first:
        first.run_sync("go")
        first.approve("a1")
        names: Any = {"id": "a1", "plugin": "pay", "command": "pay", "tool": "pay"}
        begun = CallStarted(**names, arguments={"to": "ann"}, effects="once")
        first.journal.append("s", begun, durable=True)  # and the process was killed
    with session(tmp_path, "I see.", **given) as second:
        assert second.resume_sync().calls[0].status == "failed"
        told = [(message.role, message.content) for message in second.history]
    with session(tmp_path, **given) as third:
        assert [(message.role, message.content) for message in third.history] == told


@pytest.mark.parametrize("kind", [MessageSent, SessionFinished])
def test_what_watch_raises_at_the_last_events_reaches_the_caller(
    tmp_path: Path, kind: type
) -> None:
    """The request has its end: there is nothing to resume."""

    def watch(event: object) -> None:
        is_last = getattr(event, "receiver", "user") == "user"
        if isinstance(event, kind) and is_last:
            raise ValueError("the page is closed")

    with session(tmp_path, "Hello.", "Again.") as first:
        with pytest.raises(ValueError, match="the page is closed"):
            first.run_sync("Hi", watch)
        assert first.run_sync("Hi").text == "Again."
