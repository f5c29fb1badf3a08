"""What proxies add to a stream must not run, or count, a second time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.http_server import Server, frame, lines, serving, stream
from neuraxis.errors import ModelBroken
from neuraxis.messages import Completion, Message, Prompt
from neuraxis.models import complete
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel

PROMPT = Prompt(
    messages=(Message(role="user", content="Pay."),),
    native_tools=({"function": {"name": "pay"}},),
)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


async def _asked(server: Server, raw: bytes) -> Completion:
    url = server.answers(stream(raw))
    model = OpenAIModel("m", server=url, options=Options(max_retries=0))
    try:
        return await complete(model, PROMPT)
    finally:
        await model.close()


def _call(arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"name": "pay", "arguments": arguments, **fields}
    return frame(delta={"tool_calls": [{"index": 0, "id": "c1", "function": function}]})


def _old(arguments: str) -> dict[str, Any]:
    return frame(delta={"function_call": {"name": "pay", "arguments": arguments}})


@pytest.mark.parametrize(
    "frames",
    [
        [_call('{"eur":5}'), _old('{"eur": 5}')],
        [_call('{"eur"'), _old('{"eur"'), _call(":5}"), _old(":5}")],
        [_old('{"eur":5}'), _call('{"eur":5}')],
    ],
)
async def test_a_call_in_both_forms_is_one(
    server: Server, frames: list[dict[str, Any]]
) -> None:
    """The first form that is seen counts: money was paid twice."""
    raw = lines(*frames, frame(finish_reason="tool_calls"))
    (found,) = (await _asked(server, raw)).tool_calls
    assert (found.name, found.arguments) == ("pay", '{"eur":5}')


async def test_usage_behind_the_end_counts(server: Server) -> None:
    """Some servers send it there; nothing else is read."""
    usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
    raw = lines(frame("Hi."), frame(finish_reason="stop")) + lines(
        usage, frame("More."), done=False
    )
    found = await _asked(server, raw)
    assert (found.text, found.usage.total) == ("Hi.", 15)


@pytest.mark.parametrize("pieces", [{"0": {}}, {"type": "none"}])
async def test_a_mapping_that_is_no_call_is_none(server: Server, pieces: Any) -> None:
    """It was a call of nothing, with the name ''."""
    raw = lines(
        frame(delta={"content": "Hi.", "tool_calls": pieces}),
        frame(finish_reason="stop"),
    )
    found = await _asked(server, raw)
    assert (found.text, found.tool_calls) == ("Hi.", ())


def _second(arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"name": "pay", "arguments": arguments}
    piece = {"index": 1, "id": "c2", "function": function}
    return frame(delta={"tool_calls": [piece]}, **fields)


FIRST = frame(
    delta={"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "pay"}}]},
    finish_reason="tool_calls",
)


@pytest.mark.parametrize("more", [_second(""), _second('{"eur":5}'), frame("But")])
async def test_what_breaks_off_behind_a_reason_is_no_answer(
    server: Server, more: dict[str, Any]
) -> None:
    """Together gives each call a reason: the second was read without arguments."""
    with pytest.raises(ModelBroken, match="broke off"):
        await _asked(server, lines(FIRST, more, done=False))


async def test_blank_text_behind_the_reason_is_nothing(server: Server) -> None:
    """A last line's end, where no mark of the end follows."""
    raw = lines(frame("Hi.", finish_reason="stop"), frame("\n"), done=False)
    assert (await _asked(server, raw)).text.strip() == "Hi."


@pytest.mark.parametrize("kind", ["text", "output_text"])
async def test_a_part_without_a_list_is_read(server: Server, kind: str) -> None:
    """It was shown as its JSON."""
    content = {"type": kind, "text": "Hello"}
    raw = lines(frame(delta={"content": content}, finish_reason="stop"))
    assert (await _asked(server, raw)).text == "Hello"


async def test_each_call_may_have_its_reason(server: Server) -> None:
    """The last one is the end, without a mark of it too."""
    last = _second('{"eur":5}', finish_reason="tool_calls")
    found = await _asked(server, lines(FIRST, last, done=False))
    assert [call.arguments for call in found.tool_calls] == ["", '{"eur":5}']
