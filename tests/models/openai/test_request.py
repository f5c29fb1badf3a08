"""The bytes of a request: the same as json writes, the constant part written once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

from models.http_server import answer, hello, serving
from neuraxis.messages import Call, Message, NativeCall, Prompt
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.fallback import without
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.openai.request import constant_of, encoded, request_body
from neuraxis.specs import Json

SYSTEM = Message(role="system", content='You are "kind".\n\x00 é \U0001f600 \ud800')
ASKED = Message(role="user", content="hello")
CALLED = Message(
    role="assistant",
    content="",
    tool_calls=(NativeCall(id="a", name="add", arguments='{"x": 1}'),),
)
TOLD = Message(role="tool", content="2", tool_call_id="a")


def tools(count: int) -> tuple[Mapping[str, Json], ...]:
    return tuple(
        {
            "type": "function",
            "function": {
                "name": f"tool_{number}",
                "description": "Adds é two numbers.",
                "parameters": {
                    "type": "object",
                    "properties": {name: {"type": "integer"} for name in "abcdef"},
                },
            },
        }
        for number in range(count)
    )


def plainly(body: Mapping[str, Json]) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


@pytest.mark.parametrize(
    ("written", "read", "sent"),
    [
        ('{"x": 1}', {"x": 1}, '{"x": 1}'),
        ('{"x": 1,}', {"x": 1}, '{"x": 1}'),
        ('"{\\"x\\": 1}"', {"x": 1}, '{"x": 1}'),
        ("", {}, "{}"),
        ("[3]", [3], '{"value": [3]}'),
        ("", None, "{}"),
        ('{"x": "cut o', None, '{"unreadable": "{\\"x\\": \\"cut o"}'),
        ("[" * 100_000, None, json.dumps({"unreadable": "[" * 100_000})),
    ],
)
def test_arguments_are_always_sent_as_an_object(
    written: str, read: Json, sent: str
) -> None:
    """Servers refuse a conversation in which a model once wrote something else."""
    call = Call(id="1", plugin=None, command="add", arguments=read)
    calls = () if read is None else (call,)
    said = NativeCall(id="a", name="add", arguments=written)
    message = Message(role="assistant", content="", calls=calls, tool_calls=(said,))
    prompt = Prompt(messages=(ASKED, message, TOLD), native_tools=tools(1))
    body = request_body(prompt, "m", Options())
    assert body["messages"][1]["tool_calls"][0]["function"] == {
        "name": "add",
        "arguments": sent,
    }


@pytest.mark.parametrize("native", [(), tools(3)])
@pytest.mark.parametrize("constant", [0, 1, 2])
@pytest.mark.parametrize("extra", [{}, {"seed": 3, "x": {"y": "é"}}])
def test_the_bytes_are_those_of_the_whole(
    native: tuple[Mapping[str, Json], ...], constant: int, extra: dict[str, Json]
) -> None:
    """Whatever is constant in it."""
    prompt = Prompt(
        messages=(SYSTEM, SYSTEM, ASKED, CALLED, TOLD),
        constant=constant,
        stop=("end",),
        native_tools=native,
    )
    body = request_body(prompt, "m", Options(max_tokens=9, extra=extra))
    known = constant_of(prompt)
    assert plainly(body) == encoded(body) == encoded(body, known)
    fewer = without(without(body, "stream_options"), "max_tokens")
    assert plainly(fewer) == encoded(fewer, known)
    alone = Prompt(messages=prompt.messages[:constant], constant=constant)
    body = request_body(alone, "m", Options())
    assert plainly(body) == encoded(body, constant_of(alone))


def test_the_constant_part_is_told_by_what_it_is() -> None:
    """Another message, another number of them, other tools: written again."""
    listed = tools(2)
    prompt = Prompt(messages=(SYSTEM, ASKED), constant=1, native_tools=listed)
    known = constant_of(prompt)
    assert known.is_of(prompt)
    assert known.is_of(
        Prompt(messages=(SYSTEM, TOLD, ASKED), constant=1, native_tools=listed)
    )
    for messages, constant, native in (
        ((ASKED, ASKED), 1, listed),
        ((SYSTEM, ASKED), 0, listed),
        ((SYSTEM, ASKED), 2, listed),
        ((), 0, listed),
        ((SYSTEM, ASKED), 1, tools(2)),
        ((SYSTEM, ASKED), 1, ()),
    ):
        other = Prompt(messages=messages, constant=constant, native_tools=native)
        assert not known.is_of(other)


def test_a_thousand_tools_are_not_written_again() -> None:
    """Half a megabyte is copied, not encoded: many times quicker, and the same."""
    prompt = Prompt(messages=(SYSTEM, ASKED), constant=1, native_tools=tools(1000))
    known, options = constant_of(prompt), Options()
    body = request_body(prompt, "m", options)

    def least(work: Callable[[], bytes]) -> float:
        times: list[float] = []
        for _ in range(30):
            started = time.thread_time()
            assert len(work()) > 200_000
            times.append(time.thread_time() - started)
        return min(times)

    assert known.is_of(prompt)
    assert encoded(body, known) == encoded(body)
    assert least(lambda: encoded(body, known)) * 5 < least(lambda: encoded(body))


def test_a_definition_may_be_any_mapping() -> None:
    """As long as JSON can say it."""
    seen = MappingProxyType({"type": "function", "function": MappingProxyType({})})
    prompt = Prompt(messages=(ASKED,), native_tools=(seen,))
    body = request_body(prompt, "m", Options())
    for sent in (encoded(body), encoded(body, constant_of(prompt))):
        assert [{"type": "function", "function": {}}] == json.loads(sent)["tools"]


@pytest.mark.parametrize("extra", [{}, {"tools": []}, {"messages": [{"role": "user"}]}])
async def test_what_is_sent_from_turn_to_turn(extra: dict[str, Json]) -> None:
    """A session's next prompt, another session's, and what settings put there."""
    prompts = [
        Prompt(messages=(SYSTEM, *more), constant=1, native_tools=native)
        for native in (tools(2), tools(1), ())
        for more in ((ASKED,), (ASKED, CALLED, TOLD))
    ]
    options = Options(extra=extra)
    async with serving() as server:
        url = server.answers(answer(hello(), content_type="text/event-stream"))
        model = OpenAIModel("m", server=url, options=options)
        for prompt in (*prompts, *reversed(prompts)):
            assert [chunk async for chunk in model.stream(prompt)]
        await model.close()
        expected = [json.loads(plainly(request_body(p, "m", options))) for p in prompts]
        assert [*expected, *reversed(expected)] == [r.body for r in server.requests]
