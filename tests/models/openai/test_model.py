"""The client of OpenAI-like servers against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from models.http_server import (
    Script,
    Server,
    answer,
    frame,
    hang_up,
    hello,
    lines,
    serving,
    silence,
    stream,
)
from neuraxis.errors import (
    ConfigError,
    ModelBroken,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from neuraxis.messages import Chunk, Message, NativeCall, Prompt, Usage
from neuraxis.models import complete, find_model
from neuraxis.models.http.server_hints import unreachable
from neuraxis.models.http.settings import Endpoint, Options
from neuraxis.models.openai.model import OpenAIModel

PROMPT = Prompt(
    messages=(
        Message(role="system", content="You are brief."),
        Message(role="user", content="Hi"),
    ),
    stop=("<end>",),
)
QUICK = Options(max_retries=0, first_byte_timeout=5, stall_timeout=5)
WHOLE = frame("Hello", finish_reason="stop")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


@pytest.fixture
async def ask(server: Server) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """`ask(*scripts, **options of the model)`: the completion of PROMPT."""
    models: list[OpenAIModel] = []

    async def asked(*scripts: Script, prompt: Prompt = PROMPT, **given: Any) -> Any:
        on_chunk = given.pop("on_chunk", None)
        server.answers(*scripts)
        given.setdefault("options", QUICK)
        models.append(OpenAIModel("m", server=server.url, **given))
        return await complete(models[-1], prompt, on_chunk)

    yield asked
    for model in models:
        await model.close()


Ask = Callable[..., Awaitable[Any]]


class Sleeps(list[float]):
    """Stands for `asyncio.sleep`: notes how long it should have slept."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


# --- what is sent --------------------------------------------------------------


async def test_the_request(ask: Ask, server: Server) -> None:
    """Messages, stop texts and options are sent; usage is asked for."""
    options = Options(
        max_retries=0,
        temperature=0.0,
        top_p=0.9,
        max_tokens=64,
        seed=7,
        extra={"top_k": 3},
    )
    completion = await ask(stream(hello()), options=options)
    assert ("Hello", Usage(input_tokens=3, output_tokens=2)) == (
        completion.text,
        completion.usage,
    )
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You are brief."},
            {"role": "user", "content": "Hi"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "stop": ["<end>"],
        "temperature": 0.0,
        "top_p": 0.9,
        "max_tokens": 64,
        "seed": 7,
        "top_k": 3,
    }


async def test_native_tools_and_their_messages(ask: Ask, server: Server) -> None:
    """Tools, the calls of a turn and their results are sent in the native form."""
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}
    call = NativeCall(id="c1", name="add", arguments='{"x": 1}')
    messages = (
        Message(role="user", content="Add."),
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="2", tool_call_id="c1"),
    )
    await ask(stream(hello()), prompt=Prompt(messages=messages, native_tools=(tool,)))
    body = server.requests[0].body
    assert [tool] == body["tools"]
    assert body["messages"] == [
        {"role": "user", "content": "Add."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"x": 1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]


async def test_tool_messages_without_native_tools(ask: Ask, server: Server) -> None:
    """A text dialect's results go as the user's words: servers refuse the role."""
    messages = (Message(role="tool", content="2", tool_call_id="c1"),)
    await ask(stream(hello()), prompt=Prompt(messages=messages))
    assert server.requests[0].body["messages"] == [{"role": "user", "content": "2"}]


async def test_half_a_character_can_be_sent(ask: Ask, server: Server) -> None:
    """Half a surrogate pair in a tool's output does not stop the session."""
    prompt = Prompt(messages=(Message(role="user", content="a\ud83d"),))
    await ask(stream(hello()), prompt=prompt)
    assert server.requests[0].body["messages"][0]["content"] == "a?"


async def test_connections_are_used_again(server: Server) -> None:
    """Two prompts, one connection."""
    server.answers(stream(hello()))
    model = OpenAIModel("m", server=server.url, options=QUICK)
    for _ in range(3):
        await complete(model, PROMPT)
    await model.close()
    assert (len(server.requests), server.connections) == (3, 1)


# --- what comes back -----------------------------------------------------------

_DATA = hello("Hé\U0001f600")
QUIRKS: dict[str, tuple[list[bytes], str]] = {
    "comments": ([b": ping\n\n:\n\n" + hello()], "Hello"),
    "named events": (
        [b"event: ping\ndata: pong\n\nevent: message\n" + hello()],
        "Hello",
    ),
    "other named JSON events": (
        [b'event: trace\ndata: {"x": 1}\n\n' + hello()],
        "Hello",
    ),
    "id and retry fields": ([b"id: 1\nretry: 5\n" + hello()], "Hello"),
    "CR LF": ([hello().replace(b"\n", b"\r\n")], "Hello"),
    "CR LF cut in two": (
        [bytes([byte]) for byte in hello().replace(b"\n", b"\r\n")],
        "Hello",
    ),
    "CR": ([hello().replace(b"\n", b"\r")], "Hello"),
    "byte order mark": ([b"\xef\xbb\xbf" + hello()], "Hello"),
    "byte order mark in pieces": ([b"\xef", b"\xbb", b"\xbf" + hello()], "Hello"),
    "no space after the colon": ([hello().replace(b"data: ", b"data:")], "Hello"),
    "data over several lines": (
        [
            b'data: {"choices": [{"delta":\ndata: {"content": "Hello"},\n'
            b'data: "finish_reason": "stop"}]}\n\n'
        ],
        "Hello",
    ),
    "no blank lines": ([hello().replace(b"\n\n", b"\n")], "Hello"),
    "byte by byte": ([bytes([byte]) for byte in _DATA], "Hé\U0001f600"),
    "three bytes at a time": (
        [_DATA[start : start + 3] for start in range(0, len(_DATA), 3)],
        "Hé\U0001f600",
    ),
    "raw UTF-8 byte by byte": (
        [
            bytes([byte])
            for byte in lines(
                json.dumps(
                    frame("é\u4e16\U0001f600", finish_reason="stop"), ensure_ascii=False
                )
            )
        ],
        "é\u4e16\U0001f600",
    ),
    "no [DONE]": ([lines(WHOLE, done=False)], "Hello"),
    "no [DONE] and no last line end": ([lines(WHOLE, done=False).rstrip()], "Hello"),
    "[DONE] without line end": ([lines(WHOLE, done=False) + b"data: [DONE]"], "Hello"),
    "no finish reason but [DONE]": ([lines(frame("Hello"))], "Hello"),
    "no index, role, id or object": (
        [
            lines(
                {"choices": [{"delta": {"content": "Hello"}}]},
                {"choices": [{"finish_reason": "stop"}]},
            )
        ],
        "Hello",
    ),
    "null everywhere": (
        [
            lines(
                {"choices": None, "usage": None, "error": None},
                {"choices": [{"index": None, "delta": None}]},
                frame(delta={"content": None, "role": None, "tool_calls": None}),
                WHOLE,
            )
        ],
        "Hello",
    ),
    "extra keys": ([lines({**WHOLE, "x": {"y": [1]}, "timings": {}})], "Hello"),
    "a message for a delta": (
        [
            lines(
                {
                    "choices": [
                        {"message": {"content": "Hello"}, "finish_reason": "stop"}
                    ]
                }
            )
        ],
        "Hello",
    ),
    "content in parts": (
        [
            lines(
                frame(
                    delta={"content": [{"type": "text", "text": "Hello"}]},
                    finish_reason="stop",
                )
            )
        ],
        "Hello",
    ),
    "a second choice": (
        [lines({"choices": [{"index": 1, "delta": {"content": "no"}}]}, WHOLE)],
        "Hello",
    ),
    "invalid UTF-8": (
        [
            lines(frame("He"), done=False),
            b'data: {"choices":[{"delta":{"content":"\xff"},'
            b'"finish_reason":"stop"}]}\n\n',
        ],
        "He\ufffd",
    ),
    "a surrogate pair in two frames": (
        [
            b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n'
            b'data: {"choices":[{"delta":{"content":"\\ude00b"},'
            b'"finish_reason":"stop"}]}\n\n'
        ],
        "a\U0001f600b",
    ),
    "half a surrogate pair": (
        [
            b'data: {"choices":[{"delta":{"content":"a\\ud83d"},'
            b'"finish_reason":"stop"}]}\n\n'
        ],
        "a\ufffd",
    ),
}


@pytest.mark.parametrize("name", QUIRKS)
async def test_quirks_of_servers(name: str, ask: Ask) -> None:
    """Whatever a server does to the stream, the text arrives whole."""
    portions, expected = QUIRKS[name]
    completion = await ask(stream(*portions))
    assert (expected, "stop") == (completion.text, completion.finish_reason)
    completion.text.encode("utf-8")


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
async def test_a_server_that_does_not_stream(content_type: str, ask: Ask) -> None:
    """A whole JSON answer is read as one, whatever its content type says."""
    body = {
        "choices": [{"message": {"content": "Hé"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 1},
    }
    completion = await ask(answer(body, content_type=content_type))
    assert (
        completion.text,
        completion.finish_reason,
        completion.usage.input_tokens,
    ) == ("Hé", "length", 4)


async def test_a_json_answer_in_pieces(ask: Ask) -> None:
    """A document may come in any portions, with blanks first."""
    raw = json.dumps({"choices": [{"message": {"content": "Hello"}}]}).encode()
    pieces = [b" ", b"\n", *(raw[at : at + 5] for at in range(0, len(raw), 5))]
    script = stream(*pieces, content_type="application/json")
    assert (await ask(script)).text == "Hello"


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_reasoning_is_no_text(key: str, ask: Ask) -> None:
    """Reasoning is passed on apart from the text."""
    seen: list[Chunk] = []
    body = lines(frame(delta={key: "Hm."}), WHOLE)
    completion = await ask(stream(body), on_chunk=seen.append)
    assert (completion.text, "".join(c.reasoning for c in seen)) == ("Hello", "Hm.")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_calls"),
        ("STOP", "stop"),
        ("something_new", "stop"),
    ],
)
async def test_finish_reasons(given: str, expected: str, ask: Ask) -> None:
    """The servers' words are mapped; an unknown one is noted."""
    seen: list[Chunk] = []
    body = lines(frame("x", finish_reason=given))
    completion = await ask(stream(body), on_chunk=seen.append)
    assert expected == completion.finish_reason
    assert (given == "something_new") == ("something_new" in seen[-1].note)


@pytest.mark.parametrize(
    "pieces",
    [
        [
            {"id": "a", "function": {"name": "f", "arguments": '{"x"'}},
            {"function": {"arguments": ": 1}"}},
            {"id": "b", "function": {"name": "g", "arguments": ""}},
            {"function": {"arguments": "{}"}},
        ],
        [
            {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
            {"id": "b", "function": {"name": "g", "arguments": {}}},
        ],
        [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
            {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}},
            {"index": 0, "id": "", "function": {"name": "", "arguments": '{"x": 1}'}},
            {"index": 1, "id": "b", "function": {"name": "g", "arguments": "}"}},
        ],
        [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}},
            {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}},
        ],
        [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}},
            {"index": 0, "id": "a2", "function": {"arguments": ": 1}"}},
            {"index": 0, "id": "b", "function": {"name": "g", "arguments": ""}},
            {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}},
        ],
        [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "id": "a2", "function": {"name": "f", "arguments": '{"x"'}},
            {"index": 0, "id": "a3", "function": {"name": "f", "arguments": ": 1}"}},
            {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{"}},
            {"index": 0, "id": "b2", "function": {"name": "g", "arguments": "}"}},
        ],
    ],
    ids=[
        "no index",
        "arguments as objects",
        "mixed, with repeats",
        "all of index 0 (Ollama, Gemini)",
        "all of index 0, in pieces, with new ids",
        "a new id and the name with each piece",
    ],
)
async def test_tool_calls_of_quirky_servers(pieces: list[Any], ask: Ask) -> None:
    """Pieces are joined by index, id or order."""
    frames = [frame(delta={"tool_calls": [piece]}) for piece in pieces]
    completion = await ask(stream(lines(*frames, frame(finish_reason="tool_calls"))))
    assert (
        NativeCall(id="a", name="f", arguments='{"x": 1}'),
        NativeCall(id="b", name="g", arguments="{}"),
    ) == completion.tool_calls


@pytest.mark.parametrize("again", [{}, {"name": "f"}, {"id": "a", "name": "f"}])
async def test_arguments_that_are_said_once_more(
    again: dict[str, str], ask: Ask
) -> None:
    """Some gateways end a call with all of its arguments: it is one call, as it was."""
    name = {"name": again["name"]} if "name" in again else {}
    last = {"index": 0, "function": {**name, "arguments": '{"x": 1}'}}
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
        {**last, "id": again["id"]} if "id" in again else last,
    ]
    frames = [frame(delta={"tool_calls": [piece]}) for piece in pieces]
    completion = await ask(stream(lines(*frames, frame(finish_reason="tool_calls"))))
    call = NativeCall(id="a", name="f", arguments='{"x": 1}')
    assert completion.tool_calls == (call,)


async def test_tool_calls_of_one_index_without_ids(ask: Ask) -> None:
    """A name behind a whole call begins another one; more of it would spoil it."""
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"index": 0, "id": "", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "id": "", "function": {"name": "f", "arguments": '{"x": 2}'}},
    ]
    frames = [frame(delta={"tool_calls": [piece]}) for piece in pieces]
    completion = await ask(stream(lines(*frames, frame(finish_reason="tool_calls"))))
    calls = completion.tool_calls
    assert [call.arguments for call in calls] == ['{"x": 1}', '{"x": 2}']
    assert len({call.id for call in calls}) == 2


async def test_tool_calls_without_ids(ask: Ask) -> None:
    """Each gets an id of its own, since results are joined by it."""
    calls = [{"index": i, "function": {"name": "f", "arguments": "{}"}} for i in (0, 1)]
    body = lines(frame(delta={"tool_calls": calls}, finish_reason="tool_calls"))
    first = await ask(stream(body))
    second = await ask(stream(body))
    ids = {call.id for call in (*first.tool_calls, *second.tool_calls)}
    assert len(ids) == 4


async def test_a_stream_that_is_not_ended(ask: Ask) -> None:
    """With finish reason and usage there, silence afterwards is not waited for."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    body = lines(WHOLE, {"choices": [], "usage": usage}, done=False)
    started = time.monotonic()
    assert (await ask(stream(body, end="stall"))).text == "Hello"
    assert time.monotonic() - started < 1.5


@pytest.mark.parametrize("reason", ["stop", "null"])
async def test_a_reason_with_every_piece_ends_nothing(
    reason: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateways to Gemini write "stop" in each frame, old koboldcpp writes "null"."""
    monkeypatch.setattr("neuraxis.models.http.model._AFTER_END", 0.05)
    usage = {"prompt_tokens": 1, "completion_tokens": 1}

    async def slowly(writer: asyncio.StreamWriter) -> None:
        await stream(end="open")(writer)
        for text in ("Hel", "lo"):
            body = lines({**frame(text, finish_reason=reason), "usage": usage})
            body = body.removesuffix(b"data: [DONE]\n\n")
            writer.write(b"%x\r\n%s\r\n" % (len(body), body))
            await asyncio.sleep(0.15)
        last = lines(frame(finish_reason="length"))
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))

    completion = await ask(slowly)
    assert (completion.text, completion.finish_reason) == ("Hello", "length")


async def test_a_drop_between_pieces_with_reasons(ask: Ask) -> None:
    """Where a reason was not the last word, a broken stream is a broken answer."""
    body = lines(WHOLE, WHOLE, done=False)
    with pytest.raises(ModelBroken, match="broke off"):
        await ask(stream(body, end="drop"))


async def test_a_whole_message_behind_its_deltas_is_no_more_text(ask: Ask) -> None:
    """MiniMax ends a stream with all of it once more: nothing is said or done twice."""
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hello", "tool_calls": [piece]}
    body = lines(
        frame("Hel"),
        frame("lo"),
        frame(delta={"tool_calls": [piece]}),
        {
            "object": "chat.completion",
            "choices": [{"finish_reason": "tool_calls", "message": message}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 2},
        },
    )
    completion = await ask(stream(body))
    assert completion.text == "Hello"
    assert completion.tool_calls == (NativeCall(id="a", name="f", arguments="{}"),)
    assert completion.finish_reason == "tool_calls"
    assert completion.usage.input_tokens == 7


async def test_a_drop_after_the_finish_reason(ask: Ask) -> None:
    """What is complete is complete."""
    assert (await ask(stream(lines(WHOLE, done=False), end="drop"))).text == "Hello"


# --- broken --------------------------------------------------------------------

BROKEN: dict[str, tuple[Script, str]] = {
    "dropped": (stream(lines(frame("He"), done=False), end="drop"), "broke off"),
    "ended": (stream(lines(frame("He"), done=False)), "before the answer's end"),
    "half a frame": (
        stream(lines(frame("He"), done=False) + b'data: {"cho'),
        "not JSON",
    ),
    "error frame": (
        stream(lines(frame("He"), {"error": {"message": "out of memory"}})),
        "out of memory",
    ),
    "error event": (
        stream(
            lines(frame("He"), done=False)
            + b'event: error\ndata: {"message": "gone"}\n\n'
        ),
        "gone",
    ),
    "error event of plain text": (
        stream(lines(frame("He"), done=False) + b"event: error\ndata: gone\n\n"),
        "gone",
    ),
    "error as a field of its own (llama.cpp until 2025)": (
        stream(
            lines(frame("He"), done=False)
            + b'error: {"code":500,"message":"context size"}\n\ndata: [DONE]\n\n'
        ),
        "context size",
    ),
    "an object of errors": (
        stream(lines(frame("He"), {"object": "error", "message": "no memory"})),
        "no memory",
    ),
    "an error code without an error (FastChat)": (
        stream(lines(frame("He"), {"text": "NETWORK ERROR", "error_code": 50001})),
        "reports an error",
    ),
    "finish reason error": (
        stream(lines(frame("He", finish_reason="error"))),
        "'error'",
    ),
    "frame that is not JSON": (stream(lines(frame("He"), "oops")), "not JSON"),
    "nested too deep": (stream(lines(frame("He"), "[" * 100_000)), "not JSON"),
    "delta that is no object": (
        stream(lines(frame("He"), {"choices": [{"delta": "text"}]})),
        "no object",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_after_the_first_chunk(
    name: str, ask: Ask, server: Server
) -> None:
    """An error, once; what was said stands, no end is made up, nothing is repeated."""
    script, expected = BROKEN[name]
    seen: list[Chunk] = []
    options = Options(max_retries=3, backoff=0)
    with pytest.raises(ModelBroken, match=expected):
        await ask(script, stream(hello()), options=options, on_chunk=seen.append)
    assert "".join(chunk.text for chunk in seen) == "He"
    assert not [chunk for chunk in seen if chunk.finish_reason or chunk.note]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (answer(b"<html>Welcome", content_type="text/html"), "base URL"),
        (answer(b"", content_type="text/event-stream"), "no completion"),
        (stream(lines()), "no completion"),
        (answer(b'{"choices": [', content_type="application/json"), "JSON document"),
        (answer({"hello": 1}), "no completion"),
        (answer([]), "no JSON object"),
        (answer(status=204), "HTTP 204"),
    ],
)
async def test_answers_that_are_none(script: Script, expected: str, ask: Ask) -> None:
    """A page, an empty answer, half a document: an error that says what came."""
    with pytest.raises(ModelBroken, match=expected):
        await ask(script)


async def test_errors_in_an_answer_with_status_200(ask: Ask) -> None:
    """Some servers put the refusal into the body of a 200."""
    with pytest.raises(ModelRefused, match="no such model") as caught:
        await ask(answer({"error": {"message": "no such model", "code": 404}}))
    assert caught.value.status == 404


async def test_an_error_frame_first_is_asked_again(ask: Ask, server: Server) -> None:
    """An overload that is told inside the stream counts as the status it names."""
    overload = stream(lines({"error": {"message": "busy", "code": 503}}))
    options = Options(backoff=0)
    assert (await ask(overload, stream(hello()), options=options)).text == "Hello"
    assert len(server.requests) == 2


# --- refusals and retries ------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"error": {"message": "bad temperature", "type": "x"}},
            "400: bad temperature",
        ),
        ({"error": "bad temperature"}, "400: bad temperature"),
        ({"message": "bad\n\n temperature"}, "400: bad temperature"),
        ({"detail": [{"loc": ["body"], "msg": "bad"}, {"msg": "worse"}]}, "bad; worse"),
        (b"plain words", "400: plain words"),
        (b"<html>page</html>", "HTTP 400$"),
        (b"", "HTTP 400$"),
    ],
)
async def test_a_refusal_gives_the_servers_words(
    body: Any, expected: str, ask: Ask
) -> None:
    """The server's message, on one line, whatever shape it comes in."""
    with pytest.raises(ModelRefused, match=expected) as caught:
        await ask(answer(body, 400))
    assert caught.value.status == 400


async def test_a_long_message_is_cut(ask: Ask) -> None:
    """A server's message cannot fill the screen."""
    with pytest.raises(ModelRefused) as caught:
        await ask(answer({"error": {"message": "long " * 500}}, 404))
    assert len(str(caught.value)) < 450


async def test_usage_is_not_asked_where_it_is_refused(server: Server) -> None:
    """Refused with 400: left out, asked once more, and remembered."""
    refusal = answer({"error": "unknown field stream_options"}, 400)
    server.answers(refusal, stream(hello()))
    model = OpenAIModel("m", server=server.url, options=QUICK)
    for _ in range(2):
        assert (await complete(model, PROMPT)).text == "Hello"
    await model.close()
    asked = ["stream_options" in request.body for request in server.requests]
    assert asked == [True, False, False]


async def test_a_refusal_of_something_else(server: Server) -> None:
    """The second refusal is the one that is told; then it is not tried again."""
    server.answers(stream(hello()), answer({"error": "too long"}, 400))
    model = OpenAIModel("m", server=server.url, options=QUICK)
    await complete(model, PROMPT)
    with pytest.raises(ModelRefused, match="too long"):
        await complete(model, PROMPT)
    await model.close()
    assert len(server.requests) == 2


async def test_max_completion_tokens(ask: Ask, server: Server) -> None:
    """Newer models want the limit under another name, and say so."""
    refusal = answer({"error": "use 'max_completion_tokens' instead"}, 400)
    options = Options(max_retries=0, max_tokens=9)
    await ask(refusal, stream(hello()), options=options)
    body = server.requests[1].body
    assert (body["max_completion_tokens"], "max_tokens" in body) == (9, False)
    assert "stream_options" in body


async def test_429_with_retry_after(ask: Ask, server: Server) -> None:
    """The server's wait is kept, and told by a chunk's note."""
    sleeps = Sleeps()
    seen: list[Chunk] = []
    busy = answer({"error": "slow down"}, 429, retry_after="7")
    completion = await ask(
        busy, stream(hello()), options=Options(), sleep=sleeps, on_chunk=seen.append
    )
    assert (completion.text, sleeps, len(server.requests)) == ("Hello", [7.0], 2)
    assert "slow down" in seen[0].note


async def test_429_with_a_delay_in_its_body(ask: Ask) -> None:
    """Google has no header for it."""
    sleeps = Sleeps()
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13s"}
    refusal = [{"error": {"code": 429, "message": "quota", "details": [info]}}]
    await ask(
        answer(refusal, 429),
        stream(hello()),
        options=Options(max_retries=1),
        sleep=sleeps,
    )
    assert sleeps == [13]


async def test_retry_after_as_a_date(ask: Ask) -> None:
    """HTTP allows a date."""
    sleeps = Sleeps()
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    busy = answer(b"", 503, retry_after=date)
    await ask(busy, stream(hello()), options=Options(), sleep=sleeps)
    assert 15 < sleeps[0] <= 20


@pytest.mark.parametrize(
    "text",
    [
        *("soon", "-5", "nan", "1e9", "Mon, 99 Foo 2026"),
        "Wed, 21 Oct 2015 07:28:00 +99999999999999999999",
        "Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
    ],
)
async def test_retry_after_that_is_nonsense(text: str, ask: Ask) -> None:
    """It is as if it were not there."""
    sleeps = Sleeps()
    busy = answer(b"", 503, retry_after=text)
    await ask(busy, stream(hello()), options=Options(), sleep=sleeps)
    assert 0 < sleeps[0] <= 0.5


async def test_retry_after_that_is_too_long(ask: Ask, server: Server) -> None:
    """A wait beyond the time for retries is told instead of waited."""
    sleeps = Sleeps()
    busy = answer({"error": "quota"}, 429, retry_after="3600")
    with pytest.raises(ModelRefused, match="asks to wait 3600 s"):
        await ask(busy, options=Options(), sleep=sleeps)
    assert (sleeps, len(server.requests)) == ([], 1)


async def test_three_errors_then_an_answer(ask: Ask, server: Server) -> None:
    """Waits grow, with jitter, and the third retry succeeds."""
    sleeps = Sleeps()
    failing = answer({"error": "oops"}, 500)
    completion = await ask(
        failing, failing, failing, stream(hello()), options=Options(), sleep=sleeps
    )
    assert (completion.text, len(server.requests)) == ("Hello", 4)
    for wait, most in zip(sleeps, (0.5, 1.0, 2.0), strict=True):
        assert most / 2 <= wait <= most


async def test_errors_without_end(ask: Ask, server: Server) -> None:
    """After the last retry the server's own message is told."""
    with pytest.raises(ModelUnavailable, match="HTTP 502: bad gateway") as caught:
        await ask(
            answer(b"bad gateway", 502),
            options=Options(max_retries=2),
            sleep=Sleeps(),
        )
    assert (caught.value.status, len(server.requests)) == (502, 3)


async def test_the_time_for_retries_ends(ask: Ask, server: Server) -> None:
    """No retry begins later than `retry_seconds` after the start."""
    clock = iter([0.0, 10.0, 200.0])
    options = Options(max_retries=9, retry_seconds=60)
    with pytest.raises(ModelUnavailable):
        await ask(
            answer(b"", 500), options=options, sleep=Sleeps(), now=lambda: next(clock)
        )
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_refusals_are_not_repeated(status: int, ask: Ask, server: Server) -> None:
    """A 4xx is final: the same request gets the same answer."""
    sleeps = Sleeps()
    with pytest.raises(ModelRefused) as caught:
        await ask(answer(b"no", status), options=Options(), sleep=sleeps)
    assert (status, []) == (caught.value.status, sleeps)


async def test_an_empty_account_is_not_waited_for(ask: Ask, server: Server) -> None:
    """429 with `insufficient_quota` does not go away by waiting."""
    error = {"error": {"message": "no money", "code": "insufficient_quota"}}
    with pytest.raises(ModelRefused, match="no money"):
        await ask(answer(error, 429), options=Options(), sleep=Sleeps())
    assert len(server.requests) == 1


async def test_redirects_are_not_followed(ask: Ask, server: Server) -> None:
    """Prompt and key stay with the server that was named."""
    away = answer(b"", 307, location="https://elsewhere.example/v1?key=abc")
    with pytest.raises(ModelRefused, match="redirects to https://else") as caught:
        await ask(away, options=Options())
    assert "abc" not in str(caught.value)
    assert len(server.requests) == 1


async def test_a_connection_that_is_hung_up(ask: Ask, server: Server) -> None:
    """Nothing was answered, so the request is repeated."""
    sleeps = Sleeps()
    completion = await ask(hang_up, stream(hello()), options=Options(), sleep=sleeps)
    assert (completion.text, len(server.requests), len(sleeps)) == ("Hello", 2, 1)


async def test_no_server(unused_tcp_port_factory: Callable[[], int]) -> None:
    """Nobody listens: tried again, then one plain sentence."""
    sleeps = Sleeps()
    port = unused_tcp_port_factory()
    model = OpenAIModel("m", server=f"http://127.0.0.1:{port}", sleep=sleeps)
    with pytest.raises(
        ModelUnavailable,
        match=rf":{port}: cannot be reached: .*\. Is the server started, and on this "
        rf"port\? Usual are 11434 for Ollama .*:{port}/v1 comes .*openai\.base_url",
    ):
        await complete(model, PROMPT)
    await model.close()
    assert len(sleeps) == 3


@pytest.mark.parametrize(
    ("url", "reason", "words"),
    [
        (
            "http://127.0.0.1:11434/v1",
            "refused",
            "started? 11434 is the port of Ol",
        ),
        (
            "http://box:8000/v1",
            "refused",
            "is the port of vLLM (`vllm serve NAME`)",
        ),
        ("http://localhost:8080/v1", "refused", "port of llama.cpp (`llama-server`)"),
        ("http://127.0.0.1/v1", "refused", "and on this port? Usual are 11434 for Oll"),
        ("https://a.example/v1", "refused", "Is the network there, and does it need a"),
        (
            "https://a.exampel/v1",
            "[Errno -2] Name or service not known",
            "spelt right?",
        ),
        (
            "https://localhost:8000/v1",
            "[SSL: WRONG_VERSION_NUMBER]",
            "write http://localhost:8000/",
        ),
        (
            "https://box:8000/v1",
            "[SSL: WRONG_VERSION_NUMBER]",
            "is the port right? With http://box:8000/v1 the key",
        ),
        ("https://box/v1", "[SSL: CERTIFICATE_VERIFY_FAILED]", "in SSL_CERT_FILE"),
    ],
)
def test_what_to_do_about_a_server_out_of_reach(
    url: str, reason: str, words: str
) -> None:
    """Each reason has its advice, with the port where it says which server it is."""
    assert words in unreachable(Endpoint(url=url), reason)


async def test_a_404_names_what_was_asked(ask: Ask, server: Server) -> None:
    """A wrong path and a wrong model look the same from here: both are named."""
    with pytest.raises(
        ModelRefused, match=r"/v1/chat/completions and the model.s name right"
    ):
        await ask(answer(b"no", 404), options=Options())


# --- time ----------------------------------------------------------------------


async def test_no_answer_in_time(ask: Ask, server: Server) -> None:
    """The first byte is waited for so long and no longer; it is not asked again."""
    options = Options(first_byte_timeout=0.05)
    with pytest.raises(ModelTimeout, match=r"no answer in 0\.05 s"):
        await ask(silence, options=options)
    assert len(server.requests) == 1


async def test_an_answer_that_stops(ask: Ask) -> None:
    """Silence in the middle of a stream ends it."""
    options = Options(stall_timeout=0.05)
    seen: list[Chunk] = []
    with pytest.raises(ModelTimeout, match=r"stopped for 0.05 s"):
        await ask(
            stream(lines(frame("He"), done=False), end="stall"),
            options=options,
            on_chunk=seen.append,
        )
    assert seen[0].text == "He"


async def test_an_answer_that_never_begins(ask: Ask) -> None:
    """A head without a body is waited for like no answer."""
    options = Options(first_byte_timeout=0.05)
    with pytest.raises(ModelTimeout):
        await ask(stream(end="stall"), options=options)


async def test_comments_keep_a_slow_server_alive(ask: Ask) -> None:
    """A server that sends comments while it thinks is not cut off."""

    async def slow(writer: asyncio.StreamWriter) -> None:
        await stream(b": thinking\n\n", end="open")(writer)
        for _ in range(6):
            await asyncio.sleep(0.05)
            writer.write(b"3\r\n:\n\n\r\n")
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(hello()), hello()))

    assert (await ask(slow, options=Options(stall_timeout=0.2))).text == "Hello"


async def test_cancelling_tells_the_server(server: Server) -> None:
    """A cancelled request closes its connection: the server can stop working."""
    server.answers(stream(lines(frame("He"), done=False), end="open"))
    model = OpenAIModel("m", server=server.url)
    said = asyncio.Event()
    task = asyncio.create_task(complete(model, PROMPT, lambda _: said.set()))
    await asyncio.wait_for(said.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(server.gone.wait(), 5)
    await model.close()


def test_one_model_in_several_loops() -> None:
    """`run_sync` makes a loop each time: the model opens new connections there."""
    models: list[OpenAIModel] = []
    ports = [0]

    async def once() -> str:
        async with serving(ports[-1]) as server:
            server.answers(stream(hello()))
            ports.append(int(server.url.split(":")[2].partition("/")[0]))
            if not models:
                models.append(OpenAIModel("m", server=server.url, options=QUICK))
            text = (await complete(models[0], PROMPT)).text
            await models[0].close()
            return text

    assert [asyncio.run(once()), asyncio.run(once())] == ["Hello", "Hello"]


# --- keys ----------------------------------------------------------------------

KEY = "sk-test-0123456789"


async def test_the_key_is_sent_and_not_told(
    ask: Ask, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that quotes the key does not bring it into an error."""
    monkeypatch.setenv("MY_KEY", KEY)
    refusal = answer({"error": {"message": f"Incorrect API key: {KEY}"}}, 401)
    with pytest.raises(ModelRefused, match=r"\[key\].*the key of MY_KEY") as caught:
        await ask(refusal, key_env="MY_KEY")
    assert f"Bearer {KEY}" == server.requests[0].headers["authorization"]
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in repr(error) + str(error)
        error = error.__cause__ or error.__context__


async def test_each_model_may_have_a_key_of_its_own(server: Server) -> None:
    """It needs no variable, is shown nowhere, and has a rate limit of its own."""
    server.answers(answer({"error": {"message": f"Incorrect key: {KEY}"}}, 401))
    own = OpenAIModel("m", server=server.url, key=KEY, options=QUICK)
    with pytest.raises(ModelRefused, match=r"\[key\].*the key of the program") as told:
        await complete(own, PROMPT)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr((own, vars(own), told.value))
    other = OpenAIModel("m", server=server.url, key=f"{KEY}2", options=QUICK)
    assert vars(own)["_limit"] is not vars(other)["_limit"]
    await own.close()
    wrong = OpenAIModel("m", server=server.url, key="a b", options=QUICK)
    with pytest.raises(ModelUnavailable, match="The argument key= holds characters"):
        await complete(wrong, PROMPT)


async def test_an_empty_key_is_told_as_one(server: Server) -> None:
    """No variable is named, since none was to be read."""
    told = "the argument key= is empty; give the key, or choose another model"
    with pytest.raises(ModelUnavailable, match=told):
        await complete(OpenAIModel("m", key="", options=QUICK), PROMPT)
    server.answers(answer({"error": {"message": "who are you?"}}, 401))
    keyless = OpenAIModel("m", server=server.url, key="", options=QUICK)
    with pytest.raises(ModelRefused, match="sent, since the argument key= is empty"):
        await complete(keyless, PROMPT)


@pytest.mark.parametrize(
    "given",
    [
        {"key": KEY, "key_env": "MY_KEY"},
        {"key": KEY, "server": Endpoint(url="https://example.com/v1")},
        {"key_env": "MY_KEY", "server": Endpoint(url="https://example.com/v1")},
    ],
)
def test_two_places_of_a_key_are_refused(given: Any) -> None:
    """One of them would be ignored."""
    with pytest.raises(ConfigError, match=r"expected .*, got (both|an Endpoint)"):
        OpenAIModel("m", **given)


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ("/openai/deployments/m", KEY, {"api-key": KEY}),
        ("/openai/deployments/m", "eyJ0.x.y", {"authorization": "Bearer eyJ0.x.y"}),
        ("/openai/v1", KEY, {"authorization": f"Bearer {KEY}"}),
    ],
)
async def test_the_header_of_azures_keys(
    path: str,
    key: str,
    expected: dict[str, str],
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own for a key, the usual one for a token and for the newer paths."""
    monkeypatch.setenv("MY_KEY", key)
    server.answers(stream(hello()))
    base = server.url.removesuffix("/v1") + path + "?api-version=2024-10-21"
    model = OpenAIModel("m", server=base, key_env="MY_KEY", options=QUICK)
    await complete(model, PROMPT)
    await model.close()
    request = server.requests[0]
    assert request.path == f"{path}/chat/completions?api-version=2024-10-21"
    sent = {
        name: request.headers[name]
        for name in ("api-key", "authorization")
        if name in request.headers
    }
    assert sent == expected


async def test_the_key_in_an_error_frame(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither does one that quotes it inside a stream."""
    monkeypatch.setenv("MY_KEY", KEY)
    body = lines(frame("x"), {"error": {"message": f"bad {KEY}"}})
    with pytest.raises(ModelError, match=r"bad \[key\]"):
        await ask(stream(body), key_env="MY_KEY")


async def test_a_401_without_key(
    ask: Ask, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The general key is not sent to another server, and the error says so."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ModelRefused, match="no key was sent"):
        await ask(answer(b"", 401))
    assert "authorization" not in server.requests[0].headers


async def test_no_proxy_for_loopback(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment is not asked for a server on this machine."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert (await ask(stream(hello()))).text == "Hello"


async def test_a_proxy_for_other_hosts(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the environment is asked for every other server."""
    for name in ("http_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", server.answers(stream(hello())))
    model = OpenAIModel("m", server="http://models.example/v1", options=QUICK)
    assert (await complete(model, PROMPT)).text == "Hello"
    await model.close()
    assert server.requests[0].path == "http://models.example/v1/chat/completions"


async def test_a_proxy_that_is_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person is told that it is the environment's proxy."""
    monkeypatch.setenv("HTTP_PROXY", "foo://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "foo://127.0.0.1:9")
    model = OpenAIModel("m", server="http://models.example/v1", options=QUICK)
    with pytest.raises(ConfigError, match="proxy"):
        await complete(model, PROMPT)


async def test_found_by_its_url(server: Server) -> None:
    """`http://HOST/v1#NAME` is a model."""
    server.answers(stream(hello()))
    model = find_model(f"{server.url}#tiny")
    assert (await complete(model, PROMPT)).text == "Hello"
    await model.close()
    assert server.requests[0].body["model"] == "tiny"
