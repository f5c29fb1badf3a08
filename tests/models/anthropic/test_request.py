"""What a request of the Messages API holds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from models import wire_scripts
from models.conformance import Answer
from models.http_server import Server, answer, lines, serving, stream
from neuraxis.messages import Message, NativeCall, Prompt
from neuraxis.models import complete
from neuraxis.models.anthropic.model import BEDROCK, AnthropicModel, bedrock_wire
from neuraxis.models.anthropic.request import PARTS, missing_options, request_body
from neuraxis.models.http.model import HttpModel
from neuraxis.models.http.optional_parts import without_option
from neuraxis.models.http.settings import Options

SYSTEM = Message(role="system", content="Be kind.")
USER = Message(role="user", content="Hi.")
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "x"}},
}
PLAIN = Prompt(messages=(SYSTEM, USER), constant=1, stop=("END", " \n"))
NATIVE = replace(PLAIN, native_tools=(TOOL,))


def body(prompt: Prompt = PLAIN, **options: Any) -> dict[str, Any]:
    return request_body(prompt, "m", Options(**options))


def test_the_constant_part_is_marked_for_the_cache() -> None:
    """The last system block carries the mark; tools stand before it there."""
    marked = {
        "type": "text",
        "text": "Be kind.",
        "cache_control": {"type": "ephemeral"},
    }
    assert body()["system"] == [marked]
    assert "cache_control" not in json.dumps(body(cache=False))
    without_system = body(replace(NATIVE, messages=(USER,)))
    assert without_system["tools"][0]["cache_control"] == {"type": "ephemeral"}


def test_deferred_tools_are_found_by_the_providers_search() -> None:
    """The mark stands at the tool; the search tool has that of the cache."""
    later = {**TOOL, "defer_loading": True}
    tools = body(replace(PLAIN, messages=(USER,), native_tools=(TOOL, later)))["tools"]
    assert [tool.get("defer_loading") for tool in tools] == [None, True, None]
    assert tools[-1] == {
        "type": "tool_search_tool_bm25_20251119",
        "name": "tool_search_tool_bm25",
        "cache_control": {"type": "ephemeral"},
    }
    assert "tool_search" not in json.dumps(body(NATIVE))


def test_a_plain_prompt() -> None:
    """Blank stops are refused there and left out; a number of tokens is a must."""
    assert body() == {
        "model": "m",
        "max_tokens": 8192,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
        "system": body()["system"],
        "stop_sequences": ["END"],
    }


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (0, {"thinking": {"type": "disabled"}, "max_tokens": 8192}),
        (
            5000,
            {
                "thinking": {"type": "enabled", "budget_tokens": 5000},
                "max_tokens": 13192,
            },
        ),
        (
            10,
            {
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "max_tokens": 9216,
            },
        ),
        (
            "high",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
    ],
)
def test_thinking(thinking: int | str, expected: dict[str, Any]) -> None:
    """A number is a budget on top of the answer's tokens, a word an effort."""
    told = body(thinking=thinking)
    assert {key: told[key] for key in expected} == expected


def test_sampling_is_left_out_where_the_model_thinks() -> None:
    """The API refuses both together, and has no seed; notes say so."""
    options = Options(thinking=2000, temperature=0.3, seed=1)
    told = request_body(PLAIN, "m", options)
    assert not {"temperature", "seed"} & told.keys()
    assert len(missing_options(options)) == 2
    assert body(temperature=0.3)["temperature"] == 0.3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "look"}, {"type": "tool", "name": "look"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        (
            {"parallel_tool_calls": False},
            {"type": "auto", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_forced_and_parallel_calls(
    options: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Only where there are tools."""
    assert body(NATIVE, **options)["tool_choice"] == expected
    assert "tool_choice" not in body(PLAIN, **options)


def test_a_schema_of_the_reply() -> None:
    """It stands beside the effort."""
    told = body(output_schema={"type": "object"}, thinking="low")
    given = {"type": "json_schema", "schema": {"type": "object"}}
    assert told["output_config"] == {"effort": "low", "format": given}


def test_neighbours_of_one_role_are_one_turn() -> None:
    """Results stand first in the turn of the user, as the API wants them."""
    call = NativeCall(id="c", name="look", arguments="{}")
    messages = (
        SYSTEM,
        USER,
        Message(role="assistant", content=" ", tool_calls=(call,)),
        Message(role="tool", content="seen", tool_call_id="c"),
        USER,
        Message(role="assistant", content=""),
    )
    turns = body(replace(NATIVE, messages=messages))["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
    assert [block["type"] for block in turns[1]["content"]] == ["tool_use"]
    assert [block["type"] for block in turns[2]["content"]] == ["tool_result", "text"]
    assert turns[3]["content"][0]["text"].strip()


def test_a_refused_effort_becomes_a_budget() -> None:
    """Older models think by a budget only."""
    told = without_option(PARTS, body(thinking="medium"), "adaptive thinking")
    assert told["thinking"] == {"type": "enabled", "budget_tokens": 8192}
    assert "output_config" not in told


# --- what goes back ---------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


THOUGHT = [
    {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
    {"type": "redacted_thinking", "data": "d1"},
    {"type": "tool_use", "id": "c", "name": "look", "input": {"at": "x"}},
]


async def test_signed_thinking_goes_back_to_its_model_alone(server: Server) -> None:
    """As it came, with the call; another model gets the call only."""
    said = {"type": "message", "content": THOUGHT, "stop_reason": "tool_use"}
    url = server.answers(answer(said), wire_scripts.anthropic(Answer()))
    model = AnthropicModel("m", server=url)
    first = await complete(model, NATIVE)
    turn = Message(
        role="assistant",
        content=first.text,
        tool_calls=first.tool_calls,
        carried=first.carried,
    )
    result = Message(role="tool", content="seen", tool_call_id="c")
    following = replace(NATIVE, messages=(SYSTEM, USER, turn, result))
    other = AnthropicModel("other", server=url)
    for asked in (model, other):
        await complete(asked, following)
        await asked.close()
    own, others = (request.body["messages"][1] for request in server.requests[1:])
    assert own["content"] == THOUGHT
    assert others["content"] == THOUGHT[2:]


async def test_a_refused_signature_is_left_out(server: Server) -> None:
    """The next request goes without the thinking of earlier turns."""
    refusal = {
        "error": {"message": "messages.1: Invalid `signature` in thinking block"}
    }
    said = {"type": "message", "content": THOUGHT, "stop_reason": "tool_use"}
    url = server.answers(
        answer(said), answer(refusal, 400), wire_scripts.anthropic(Answer())
    )
    model = AnthropicModel("m", server=url)
    first = await complete(model, NATIVE)
    turn = Message(
        role="assistant", content="", tool_calls=first.tool_calls, carried=first.carried
    )
    result = Message(role="tool", content="seen", tool_call_id="c")
    messages = (SYSTEM, USER, turn, result)
    assert (await complete(model, replace(NATIVE, messages=messages))).text == "Hello"
    assert server.requests[2].body["messages"][1]["content"] == THOUGHT[2:]
    await model.close()


@pytest.mark.parametrize("prompt", [PLAIN, NATIVE])
async def test_a_refused_cache_mark_is_left_out(server: Server, prompt: Prompt) -> None:
    """We set it without being asked, so a server that has none must not end the run."""
    text = "system.0.cache_control: Extra inputs are not permitted"
    refusal = {"type": "error", "error": {"message": text}}
    url = server.answers(answer(refusal, 400), wire_scripts.anthropic(Answer()))
    model = AnthropicModel("m", server=url)
    assert (await complete(model, prompt)).text == "Hello"
    marked, bare = ("cache_control" in str(request.body) for request in server.requests)
    assert (marked, bare) == (True, False)
    await model.close()


async def test_headers_and_address(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of the API and the key each have a header of their own."""
    monkeypatch.setenv("MY_KEY", "k")
    url = server.answers(wire_scripts.anthropic(Answer()))
    model = AnthropicModel("m", server=url, key_env="MY_KEY")
    await complete(model, PLAIN)
    await model.close()
    headers = server.requests[0].headers
    assert server.requests[0].path == "/v1/messages"
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("k", "2023-06-01")


async def test_bedrock_has_the_model_in_the_address(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document comes back; the key is a bearer token."""
    monkeypatch.setenv("MY_KEY", "k")
    block = {"type": "text", "text": "Hello"}
    said = {"type": "message", "content": [block], "stop_reason": "end_turn"}
    url = server.answers(answer(said))
    name = "anthropic.claude-x-v1:0"
    model = HttpModel(BEDROCK, bedrock_wire, name, server=url, key_env="MY_KEY")
    assert (await complete(model, PLAIN)).text == "Hello"
    await model.close()
    request = server.requests[0]
    assert request.path == "/v1/model/anthropic.claude-x-v1%3A0/invoke"
    assert request.headers["authorization"] == "Bearer k"
    assert request.body["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & request.body.keys()


async def test_a_refusal_is_a_filtered_reply_with_its_reason(server: Server) -> None:
    """What the server says of it is in a note."""
    frames = [
        {"type": "message_start", "message": {"content": []}},
        {
            "type": "message_delta",
            "delta": {
                "stop_reason": "refusal",
                "stop_details": {"explanation": "not allowed"},
            },
        },
        {"type": "message_stop"},
    ]
    url = server.answers(stream(lines(*frames, done=False)))
    model = AnthropicModel("m", server=url)
    notes: list[str] = []
    done = await complete(model, PLAIN, lambda chunk: notes.append(chunk.note))
    await model.close()
    assert (done.text, done.finish_reason) == ("", "content_filter")
    assert "not allowed" in notes[-1]
