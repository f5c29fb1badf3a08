"""What a request of generateContent holds, and what is read of rare answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from models import wire_scripts
from models.conformance import Answer
from models.http_server import Server, answer, serving
from neuraxis.errors import ConfigError, ModelBroken
from neuraxis.messages import Message, NativeCall, Prompt
from neuraxis.models import complete
from neuraxis.models.gemini.model import GeminiModel, vertex_provider
from neuraxis.models.gemini.request import PARTS, missing_options, request_body
from neuraxis.models.http.optional_parts import without_option
from neuraxis.models.http.settings import Options
from neuraxis.settings import Settings

SYSTEM = Message(role="system", content="Be kind.")
USER = Message(role="user", content="Hi.")
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
PLAIN = Prompt(messages=(SYSTEM, USER), constant=1, stop=("END",))
NATIVE = replace(PLAIN, native_tools=(TOOL,))


def body(prompt: Prompt = PLAIN, **options: Any) -> dict[str, Any]:
    return request_body(prompt, Options(**options))


def test_a_native_prompt() -> None:
    """Schemas are sent as they are, by the member that takes JSON Schema."""
    assert body(NATIVE, max_tokens=9, tool_choice="look") == {
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "tools": [
            {"functionDeclarations": [{"name": "look", "parametersJsonSchema": SCHEMA}]}
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}
        },
        "generationConfig": {"maxOutputTokens": 9, "stopSequences": ["END"]},
    }


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (0, {"thinkingBudget": 0}),
        (500, {"thinkingBudget": 500, "includeThoughts": True}),
        ("low", {"thinkingLevel": "low", "includeThoughts": True}),
    ],
)
def test_thinking(thinking: int | str, expected: dict[str, Any]) -> None:
    """A number is a budget, a word a level."""
    told = body(thinking=thinking)
    assert told["generationConfig"]["thinkingConfig"] == expected


def test_a_refused_level_becomes_a_budget() -> None:
    """Models before Gemini 3 think by a budget only."""
    told = without_option(PARTS, body(thinking="low"), "thinking level")
    assert told["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2048


def test_a_schema_of_the_reply() -> None:
    """JSON is asked for with it."""
    config = body(output_schema=SCHEMA)["generationConfig"]
    assert config["responseJsonSchema"] == SCHEMA
    assert config["responseMimeType"] == "application/json"


def test_what_it_does_not_have_is_noted() -> None:
    """Whether calls stand beside each other is Gemini's own choice."""
    assert missing_options(Options(parallel_tool_calls=False))
    assert not missing_options(Options())


def test_results_name_their_tool() -> None:
    """The API wants the name beside the id; neighbours of one role are joined."""
    call = NativeCall(id="c", name="look", arguments="{}")
    messages = (
        USER,
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="seen", tool_call_id="c"),
        USER,
    )
    turns = body(replace(NATIVE, messages=messages))["contents"]
    assert [turn["role"] for turn in turns] == ["user", "model", "user"]
    response = {"id": "c", "name": "look", "response": {"output": "seen"}}
    assert turns[2]["parts"] == [{"functionResponse": response}, {"text": "Hi."}]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


async def test_signatures_go_back_with_their_parts(server: Server) -> None:
    """A call without an id gets one of ours, which its result names, too."""
    part = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "s1"}
    said = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    url = server.answers(answer(said), wire_scripts.gemini(Answer()))
    model = GeminiModel("m", server=url)
    first = await complete(model, NATIVE)
    own = first.tool_calls[0].id
    turn = Message(
        role="assistant", content="", tool_calls=first.tool_calls, carried=first.carried
    )
    result = Message(role="tool", content="seen", tool_call_id=own)
    await complete(model, replace(NATIVE, messages=(USER, turn, result)))
    await model.close()
    assert first.finish_reason == "tool_calls"
    sent = server.requests[1].body["contents"]
    call = {"name": "look", "args": {}, "id": own}
    assert sent[1]["parts"] == [{"functionCall": call, "thoughtSignature": "s1"}]
    assert sent[2]["parts"][0]["functionResponse"]["id"] == own


async def test_address_and_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are asked for; the key stands in a header and never in the address."""
    monkeypatch.setenv("MY_KEY", "k")
    url = server.answers(wire_scripts.gemini(Answer()))
    model = GeminiModel("m", server=url, key_env="MY_KEY")
    await complete(model, PLAIN)
    await model.close()
    request = server.requests[0]
    assert request.path == "/v1/models/m:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == "k"


async def test_a_stream_as_one_list(server: Server) -> None:
    """Some gateways drop the query, so that the frames come as a list."""
    frames = [
        {"candidates": [{"content": {"parts": [{"text": piece}]}}]}
        for piece in ("Hel", "lo")
    ]
    frames.append({"candidates": [{"finishReason": "STOP"}]})
    model = GeminiModel("m", server=server.answers(answer(frames)))
    assert (await complete(model, PLAIN)).text == "Hello"
    await model.close()


async def test_a_malformed_call_is_asked_again(server: Server) -> None:
    """The model wrote none; what it wrote may be right the next time."""
    said = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}
    url = server.answers(answer(said))
    model = GeminiModel("m", server=url, options=Options(backoff=0, max_retries=1))
    with pytest.raises(ModelBroken, match="MALFORMED_FUNCTION_CALL"):
        await complete(model, NATIVE)
    await model.close()
    assert len(server.requests) == 2


def test_the_address_of_vertex() -> None:
    """Project and place are names; another host cannot be written into them."""
    chosen = Settings().override(
        {"vertex.project": "my-project", "vertex.location": "europe-west4"}, "test"
    )
    url = vertex_provider(chosen).url
    assert url == (
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project"
        "/locations/europe-west4/publishers/google"
    )
    for wrong in ("evil.example/x", "a@b", ""):
        given = chosen.override({"vertex.location": wrong or "a b"}, "test")
        with pytest.raises(ConfigError, match=r"vertex\.location"):
            vertex_provider(given)
