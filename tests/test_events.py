"""The journal's vocabulary: what is written can be read again."""

import json
from typing import Any

import pytest

from neuraxis import events
from neuraxis.events import (
    CallFinished,
    PlanChecked,
    Unknown,
    from_json,
    to_json,
    to_text,
)

EVERY = [
    events.SessionStarted(session="s", model="m", dialect="intents", plugins=("a",)),
    events.MessageSent(sender="user", receiver="model", content="hi"),
    events.ModelStarted(turn=1, model="m"),
    events.ModelChunk(text="x"),
    events.OutputChunk(value={"a": 1}),
    events.ModelFinished(text="x", finish_reason="stop", notes=("n",)),
    PlanChecked(steps=({"id": "a1"},), notes=("n",)),
    events.CallStarted(id="a1", plugin="p", command="c", tool="T", arguments={}),
    events.CallProgress(id="a1", message="half", fraction=0.5),
    CallFinished(id="a1", plugin="p", command="c", tool="T", status="done", value=1),
    events.AssetStored(id="a1", kind="numpy.ndarray", meta={"a": 1}, bytes=3),
    events.FileChanged(call="a1", path="n.txt", run=2, after="0f", mode=0o600),
    events.RunUndone(run=2),
    events.ApprovalAsked(id="a1", call={}, reason="r", plan=({"id": "a1"},)),
    events.ApprovalAnswered(id="a1", allowed=True),
    events.BudgetReached(what="calls", limit=1, used=1),
    events.HistoryShortened(how="summary", messages=([1, "x"],), dropped=1),
    events.Inside(id="a1", session="s", event={"type": "message"}),
    events.SessionFinished(outcome="answered", text="t", files=("a.txt",)),
]


def test_every_event_is_in_the_table() -> None:
    """No event can be forgotten in the list above, nor in the wire names."""
    assert {type(event) for event in EVERY} == set(events.NAMES.values())


@pytest.mark.parametrize("event", EVERY, ids=lambda event: type(event).__name__)
def test_round_trip(event: events.Event) -> None:
    """from_json(to_json(event)) == event; `to_text` is the same as text."""
    assert json.loads(to_text(event)) == to_json(event)
    assert from_json(json.loads(to_text(event))) == event


@pytest.mark.parametrize("value", ["\ud800", {"ü\0": ["\u2028", 2**70, 1.5]}, [object]])
def test_any_value_has_a_text(value: Any) -> None:
    """What no JSON can hold is told in words; nothing is lost of what it can."""
    event = CallFinished(
        id="a1", plugin="p", command="c", tool="T", status="done", value=value
    )
    text = json.dumps(to_json(event), default=str)
    assert json.loads(to_text(event)) == json.loads(text)


def test_what_a_later_version_wrote_is_kept() -> None:
    """An unknown type, and an unknown field of a known type, do not break reading."""
    assert from_json({"type": "new_thing", "x": 1}) == Unknown(
        type="new_thing", data={"type": "new_thing", "x": 1}
    )
    written = {**to_json(events.ModelStarted(turn=1, model="m")), "later": True}
    assert from_json(written) == events.ModelStarted(turn=1, model="m")


def test_what_is_no_text_where_one_should_be_is_kept_as_it_is() -> None:
    """A damaged journal is read to its end; resuming does not stumble over it."""
    written = {
        **to_json(events.MessageSent(sender="user", receiver="model", content="x"))
    }
    for field in ("content",):
        assert isinstance(from_json({**written, field: None}), Unknown)
    call = to_json(
        CallFinished(id="a1", plugin="p", command="c", tool="T", status="done")
    )
    for field in ("id", "plugin", "part_of"):
        assert isinstance(from_json({**call, field: ["x"]}), Unknown)


def test_what_is_no_event_is_named() -> None:
    """A question has a `to_json` of its own."""
    from neuraxis import Call, Question

    call = Call(id="a1", plugin="p", command="c", arguments={})
    question = Question(
        id="a1", session="s", call=call, reason="", origins={}, parameters={}, expires=0
    )
    wrong: Any = question
    with pytest.raises(TypeError, match=r"got Question; use its own to_json\(\)"):
        to_json(wrong)
    wrong = call
    with pytest.raises(TypeError, match=r"expected an event, got Call$"):
        to_json(wrong)
