"""What a request of the Responses API holds, and what is read of rare answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from models import wire_scripts
from models.conformance import Answer
from models.http_server import Server, answer, lines, serving, stream
from neuraxis.errors import ModelBroken
from neuraxis.messages import Message, Prompt
from neuraxis.models import complete
from neuraxis.models.http.settings import Options
from neuraxis.models.openai_responses.model import ResponsesModel
from neuraxis.models.openai_responses.request import missing_options, request_body

SYSTEM = Message(role="system", content="Be kind.")
USER = Message(role="user", content="Hi.")
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
PLAIN = Prompt(messages=(SYSTEM, USER), constant=1, stop=("END",))
NATIVE = replace(PLAIN, native_tools=(TOOL,))


def body(prompt: Prompt = PLAIN, **options: Any) -> dict[str, Any]:
    return request_body(prompt, "m", Options(**options))


def test_nothing_is_stored_at_the_server() -> None:
    """Reasoning comes back encrypted, so that it can be sent again."""
    told = body()
    assert told["store"] is False
    assert told["include"] == ["reasoning.encrypted_content"]
    assert told["instructions"] == "Be kind."
    assert told["input"] == [{"role": "user", "content": "Hi."}]
    assert "stop" not in told


def test_tools_and_how_they_are_chosen() -> None:
    """Schemas are not strict, which takes a part of JSON Schema only."""
    told = body(NATIVE, tool_choice="look", parallel_tool_calls=False)
    tool = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}
    assert told["tools"] == [tool]
    assert told["tool_choice"] == {"type": "function", "name": "look"}
    assert told["parallel_tool_calls"] is False


def test_deferred_tools_are_found_by_the_providers_search() -> None:
    """The mark stands at the tool, the search tool behind them."""
    later = {**TOOL, "defer_loading": True}
    tools = body(replace(PLAIN, native_tools=(TOOL, later)))["tools"]
    assert [tool.get("defer_loading") for tool in tools] == [None, True, None]
    assert tools[-1] == {"type": "tool_search"}
    assert {"type": "tool_search"} not in body(NATIVE)["tools"]


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (0, {"effort": "none"}),
        (3000, {"effort": "low", "summary": "auto"}),
        (50_000, {"effort": "high", "summary": "auto"}),
        ("medium", {"effort": "medium", "summary": "auto"}),
    ],
)
def test_thinking(thinking: int | str, expected: dict[str, Any]) -> None:
    """Only words are taken; a budget becomes the nearest one."""
    assert body(thinking=thinking)["reasoning"] == expected


def test_a_schema_of_the_reply() -> None:
    """It is the format of the text."""
    given = {"type": "json_schema", "name": "reply", "schema": SCHEMA}
    assert body(output_schema=SCHEMA)["text"] == {"format": given}


def test_what_it_does_not_have_is_noted() -> None:
    """There is no seed."""
    assert missing_options(Options(seed=1))
    assert not missing_options(Options())


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c",
    "name": "look",
    "arguments": "{}",
}


async def test_encrypted_reasoning_goes_back(server: Server) -> None:
    """With its call, as both came; what is known by its id only is left out."""
    bare = {"type": "reasoning", "id": "rs_0", "summary": []}
    said = {"status": "completed", "output": [bare, REASONING, CALL]}
    url = server.answers(answer(said), wire_scripts.responses(Answer()))
    model = ResponsesModel("m", server=url)
    first = await complete(model, NATIVE)
    turn = Message(
        role="assistant", content="", tool_calls=first.tool_calls, carried=first.carried
    )
    result = Message(role="tool", content="seen", tool_call_id="c")
    await complete(model, replace(NATIVE, messages=(SYSTEM, USER, turn, result)))
    await model.close()
    output = {"type": "function_call_output", "call_id": "c", "output": "seen"}
    assert server.requests[1].body["input"][1:] == [REASONING, CALL, output]


@pytest.mark.parametrize("part", ["include", "store"])
async def test_servers_that_lack_a_part(server: Server, part: str) -> None:
    """It is left out without a word: nothing is lost."""
    refusal = {"error": {"message": f"Unknown parameter: '{part}'."}}
    url = server.answers(answer(refusal, 400), wire_scripts.responses(Answer()))
    model = ResponsesModel("m", server=url)
    notes: list[str] = []
    done = await complete(model, PLAIN, lambda chunk: notes.append(chunk.note))
    await model.close()
    assert (done.text, "".join(notes)) == ("Hello", "")
    assert part not in server.requests[1].body


async def test_servers_that_send_no_deltas(server: Server) -> None:
    """What an item holds at its end is given out then, and once."""
    content = [{"type": "output_text", "text": "Hello", "annotations": [{"url": "u"}]}]
    item = {"type": "message", "content": content}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    call = {"type": "response.output_item.done", "output_index": 1, "item": CALL}
    response = {"status": "completed", "output": [item, CALL]}
    end = {"type": "response.completed", "response": response}
    url = server.answers(stream(lines(done, call, end, done=False)))
    model = ResponsesModel("m", server=url)
    got = await complete(model, NATIVE)
    await model.close()
    assert (got.text, got.annotations) == ("Hello", ({"url": "u"},))
    assert [(one.id, one.arguments) for one in got.tool_calls] == [("c", "{}")]


async def test_a_refusal_is_a_filtered_reply(server: Server) -> None:
    """Its words are the text."""
    content = [{"type": "refusal", "refusal": "No."}]
    item = {"type": "message", "content": content}
    said = {"status": "completed", "output": [item]}
    model = ResponsesModel("m", server=server.answers(answer(said)))
    done = await complete(model, PLAIN)
    await model.close()
    assert (done.text, done.finish_reason) == ("No.", "content_filter")


async def test_a_response_in_the_background_is_no_answer(server: Server) -> None:
    """It is told with its status, and not taken for an empty reply."""
    said = {"status": "queued", "output": []}
    url = server.answers(answer(said))
    model = ResponsesModel("m", server=url, options=Options(max_retries=0))
    with pytest.raises(ModelBroken, match="'queued'"):
        await complete(model, PLAIN)
    await model.close()


async def test_servers_that_leave_out_places_and_items(server: Server) -> None:
    """Pieces belong to the item they name; nothing is given out twice."""
    content = [{"type": "output_text", "text": "Hello"}]
    message = {"type": "message", "id": "m1", "content": content}
    kind = "response.output_text.delta"
    thought = {"type": "response.reasoning_text.delta", "item_id": "r1", "delta": "Hm"}
    pieces = [{"type": kind, "item_id": "m1", "delta": text} for text in ("Hel", "lo")]
    response = {"status": "completed", "output": [message]}
    end = {"type": "response.completed", "response": response}
    url = server.answers(stream(lines(thought, *pieces, end, done=False)))
    model = ResponsesModel("m", server=url)
    assert (await complete(model, PLAIN)).text == "Hello"
    await model.close()
