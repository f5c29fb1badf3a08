"""How a server is asked again, and what may come twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.http_server import Server, frame, hello, lines, serving, stream
from neuraxis.errors import ModelBroken, ModelRefused
from neuraxis.messages import Message, Prompt
from neuraxis.models import complete
from neuraxis.models.accumulate import Joiner
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.openai.settings import Options

PROMPT = Prompt(messages=(Message(role="user", content="Hi."),))
QUICK = Options(backoff=0, max_retries=2)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


def error(**given: Any) -> bytes:
    return lines({"error": given}, done=False)


FAILED_USE = error(message="Failed to call", code="tool_use_failed", status_code=400)


async def test_a_failed_use_of_tools_within_a_stream(server: Server) -> None:
    """T: Groq says so amid its answer; the model may write another call."""
    url = server.answers(stream(FAILED_USE), stream(hello()))
    model = OpenAIModel("m", server=url, options=QUICK)
    assert (await complete(model, PROMPT)).text == "Hello"
    assert len(server.requests) == 2
    await model.close()


async def test_a_refusal_within_a_stream_is_final(server: Server) -> None:
    """Another 400 there is not asked again."""
    url = server.answers(stream(error(message="no", code=400)), stream(hello()))
    model = OpenAIModel("m", server=url, options=QUICK)
    with pytest.raises(ModelRefused, match="it says: no"):
        await complete(model, PROMPT)
    assert len(server.requests) == 1
    await model.close()


async def test_reasoning_does_not_hold_back_another_try(server: Server) -> None:
    """It is shown and no part of the reply, so that it may come twice."""
    thought = lines(frame(delta={"reasoning_content": "Hm. "}), done=False)
    busy = error(message="overloaded", code=503)
    url = server.answers(stream(thought, busy), stream(thought, hello()))
    model = OpenAIModel("m", server=url, options=QUICK)
    joined = Joiner()
    async for chunk in model.stream(PROMPT):
        joined.add(chunk)
    assert (joined.text, joined.reasoning) == ("Hello", "Hm. Hm. ")
    await model.close()


async def test_an_error_behind_text_may_be_asked_again_by_others(
    server: Server,
) -> None:
    """The wire does not take text back: `again` says that a session may."""
    said = lines(frame("Hel"), done=False)
    busy = error(message="overloaded", code=503)
    url = server.answers(stream(said, busy), stream(said, end="drop"))
    model = OpenAIModel("m", server=url, options=QUICK)
    for again in (True, False):
        with pytest.raises(ModelBroken) as told:
            await complete(model, PROMPT)
        assert told.value.again is again
    await model.close()


async def test_usage_and_citations_of_servers_that_put_them_elsewhere(
    server: Server,
) -> None:
    """T: Groq's usage and tools of its own, Mistral's cached tokens, OpenRouter's
    annotations.
    """
    cited = {"type": "url_citation", "url_citation": {"url": "u"}}
    groq = frame(finish_reason="stop")
    groq["x_groq"] = {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    mistral = frame(finish_reason="stop")
    mistral["usage"] = {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "num_cached_tokens": 5,
    }
    tool = {"type": "search", "arguments": "{}"}
    url = server.answers(
        stream(lines(frame("x", delta={"executed_tools": [tool]}), groq)),
        stream(lines(frame("x", delta={"annotations": [cited]}), mistral)),
    )
    model = OpenAIModel("m", server=url, options=QUICK)
    first, second = [await complete(model, PROMPT) for _ in range(2)]
    await model.close()
    assert (first.usage.input_tokens, first.annotations) == (7, (tool,))
    assert (second.usage.cached_tokens, second.annotations) == (5, (cited,))
