"""How a server is asked again, and what may come twice."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.http_server import (
    Script,
    Server,
    answer,
    frame,
    hello,
    lines,
    serving,
    stream,
)
from neuraxis.errors import ConfigError, ModelError, ModelRefused, ModelUnavailable
from neuraxis.messages import Message, Part, Prompt
from neuraxis.models import complete, find_model
from neuraxis.models.accumulate import Joiner
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.settings import Settings

PROMPT = Prompt(messages=(Message(role="user", content="Hi."),))
QUICK = Options(backoff=0, max_retries=2)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


def error(**given: Any) -> bytes:
    return lines({"error": given}, done=False)


SAID = lines(frame("Hel"), done=False)
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


@pytest.mark.parametrize(
    ("end", "again"),
    [
        (stream(SAID, error(message="overloaded", code=503)), True),
        (stream(SAID, error(message="x", type="server_error")), True),
        (stream(SAID, error(message="x", type="overloaded_error")), True),
        (stream(SAID, error(message="x", type="a word of its own")), True),
        (stream(SAID, end="drop"), True),
        (stream(SAID), True),
        (stream(SAID, error(message="x", type="invalid_request_error")), False),
        (stream(SAID, error(message="x", code="insufficient_quota")), False),
        (stream(SAID, error(message="too long", type="server_error")), False),
    ],
)
async def test_an_error_behind_text_may_be_asked_again_by_others(
    server: Server, end: Script, again: bool
) -> None:
    """The wire does not take text back: `again` says that a session may."""
    model = OpenAIModel("m", server=server.answers(end), options=QUICK)
    with pytest.raises(ModelError) as told:
        await complete(model, PROMPT)
    assert told.value.again is again
    assert len(server.requests) == 1
    await model.close()


@pytest.mark.parametrize("end", ["drop", "end"])
async def test_a_connection_that_is_cut_before_a_word_is_made_again(
    server: Server, end: str
) -> None:
    """Nothing was given out, so that the wire itself asks again."""
    thought = lines(frame(delta={"reasoning_content": "Hm. "}), done=False)
    cut = stream(thought, end="drop") if end == "drop" else stream(thought)
    model = OpenAIModel("m", server=server.answers(cut, stream(hello())), options=QUICK)
    assert (await complete(model, PROMPT)).text == "Hello"
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


async def test_azure_by_its_name(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resource's address gets the newer path; the name is the deployment's."""
    url = server.answers(stream(hello())).removesuffix("/v1")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", url)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    model = find_model("azure:mine", Settings())
    assert (model.name, (await complete(model, PROMPT)).text) == ("azure:mine", "Hello")
    await model.close()
    request = server.requests[0]
    assert request.path == "/openai/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer k"
    assert request.body["model"] == "mine"
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT")
    with pytest.raises(ConfigError, match=r"azure\.base_url or AZURE_OPENAI_ENDPOINT"):
        find_model("azure:mine", Settings())


async def test_pictures_of_neighbours_are_kept_where_roles_must_alternate(
    server: Server,
) -> None:
    """Two messages of the user become one with all of their parts."""
    refusal = {"error": {"message": "roles must alternate"}}
    url = server.answers(answer(refusal, 400), stream(hello()))
    model = OpenAIModel("m", server=url, options=QUICK)
    picture = Part(media_type="image/png", data=b"x")
    messages = (
        Message(role="user", content="See.", parts=(picture,)),
        Message(role="user", content="Well?"),
    )
    await complete(model, Prompt(messages=messages))
    await model.close()
    (message,) = server.requests[1].body["messages"]
    kinds = [part["type"] for part in message["content"]]
    assert kinds == ["text", "image_url", "text"]


HALF = b'data: {"id":"c","choices":[{"ind'
CUT = gzip.compress(hello(), mtime=0)


@pytest.mark.parametrize(
    "nothing",
    [
        stream(),
        answer(b""),
        stream(b": OPENROUTER PROCESSING\n\n" * 3),
        stream(lines({"choices": [], "usage": {"prompt_tokens": 3}})),
        answer({"id": "x", "choices": [], "usage": {"prompt_tokens": 3}}),
        stream(HALF),
        answer(b'{"id":"c","choices":[{"ind'),
        answer(CUT[: len(CUT) // 2], content_encoding="gzip"),
    ],
    ids=[
        "empty stream",
        "empty document",
        "comments",
        "no choice",
        "no choice in a document",
        "half a frame",
        "half a document",
        "half a file",
    ],
)
async def test_an_answer_without_a_word_is_asked_for_again(
    server: Server, nothing: Script
) -> None:
    """As one that was cut, since a proxy or an overloaded server sends it; and no more
    often than that.
    """
    url = server.answers(nothing, stream(hello()))
    model = OpenAIModel("m", server=url, options=QUICK)
    assert (await complete(model, PROMPT)).text == "Hello"
    assert len(server.requests) == 2
    server.answers(nothing)
    with pytest.raises(ModelError):
        await complete(model, PROMPT)
    assert len(server.requests) == 3
    await model.close()


async def test_a_page_is_not_asked_for_again(server: Server) -> None:
    """It is another server's, or a login's."""
    page = answer(b"<html><title>Log in</title></html>", content_type="text/html")
    model = OpenAIModel("m", server=server.answers(page), options=QUICK)
    with pytest.raises(ModelError, match="is the base URL"):
        await complete(model, PROMPT)
    assert len(server.requests) == 1
    await model.close()


GROQ = (
    "Rate limit reached for model `m` on tokens per minute (TPM): Limit 7000, Used 0, "
    "Requested ~1. Please try again in 2.5s. Visit https://console.groq.com"
)
AZURE = (
    "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version "
    "2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. "
    "Please retry after 2 seconds."
)


@pytest.mark.parametrize(
    ("busy", "seconds"),
    [
        (answer({"error": {"message": GROQ, "code": "rate_limit_exceeded"}}, 429), 2.5),
        (answer({"error": {"message": AZURE, "code": "429"}}, 429), 2),
        (stream(error(message=AZURE, code="429")), 2),
        (answer({"error": {"message": GROQ}}, 429, retry_after="7"), 7),
    ],
)
async def test_a_wait_that_the_words_ask_for(
    server: Server, busy: Script, seconds: float
) -> None:
    """It is respected as one in the header, which comes first."""
    waits: list[float] = []

    async def sleep(wait: float) -> None:
        waits.append(wait)

    url = server.answers(busy, stream(hello()))
    model = OpenAIModel("m", server=url, options=QUICK, sleep=sleep)
    assert (await complete(model, PROMPT)).text == "Hello"
    await model.close()
    assert waits[0] == pytest.approx(seconds)


async def test_a_wait_in_words_that_is_too_long(server: Server) -> None:
    """It ends the request at once, and says how long it is."""
    said = "Limit 100000. Please try again in 7m12.5s."
    url = server.answers(answer({"error": {"message": said}}, 429))
    model = OpenAIModel("m", server=url, options=QUICK)
    with pytest.raises(ModelRefused, match="it asks to wait 432 s"):
        await complete(model, PROMPT)
    assert len(server.requests) == 1
    await model.close()


async def test_a_fault_without_a_reason_says_what_to_do(server: Server) -> None:
    """A bare status helps nobody."""
    url = server.answers(answer({}, 500))
    model = OpenAIModel("m", server=url, options=QUICK)
    with pytest.raises(ModelUnavailable, match="HTTP 500 without a reason; the server"):
        await complete(model, PROMPT)
    await model.close()
