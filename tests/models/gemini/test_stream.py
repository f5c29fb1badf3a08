"""What is read of answers that differ from generateContent's own form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.http_server import Server, answer, serving, stream
from neuraxis.errors import ModelBroken
from neuraxis.messages import Chunk, Completion, Message, Prompt, Usage
from neuraxis.models import complete
from neuraxis.models.gemini.model import GeminiModel
from neuraxis.models.http.settings import Options

SYSTEM = Message(role="system", content="Be kind.")
USER = Message(role="user", content="Hi.")
SCHEMA = {
    "type": "object",
    "properties": {"additionalProperties": {"type": "string"}},
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
PROMPT = Prompt(messages=(SYSTEM, USER), constant=1, native_tools=(TOOL,))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


async def asked(
    server: Server, prompt: Prompt = PROMPT, notes: list[str] | None = None
) -> Completion:
    model = GeminiModel("m", server=server.url, options=Options(max_retries=0))

    def keep(chunk: Chunk) -> None:
        if chunk.note and notes is not None:
            notes.append(chunk.note)

    try:
        return await complete(model, prompt, keep)
    finally:
        await model.close()


def frames(*trees: Any) -> bytes:
    texts = [tree if isinstance(tree, str) else json.dumps(tree) for tree in trees]
    return "".join(f"data: {text}\r\n\r\n" for text in texts).encode()


def says(text: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}]}


HELLO = stream(frames(says("Hello")))


def refusal(message: str) -> Any:
    error = {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
    return answer({"error": error}, 400)


@pytest.mark.parametrize("key", ["willContinue", "will_continue"])
async def test_a_call_whose_arguments_come_in_parts_is_refused(
    server: Server, key: str
) -> None:
    """Vertex sends them so if `extra` asks for it: the call ran without arguments."""
    call: dict[str, Any] = {"name": "look", key: True}
    piece = {"jsonPath": "$.at", "stringValue": "Rome"}
    parts: list[Any] = [{"functionCall": call}]
    parts += [{"functionCall": {"partialArgs": [piece]}}, {"functionCall": {}}]
    content = {"role": "model", "parts": parts}
    tree = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    server.answers(stream(frames(tree)))
    with pytest.raises(ModelBroken, match="streamFunctionCallArguments"):
        await asked(server)


async def test_fields_without_a_value_say_nothing(server: Server) -> None:
    """A proxy that writes out the objects of Google's client names every field."""
    call = {"name": "look", "args": {"at": "Rome"}, "id": None}
    empty = {"partial_args": None, "will_continue": False}
    content = {"role": "model", "parts": [{"function_call": {**call, **empty}}]}
    tree = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    server.answers(stream(frames(tree)))
    got = await asked(server)
    assert [item.arguments for item in got.tool_calls] == ['{"at": "Rome"}']


@pytest.mark.parametrize(
    ("feedback", "expected"),
    [
        ({"blockReason": "PROHIBITED_CONTENT"}, "PROHIBITED_CONTENT"),
        (
            {"blockReason": "SAFETY", "blockReasonMessage": "Not this."},
            "SAFETY: Not this.",
        ),
    ],
)
async def test_a_blocked_prompt_says_why(
    server: Server, feedback: dict[str, str], expected: str
) -> None:
    """With the reason alone, if the server explains nothing."""
    notes: list[str] = []
    server.answers(stream(frames({"promptFeedback": feedback})))
    got = await asked(server, notes=notes)
    assert got.finish_reason == "content_filter"
    assert notes == [f"the prompt was blocked: {expected}"]


async def test_snake_case_is_read(server: Server) -> None:
    """Proxies write it; the names of arguments stay as they are."""
    call = {"name": "look", "args": {"the_city": "Zürich"}}
    parts = [{"function_call": call, "thought_signature": "SIG"}]
    candidate = {"content": {"parts": parts}, "finish_reason": "STOP"}
    counts = {"prompt_token_count": 100, "candidates_token_count": 20}
    server.answers(
        stream(frames({"candidates": [candidate], "usage_metadata": counts}))
    )
    got = await asked(server)
    assert [call.name for call in got.tool_calls] == ["look"]
    assert got.tool_calls[0].arguments == '{"the_city": "Zürich"}'
    assert got.usage == Usage(input_tokens=100, output_tokens=20)
    assert json.loads(got.carried)["blocks"] == [
        {"functionCall": call, "thoughtSignature": "SIG"}
    ]


@pytest.mark.parametrize("kind", [str, float])
async def test_numbers_of_tokens_may_be_texts_or_fractions(
    server: Server, kind: type
) -> None:
    """Some servers write them so; unread, no budget would hold."""
    counts = {"promptTokenCount": kind(100), "candidatesTokenCount": kind(20)}
    server.answers(stream(frames({**says("Hello"), "usageMetadata": counts})))
    got = await asked(server)
    assert got.usage == Usage(input_tokens=100, output_tokens=20)


async def test_the_end_mark_of_another_api_is_skipped(server: Server) -> None:
    """Gateways put it behind the last frame."""
    server.answers(stream(frames(says("Hello"), "[DONE]")))
    assert (await asked(server)).text == "Hello"


@pytest.mark.parametrize(
    "message",
    [
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "system_instruction is not supported by this model",
        'Invalid JSON payload received. Unknown name "systemInstruction": Cannot',
    ],
)
async def test_a_refused_system_text_goes_before_the_first_request(
    server: Server, message: str
) -> None:
    """Gemma has no system role; as for chat completions, the user says it."""
    notes: list[str] = []
    server.answers(refusal(message), HELLO)
    assert (await asked(server, notes=notes)).text == "Hello"
    body = server.requests[1].body
    assert "systemInstruction" not in body
    parts = [{"text": "Be kind."}, {"text": "Hi."}]
    assert body["contents"] == [{"role": "user", "parts": parts}]
    assert message in notes[0]


async def test_a_refused_system_text_may_be_the_first_request(server: Server) -> None:
    """Where the conversation begins with the model's turn, or is empty."""
    first = Message(role="assistant", content="Hello.")
    prompt = Prompt(messages=(SYSTEM, first), constant=1)
    server.answers(refusal("Developer instruction is not enabled for m"), HELLO)
    await asked(server, prompt)
    assert server.requests[1].body["contents"] == [
        {"role": "user", "parts": [{"text": "Be kind."}]},
        {"role": "model", "parts": [{"text": "Hello."}]},
    ]


async def test_a_refused_output_type_goes_with_its_schema(server: Server) -> None:
    """A schema without the type would be refused next."""
    message = (
        "Function calling with a response mime type: 'application/json' is unsupported"
    )
    prompt = Prompt(
        messages=(USER,), constant=0, native_tools=(TOOL,), output_schema=SCHEMA
    )
    server.answers(refusal(message), HELLO)
    await asked(server, prompt)
    assert "generationConfig" in server.requests[0].body
    assert "generationConfig" not in server.requests[1].body


async def test_a_refused_keyword_of_schemas_is_left_out(server: Server) -> None:
    """A parameter of that name stays; calls are checked here anyway."""
    message = (
        'Invalid JSON payload received. Unknown name "additionalProperties" at '
        "'tools[0].function_declarations[0].parameters': Cannot find field."
    )
    server.answers(refusal(message), HELLO)
    await asked(server)
    (tool,) = server.requests[1].body["tools"][0]["functionDeclarations"]
    assert tool["parametersJsonSchema"] == {
        "type": "object",
        "properties": {"additionalProperties": {"type": "string"}},
    }
