"""Several models in one: who is asked when, and what the journal says of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from neuraxis import Session
from neuraxis.errors import ConfigError, ModelBroken, ModelRefused, ModelTimeout
from neuraxis.events import ModelFinished
from neuraxis.messages import Chunk, Message, Prompt, Usage
from neuraxis.models import complete, find_models
from neuraxis.models.failover import REST, Failover
from neuraxis.models.scripted import ScriptedModel, ScriptedReply
from neuraxis.settings import Settings

PROMPT = Prompt(messages=(Message(role="user", content="Hi."),))


def model(name: str, *replies: Any) -> ScriptedModel:
    return ScriptedModel(list(replies), name=name)


DOWN = ScriptedReply(error="refused: no such model")
AMID = ScriptedReply(text="Half", error="broken: gone")


async def test_the_next_answers_where_one_fails() -> None:
    """The completion names who answered; a note says why."""
    both = Failover([model("one", DOWN), model("two", "Hello")])
    notes: list[str] = []
    done = await complete(both, PROMPT, lambda chunk: notes.append(chunk.note))
    assert (done.text, done.model) == ("Hello", "two")
    assert any("one failed, two is asked: " in note for note in notes)


async def test_the_tokens_of_a_model_that_failed_count() -> None:
    """A server that found nothing to say was paid for reading the prompt."""

    class Silent:
        name = "one"

        async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
            yield Chunk(usage=Usage(input_tokens=10))
            raise ModelBroken("one: its answer holds nothing")

    used = Usage(input_tokens=5, output_tokens=1)
    two = model("two", ScriptedReply(text="Hello", usage=used))
    done = await complete(Failover([Silent(), two]), PROMPT)
    assert done.usage == Usage(input_tokens=15, output_tokens=1)


async def test_the_last_error_counts_where_all_fail() -> None:
    """It tells why the others failed: there is no reply whose notes would."""
    late = ScriptedReply(error="timeout: too late")
    both = Failover([model("one", DOWN), model("two", late)])
    with pytest.raises(ModelTimeout) as told:
        await complete(both, PROMPT)
    assert str(told.value) == "too late; before it, one failed: no such model"


async def test_a_failure_amid_a_reply_is_raised() -> None:
    """What was given out cannot be taken back; the next request may succeed."""
    both = Failover([model("one", AMID), model("two", "Hello")])
    with pytest.raises(ModelBroken, match="gone") as told:
        await complete(both, PROMPT)
    assert told.value.again
    assert (await complete(both, PROMPT)).text == "Hello"


async def test_a_model_that_failed_rests() -> None:
    """It is asked last for a minute, then first again."""
    clock = [0.0]
    first, second = model("one", DOWN, "again"), model("two", "a", "b")
    both = Failover([first, second], now=lambda: clock[0])
    assert [(await complete(both, PROMPT)).text for _ in range(2)] == ["a", "b"]
    assert len(first.prompts) == 1
    clock[0] = REST + 1
    assert (await complete(both, PROMPT)).text == "again"


async def test_a_session_goes_on_with_the_next_amid_a_reply() -> None:
    """The half reply is dropped; the journal holds who failed and who answered."""
    session = Session(model=[model("one", AMID), model("two", "Q: x A: Whole.")])
    answered = await session.run("Hi.")
    assert answered.outcome == "answered"
    assert "Half" not in answered.text
    events = [entry.event for entry in session.journal.read(session.id)]
    (finished,) = [event for event in events if isinstance(event, ModelFinished)]
    assert finished.model == "two"
    assert any("gone" in note for note in finished.notes)


async def test_one_model_alone_is_not_asked_again_amid_its_reply() -> None:
    """A broken connection is an error and never a shorter reply, as before."""
    session = Session(model=[model("one", AMID, "Hello")])
    assert (await session.run("Hi.")).outcome == "failed"


def test_what_a_list_may_hold() -> None:
    """Names and models; nothing in it is an error, and so is a name of no model."""
    own = model("one", "x")
    assert find_models([own]) is own
    assert find_models([own, model("two")]).name == "one, else two"
    with pytest.raises(ConfigError, match="at least one model"):
        Session(model=[])
    with pytest.raises(ConfigError, match="no kind of model") as told:
        find_models([own, "opennai:x"], Settings())
    said = str(told.value)
    assert said.index("Did you mean openai:") < said.index("Expected one of")
    assert said.count("gemini") == 1


async def test_closing_closes_all() -> None:
    """Each model of the list may hold connections."""
    closed: list[str] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        async def stream(self, prompt: Prompt) -> Any:
            raise ModelRefused(self.name)
            yield

        async def close(self) -> None:
            closed.append(self.name)

    await Failover([Noting("one"), Noting("two")]).close()
    assert closed == ["one", "two"]


class Offline:
    """A program's own model, without a word about errors."""

    name = "offline"

    async def stream(self, prompt: Prompt) -> Any:
        raise ConnectionError("no route")
        yield

    async def close(self) -> None:
        """Nothing to close."""


async def test_any_exception_of_a_model_is_a_failure_of_the_model() -> None:
    """It went through `run`, and the next model was not asked."""
    both = Failover([Offline(), model("two", "Hello")])
    assert (await complete(both, PROMPT)).text == "Hello"
    with Session(Offline(), settings=Settings()) as session:
        answer = await session.run("Hi")
    assert answer.outcome == "failed"
    assert answer.error == "the stream of offline raised ConnectionError: no route"
    assert isinstance(answer.failure, ModelBroken)
    assert isinstance(answer.failure.__cause__, ConnectionError)
    with pytest.raises(ModelBroken, match="no route"):
        await complete(Failover([Offline(), Offline()]), PROMPT)
