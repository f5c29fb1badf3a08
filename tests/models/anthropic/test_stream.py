"""What is read of answers that differ from the Messages API's own form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.http_server import Server, answer, serving, stream
from neuraxis.errors import ModelBroken, ModelRefused
from neuraxis.messages import Completion, Message, NativeCall, Prompt, Usage
from neuraxis.models import complete
from neuraxis.models.anthropic.model import AnthropicModel
from neuraxis.models.http.settings import Options

PROMPT = Prompt(
    messages=(Message(role="user", content="Hi."),),
    constant=0,
    native_tools=({"function": {"name": "look"}},),
)
Event = dict[str, Any]


async def nobody_waits(seconds: float) -> None:
    """In place of a pause."""


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


@pytest.fixture
async def model(server: Server) -> AsyncIterator[AnthropicModel]:
    options = Options(max_retries=1)
    made = AnthropicModel("m", server=server.url, options=options, sleep=nobody_waits)
    yield made
    await made.close()


def played(*events: Event | bytes) -> bytes:
    """The events as a server writes them."""
    return b"".join(
        event
        if isinstance(event, bytes)
        else f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        for event in events
    )


def begun(**usage: Any) -> Event:
    message = {"role": "assistant", "content": [], "usage": usage}
    return {"type": "message_start", "message": message}


def text(words: str, index: int = 0) -> list[Event]:
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": words}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def ended(reason: str = "end_turn", **usage: Any) -> Event:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": usage}


STOP: Event = {"type": "message_stop"}
HELLO = played(begun(), *text("Hello"), ended(), STOP)


async def asked(server: Server, model: AnthropicModel, *events: Any) -> Completion:
    server.answers(stream(played(*events)))
    return await complete(model, PROMPT)


@pytest.mark.parametrize(
    "after",
    [
        b"data: [DONE]\n\n",
        played(text(" AFTER")[1]),
        played(begun(input_tokens=9), ended("max_tokens")),
        b'event: error\ndata: {"type": "error"}\n\n',
        b"data: no JSON\n\n",
    ],
)
async def test_nothing_counts_behind_the_end(
    server: Server, model: AnthropicModel, after: bytes
) -> None:
    """Gateways put the end mark of another API there, or repeat a piece."""
    got = await asked(server, model, begun(), *text("Hello"), ended(), STOP, after)
    assert (got.text, got.finish_reason) == ("Hello", "stop")


async def test_the_end_mark_of_another_api_is_an_end(
    server: Server, model: AnthropicModel
) -> None:
    """Where a gateway sends it instead of `message_stop`."""
    done = b"data: [DONE]\n\n"
    got = await asked(server, model, begun(), *text("Hello"), ended("max_tokens"), done)
    assert (got.text, got.finish_reason) == ("Hello", "length")


def named(message_id: str) -> Event:
    start = begun()
    return {**start, "message": {**start["message"], "id": message_id}}


async def test_two_answers_in_one_stream_are_no_answer(
    server: Server, model: AnthropicModel
) -> None:
    """A gateway that asks again in the middle joins them: the text came double."""
    first = [named("a"), *text("It is 4")[:2]]
    with pytest.raises(ModelBroken, match="began another answer") as caught:
        await asked(server, model, *first, named("b"), *text("It is 42"), ended(), STOP)
    assert caught.value.again


async def test_a_second_beginning_without_an_id_is_no_other_answer(
    server: Server, model: AnthropicModel
) -> None:
    """It has the usage alone."""
    got = await asked(server, model, named("a"), *text("Hello"), begun(), ended(), STOP)
    assert got.text == "Hello"


async def test_a_beginning_that_is_repeated_does_no_harm(
    server: Server, model: AnthropicModel
) -> None:
    """Before the first block, or the same one again."""
    events = [named("a"), named("b"), *text("Hello"), named("b"), ended(), STOP]
    assert (await asked(server, model, *events)).text == "Hello"


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        # proxies write zeros for what they do not know
        (
            {"input_tokens": 100, "output_tokens": 1},
            {"input_tokens": 0, "output_tokens": 20},
            (100, 20),
        ),
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 100, "output_tokens": 20},
            (100, 20),
        ),
        (
            {"input_tokens": 100, "output_tokens": 1},
            {"input_tokens": None, "output_tokens": 20},
            (100, 20),
        ),
        ({"input_tokens": 7, "output_tokens": 0}, {"output_tokens": 0}, (7, 0)),
        # some write numbers as texts or fractions
        (
            {"input_tokens": "100", "output_tokens": "1"},
            {"input_tokens": "0", "output_tokens": 20.0},
            (100, 20),
        ),
    ],
)
async def test_a_zero_never_replaces_a_known_count(
    server: Server,
    model: AnthropicModel,
    start: Event,
    end: Event,
    expected: tuple[int, int],
) -> None:
    """The last known number of each kind counts."""
    got = await asked(server, model, begun(**start), *text("Hi"), ended(**end), STOP)
    usage = Usage(input_tokens=expected[0], output_tokens=expected[1])
    assert got.usage == usage


async def test_an_input_that_is_an_object_is_read(
    server: Server, model: AnthropicModel
) -> None:
    """Some servers send the value instead of a piece of its text."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": {"city": "Zürich"}}
    got = await asked(
        server,
        model,
        begun(),
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        ended("tool_use"),
        STOP,
    )
    arguments = '{"city": "Zürich"}'
    call = NativeCall(id="toolu_1", name="look", arguments=arguments)
    assert got.tool_calls == (call,)


async def test_a_whole_message_as_one_event_is_read(
    server: Server, model: AnthropicModel
) -> None:
    """A server that does not stream may still answer in events."""
    message = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    got = await asked(server, model, message)
    assert (got.text, got.finish_reason) == ("Hello", "stop")
    assert got.usage == Usage(input_tokens=3, output_tokens=2)


async def test_an_error_in_plain_words_is_asked_again(
    server: Server, model: AnthropicModel
) -> None:
    """It is of a proxy or an overloaded server, as is the same with a status."""
    error = stream(b"event: error\ndata: Service Unavailable\n\n")
    server.answers(error, stream(HELLO))
    assert (await complete(model, PROMPT)).text == "Hello"
    server.answers(error)
    with pytest.raises(ModelBroken, match="it says: Service Unavailable"):
        await complete(model, PROMPT)
    assert len(server.requests) == 2


def searched(name: str) -> list[Event]:
    """A search of the server's own tools."""
    block = {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    ]


async def test_a_paused_turn_goes_on(server: Server, model: AnthropicModel) -> None:
    """What it wrote is sent back as it is; its text and tokens are the reply's."""
    paused = ended("pause_turn", output_tokens=2)
    paused["delta"]["container"] = {"id": "box", "expires_at": "2026-01-01"}
    server.answers(
        stream(played(begun(input_tokens=3), *searched("s1"), paused, STOP)),
        stream(
            played(
                begun(input_tokens=5), *searched("s2"), *text("One. ", 1), paused, STOP
            )
        ),
        answer({"type": "error", "error": {"type": "overloaded_error"}}, status=529),
        stream(
            played(begun(input_tokens=7), *text("Two."), ended(output_tokens=4), STOP)
        ),
    )
    got = await complete(model, PROMPT)
    assert (got.text, got.finish_reason) == ("One. Two.", "stop")
    assert got.usage == Usage(input_tokens=15, output_tokens=8)
    first, second, _, last = (request.body for request in server.requests)
    assert len(first["messages"]) == 1
    assert "container" not in first
    assert [block["id"] for block in second["messages"][1]["content"]] == ["s1"]
    assert len(last["messages"]) == 2
    turn = last["messages"][1]
    assert turn["role"] == "assistant"
    assert [block.get("id") for block in turn["content"]] == ["s1", "s2", None]
    assert last["container"] == "box"
    blocks = json.loads(got.carried)["blocks"]
    assert blocks[:3] == turn["content"]
    assert blocks[3] == {"type": "text", "text": "Two."}


async def test_a_paused_turn_that_fails_later_is_paid(
    server: Server, model: AnthropicModel
) -> None:
    """Its requests were answered, so their tokens count."""
    paused = ended("pause_turn", output_tokens=2)
    refusal = {"type": "error", "error": {"type": "invalid_request_error"}}
    server.answers(
        stream(played(begun(input_tokens=3), *searched("s1"), paused, STOP)),
        answer(refusal, status=400),
    )
    used: list[Usage | None] = []
    with pytest.raises(ModelRefused):
        await complete(model, PROMPT, lambda chunk: used.append(chunk.usage))
    assert Usage(input_tokens=3, output_tokens=2) in used


@pytest.mark.parametrize("words", ["Let me search further.", ""])
async def test_a_turn_that_pauses_for_ever_is_no_answer(
    server: Server, model: AnthropicModel, words: str
) -> None:
    """The error says why, and what to do; it is not the text so far."""
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    with pytest.raises(ModelBroken, match=r"pause_turn.*max_uses"):
        await asked(
            server,
            model,
            begun(),
            {"type": "content_block_start", "index": 0, "content_block": search},
            {"type": "content_block_stop", "index": 0},
            *(text(words, 1) if words else ()),
            ended("pause_turn"),
            STOP,
        )


async def test_a_paused_turn_with_calls_goes_on_with_their_results(
    server: Server, model: AnthropicModel
) -> None:
    """They are run: the next request sends the turn back with them."""
    block = {"type": "tool_use", "id": "t", "name": "look", "input": {"at": "x"}}
    content = {"content": [block], "stop_reason": "pause_turn"}
    server.answers(answer({"type": "message", **content}))
    got = await complete(model, PROMPT)
    assert got.tool_calls == (NativeCall(id="t", name="look", arguments='{"at": "x"}'),)


async def test_a_whole_message_behind_its_pieces_is_no_second_one(
    server: Server, model: AnthropicModel
) -> None:
    """Its calls ran twice."""
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    whole = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hello"}, use],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    pieces = [
        begun(input_tokens=3),
        *text("Hello"),
        {"type": "content_block_start", "index": 1, "content_block": use},
        {"type": "content_block_stop", "index": 1},
    ]
    server.answers(stream(played(*pieces, whole)))
    found = await complete(model, PROMPT)
    assert (found.text, len(found.tool_calls)) == ("Hello", 1)


async def test_an_unnamed_ping_does_not_end_the_answer(
    server: Server, model: AnthropicModel
) -> None:
    """`message` is the name that events without one have."""
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    ping = b"event: message\ndata: {}\n\n"
    server.answers(
        stream(
            played(begun(), ping, *text("Hello"), ping, end, {"type": "message_stop"})
        )
    )
    assert (await complete(model, PROMPT)).text == "Hello"


async def test_a_refused_key_in_plain_words_is_final(
    server: Server, model: AnthropicModel
) -> None:
    """It was asked for four times."""
    server.answers(stream(b"event: error\ndata: invalid x-api-key\n\n"))
    with pytest.raises(ModelBroken, match="invalid x-api-key"):
        await complete(model, PROMPT)
    assert len(server.requests) == 1
