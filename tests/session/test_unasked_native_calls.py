"""Native tool calls of a model that was offered none are calls all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.events import ModelFinished
from neuraxis.messages import NativeCall
from neuraxis.models.scripted import ScriptedModel, ScriptedReply

ran: list[str] = []


@command(effects="read")
def weather(city: str) -> str:
    """Tell the weather."""
    ran.append(city)
    return "sunny"


def _reply(arguments: str, text: str = "") -> ScriptedReply:
    call = NativeCall(id="x1", name="weather", arguments=arguments)
    return ScriptedReply(text=text, tool_calls=(call,))


@pytest.mark.parametrize("dialect", ["intents", "envelope_v2", "envelope_v1"])
@pytest.mark.parametrize("text", ["", "I will look it up."])
def test_they_run_and_the_conversation_has_them_as_text(
    dialect: str, text: str, tmp_path: Path
) -> None:
    """A gateway that parses calls out of the text loses none; the journal notes it."""
    ran.clear()
    last = '{"role": "user", "content": "Sunny."}' if "env" in dialect else "Sunny."
    model = ScriptedModel([_reply('{"city": "Bonn"}', text), last])
    events: list[Any] = []
    with Session(
        model, plugins=[weather], dialect=dialect, workspace=tmp_path / "w"
    ) as session:
        answer = session.run_sync("weather in Bonn?", watch=events.append)
        assert ran == ["Bonn"]
        assert [result.status for result in answer.calls] == ["done"]
        assert "sunny" in model.prompts[-1].messages[-1].content
        assert not any(message.tool_calls for message in session.history)
        assert not any(message.role == "tool" for message in session.history)
    (first, *_) = [event for event in events if isinstance(event, ModelFinished)]
    assert "native tool calls" in first.notes[-1]


def test_arguments_that_are_no_json_are_told_to_the_model(tmp_path: Path) -> None:
    """Nothing runs, and the model may write the call again."""
    ran.clear()
    model = ScriptedModel([_reply('{"city": '), "Sorry."])
    with Session(model, plugins=[weather], workspace=tmp_path / "w") as session:
        session.run_sync("weather in Bonn?")
    assert ran == []
    assert "weather" in model.prompts[-1].messages[-1].content
