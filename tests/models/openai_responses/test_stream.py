"""What is read of answers whose events differ from the API's own form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.http_server import Server, serving, stream
from neuraxis.messages import Completion, Message, NativeCall, Prompt, Usage
from neuraxis.models import complete
from neuraxis.models.openai_responses.model import ResponsesModel

PROMPT = Prompt(
    messages=(Message(role="user", content="Hi."),),
    constant=0,
    native_tools=({"function": {"name": "look"}},),
)
ARGUMENTS = '{"city": "Zürich"}'
Item = dict[str, Any]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


async def asked(server: Server, *events: Any) -> Completion:
    raw = "".join(
        f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
        for event in events
    )
    server.answers(stream(raw.encode()))
    model = ResponsesModel("m", server=server.url)
    try:
        return await complete(model, PROMPT)
    finally:
        await model.close()


def call(number: int = 1, arguments: Any = ARGUMENTS, **fields: Any) -> Item:
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": "look",
        "arguments": arguments,
        **fields,
    }


def says(text: str, item_id: str = "msg_1") -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": item_id, "role": "assistant", "content": content}


def event(kind: str, index: int | None = 0, **fields: Any) -> Item:
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.{kind}", **place, **fields}


def added(item: Item, index: int | None = 0) -> Item:
    start = {"arguments": ""} if "arguments" in item else {"content": []}
    return event("output_item.added", index, item={**item, **start})


def done(item: Item, index: int | None = 0) -> Item:
    return event("output_item.done", index, item=item)


def piece(text: str, item_id: str | None = "fc_1", index: int | None = 0) -> Item:
    kind = "function_call_arguments" if "fc" in str(item_id) else "output_text"
    named = {} if item_id is None else {"item_id": item_id}
    return event(f"{kind}.delta", index, delta=text, **named)


def completed(*items: Item) -> Item:
    response = {"status": "completed", "output": list(items)}
    return {"type": "response.completed", "response": response}


def native(number: int = 1, arguments: str = ARGUMENTS) -> NativeCall:
    return NativeCall(id=f"call_{number}", name="look", arguments=arguments)


@pytest.mark.parametrize(
    "after",
    [
        piece(" AFTER", "msg_1"),
        done(says("Other", "msg_2"), 1),
        completed(says("Other", "msg_2")),
        {"type": "error", "message": "late"},
        "no JSON",
        "[DONE]",
    ],
)
async def test_nothing_counts_behind_the_end(server: Server, after: Any) -> None:
    """The response is complete with its event, whatever follows."""
    item = says("Hello")
    got = await asked(server, done(item), completed(item), after)
    assert (got.text, got.finish_reason) == ("Hello", "stop")


@pytest.mark.parametrize("kind", [str, float])
async def test_numbers_of_tokens_may_be_texts_or_fractions(
    server: Server, kind: type
) -> None:
    """Some servers write them so; unread, no budget would hold."""
    end = completed(says("Hello"))
    end["response"]["usage"] = {"input_tokens": kind(100), "output_tokens": kind(20)}
    got = await asked(server, end)
    assert got.usage == Usage(input_tokens=100, output_tokens=20)


@pytest.mark.parametrize("shown", [True, False], ids=["listed", "not listed"])
async def test_a_call_that_was_never_announced_is_read(
    server: Server, shown: bool
) -> None:
    """Without `output_item.added`, its pieces come before its name."""
    whole = event("function_call_arguments.done", item_id="fc_1", arguments=ARGUMENTS)
    got = await asked(
        server,
        piece(ARGUMENTS[:11]),
        piece(ARGUMENTS[11:]),
        whole,
        done(call()),
        completed(*([call()] if shown else [])),
    )
    assert got.tool_calls == (native(),)


async def test_pieces_before_the_announcement_are_kept(server: Server) -> None:
    """Also if nothing repeats them."""
    first, last = piece(ARGUMENTS[:11]), piece(ARGUMENTS[11:])
    got = await asked(server, first, added(call()), last, completed())
    assert got.tool_calls == (native(),)


@pytest.mark.parametrize("start", ["", {}, {"city": "Zürich"}])
async def test_arguments_that_are_an_object_are_read(
    server: Server, start: Any
) -> None:
    """Those of the finished item; before, an object may be a stand-in."""
    item = call(arguments={"city": "Zürich"})
    first = event("output_item.added", item={**item, "arguments": start})
    got = await asked(server, first, done(item), completed(item))
    assert got.tool_calls == (native(),)


async def test_an_object_does_not_repeat_pieces_of_a_text(server: Server) -> None:
    """The pieces were yielded, whatever blanks they have."""
    item = call(arguments={"city": "Zürich"})
    text = '{"city":"Zürich"}'
    got = await asked(server, added(call()), piece(text), done(item), completed(item))
    assert got.tool_calls == (native(arguments=text),)


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("index", [0, None])
async def test_calls_with_one_index_are_told_apart(
    server: Server, announced: bool, index: int | None
) -> None:
    """By their ids, or because the one before is finished."""
    first, second = call(1), call(2, '{"city": "Bern"}')
    events: list[Item] = []
    for item in (first, second):
        events += [added(item, index)] if announced else []
        events += [piece(item["arguments"], item["id"], index), done(item, index)]
    got = await asked(server, *events, completed(first, second))
    assert got.tool_calls == (native(1), native(2, '{"city": "Bern"}'))


async def test_calls_with_one_index_may_arrive_at_once(server: Server) -> None:
    """Both are announced before their arguments come."""
    first, second = call(1), call(2, '{"city": "Bern"}')
    got = await asked(
        server,
        added(first),
        added(second),
        piece('{"city": "Bern"}', "fc_2"),
        piece(ARGUMENTS, "fc_1"),
        completed(first, second),
    )
    assert got.tool_calls == (native(1), native(2, '{"city": "Bern"}'))


async def test_items_with_one_id_are_told_apart(server: Server) -> None:
    """By their indices."""
    first, second = call(1, id="fc_x"), call(2, '{"city": "Bern"}', id="fc_x")
    got = await asked(
        server,
        added(first, 0),
        piece(ARGUMENTS, "fc_x", 0),
        added(second, 1),
        piece('{"city": "Bern"}', "fc_x", 1),
        completed(first, second),
    )
    assert got.tool_calls == (native(1), native(2, '{"city": "Bern"}'))


async def test_an_item_may_have_another_id_in_each_event(server: Server) -> None:
    """GitHub Copilot encrypts them anew each time; the index tells."""
    text = "Hello"
    got = await asked(
        server,
        added(says(text, "e1")),
        piece("Hel", "e2"),
        piece("lo", "e3"),
        done(says(text, "e4")),
        completed(says(text, "e5")),
    )
    assert got.text == text


async def test_pieces_without_id_and_index_are_of_the_last_item(
    server: Server,
) -> None:
    """The finished item does not repeat them."""
    item = says("Hello")
    pieces = piece("Hel", None, None), piece("lo", None, None)
    got = await asked(server, added(item, None), *pieces, done(item, None), completed())
    assert got.text == "Hello"


async def test_an_item_that_is_done_twice_is_one(server: Server) -> None:
    """With another id it was another call, which ran too."""
    first = {k: v for k, v in call().items() if k != "call_id"}
    done = {"type": "response.output_item.done", "output_index": 0}
    found = await asked(
        server,
        {**done, "item": first},
        {**done, "item": {**first, "id": "fc_9"}},
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": [first]},
        },
    )
    assert [item.name for item in found.tool_calls] == ["look"]
