"""What servers refuse is left out or put in, once, and told where it matters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from models.http_server import Server, answer, hello, serving, stream
from neuraxis.errors import ModelError
from neuraxis.messages import Message, NativeCall, Prompt
from neuraxis.models import complete
from neuraxis.models.http.answers import error_message
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.fallback import without
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.openai.rejections import refused_part
from wire_cases import Case, case_id, cases

QUICK = Options(max_retries=0, first_byte_timeout=5, stall_timeout=5)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {
                "additionalProperties": {"enum": [{"additionalProperties": 1}]},
                "x": {"type": "array", "items": {"additionalProperties": True}},
            },
            "additionalProperties": False,
        },
    },
}
LONG = "call_" + "x" * 60


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


def body_of(case: Case) -> dict[str, Any]:
    call = {"id": LONG, "type": "function", "function": {"name": "add"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "model": "m",
        "messages": [
            *case.get("before", []),
            {"role": "user", "content": "Add."},
            turn | case.get("turns", {}),
            {"role": "tool", "tool_call_id": LONG, "content": "2"},
            *case.get("behind", []),
        ],
        "stream_options": {"include_usage": True},
        "tools": [TOOL],
        **case.get("has", {}),
    }


@pytest.mark.parametrize("case", cases("models", "refusal"), ids=case_id)
def test_the_part_that_is_refused(case: Case) -> None:
    """As servers say it; and once it is left out nothing else is suspected of it."""
    body = body_of(case)
    said = error_message(case["refusal"])
    known = case.get("known", False)
    part = refused_part(body, said, known=known)
    assert part == case.get("part", "")
    if part:
        mended = without(body, part)
        assert mended != body
        assert refused_part(mended, said, known=True) in ("", part)


# A turn that carries something is tried in test_provider_state.py.
PLAIN = [
    case
    for case in cases("models", "refusal")
    if "turns" not in case and "known" not in case
]


@pytest.mark.parametrize("case", PLAIN, ids=case_id)
async def test_the_request_is_mended(case: Case, server: Server) -> None:
    """Over the wire: refused, sent again, and right at once from then on."""
    turn = Message(
        role="assistant",
        content="",
        tool_calls=(NativeCall(id=LONG, name="add", arguments="{}"),),
    )
    prompt = Prompt(
        messages=(
            *(Message(**message) for message in case.get("before", [])),
            Message(role="user", content="Add."),
            turn,
            Message(role="tool", content="2", tool_call_id=LONG),
            *(Message(**message) for message in case.get("behind", [])),
        ),
        constant=1,
        native_tools=(TOOL,),
        stop=tuple(case.get("has", {}).get("stop", ())),
    )
    has = {name: value for name, value in case.get("has", {}).items() if name != "stop"}
    options = Options(max_retries=0, first_byte_timeout=5, stall_timeout=5, **has)
    good, bad = stream(hello()), answer(case["refusal"], case.get("status", 400))
    server.answers(bad, good)
    model = OpenAIModel("m", server=server.url, options=options)
    notes: list[str] = []
    try:
        if "part" not in case:
            with pytest.raises(ModelError):
                await complete(model, prompt)
            assert len(server.requests) == 1
            return
        for _ in range(2):
            said = await complete(model, prompt, lambda chunk: notes.append(chunk.note))
            assert said.text == "Hello"
    finally:
        await model.close()
    first, *rest = [request.body for request in server.requests]
    assert len(rest) == 2
    assert rest[0] == rest[1] == without(first, case["part"])
    told_of = [note for note in notes if note]
    quiet = case["part"] in ("stream_options", "max_tokens")
    begun = f"asked again otherwise: the server refuses {case.get('part')}: "
    assert [note.startswith(begun) for note in told_of] == ([] if quiet else [True])


async def test_a_refusal_without_end(server: Server) -> None:
    """Whatever is left out: told, and no circle."""
    said = (
        "Unknown name \"x\" at 'tools[0].function_declarations[0]': Cannot find field."
    )
    server.answers(answer({"error": said}, 400))
    model = OpenAIModel("m", server=server.url, options=QUICK)
    asked = Message(role="user", content="Hi")
    with pytest.raises(ModelError, match="Cannot find field"):
        await complete(model, Prompt(messages=(asked,), native_tools=(TOOL,)))
    await model.close()
    assert len(server.requests) == 2


async def test_what_was_learned_meanwhile_is_kept(server: Server) -> None:
    """Of two streams at once the one that ends last may have learned less."""
    refusal = {"error": "Argument not supported on this model: stop"}
    good = stream(hello())
    server.answers(good, answer(refusal, 400), good)
    model = OpenAIModel("m", server=server.url, options=QUICK)
    prompt = Prompt(messages=(Message(role="user", content="Hi"),))
    stopping = replace(prompt, stop=("END",))
    async with aclosing(model.stream(prompt)) as slow:
        assert (await anext(slow)).text
        await complete(model, stopping)
        async for _ in slow:
            pass
    await complete(model, stopping)
    await model.close()
    has = ["stop" in request.body for request in server.requests]
    assert has == [False, True, False, False]


def test_a_keyword_that_cannot_be_left_out() -> None:
    """A tool is none without it, or no tool has it: nothing would be another request.

    A server that names a new one each time would else be asked for ever.
    """
    body = {"tools": (TOOL,)}
    for name in ("type", "minimum", "x", "y"):
        said = f"Unknown name \"{name}\" at 'tools[0].function_declarations[0]': No."
        assert refused_part(body, said, known=True) == ""
    said = said.replace('"y"', '"additionalProperties"')
    part = "additionalProperties in the tools' schemas"
    assert refused_part(body, said, known=True) == part


@pytest.mark.parametrize("messages", [None, "x", ["x", 3, None], {"a": 1}, [{}]])
def test_messages_that_the_settings_put_there(messages: Any) -> None:
    """They may be anything, and are the user's own."""
    body = {"messages": messages, "stop": ["x"]}
    for case in cases("models", "refusal"):
        said = error_message(case["refusal"])
        part = refused_part(body, said, known=True)
        assert part in ("", "stop")
    for part in (
        "turns without reasoning_content",
        "ids of tool calls",
        "the order of roles",
    ):
        assert without(body, part) == body


@pytest.mark.parametrize("key", ["x", "k", "s", "ollama", "none", "max_tokens"])
async def test_a_refusal_is_read_as_the_server_wrote_it(
    server: Server, key: str
) -> None:
    """A dummy key may stand in its words; what is left out does not depend on it."""
    said = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    )
    server.answers(answer({"error": {"message": said}}, 400), stream(hello()))
    options = replace(QUICK, max_tokens=9)
    model = OpenAIModel("m", server=server.url, key=key, options=options)
    asked = Message(role="user", content="Hi")
    assert (await complete(model, Prompt(messages=(asked,)))).text == "Hello"
    await model.close()
    assert server.requests[1].body["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "This response_format type is unavailable now"),
        (
            422,
            "Failed to deserialize the JSON body into the target type: "
            "response_format: response_format.type `json_schema` is unavailable now at "
            "line 1 column 12440",
        ),
        (400, "This model does not support response format `json_schema`."),
        (400, "json mode cannot be combined with tool/function calling"),
        (
            400,
            "Function calling with a response mime type: 'application/json' is "
            "unsupported",
        ),
    ],
)
async def test_a_form_of_the_reply_that_is_refused(
    server: Server, status: int, said: str
) -> None:
    """DeepSeek, Groq and Gemini: the request is sent without it, and that is told."""
    server.answers(answer({"error": {"message": said}}, status), stream(hello()))
    options = replace(QUICK, output_schema={"type": "object"})
    model = OpenAIModel("m", server=server.url, options=options)
    notes: list[str] = []
    asked = Message(role="user", content="Hi")
    await complete(
        model, Prompt(messages=(asked,)), lambda chunk: notes.append(chunk.note)
    )
    await model.close()
    has = ["response_format" in request.body for request in server.requests]
    assert has == [True, False]
    assert any("the server refuses response_format" in note for note in notes)


async def test_two_options_that_exclude_each_other(server: Server) -> None:
    """Bedrock: the first is left out, and the second stays."""
    said = (
        "The model returned the following errors: `temperature` and `top_p` cannot "
        "both be specified for this model. Please use only one."
    )
    server.answers(answer({"error": {"message": said}}, 400), stream(hello()))
    options = replace(QUICK, temperature=0.2, top_p=0.9)
    model = OpenAIModel("m", server=server.url, options=options)
    await complete(model, Prompt(messages=(Message(role="user", content="Hi"),)))
    await model.close()
    assert "temperature" not in server.requests[1].body
    assert server.requests[1].body["top_p"] == 0.9


async def test_no_provider_that_knows_an_option(server: Server) -> None:
    """OpenRouter refuses with 404 then."""
    said = "No endpoints found that support the provided 'tool_choice' value."
    server.answers(answer({"error": {"message": said}}, 404), stream(hello()))
    options = replace(QUICK, tool_choice="required")
    model = OpenAIModel("m", server=server.url, options=options)
    asked = Message(role="user", content="Hi")
    await complete(model, Prompt(messages=(asked,), native_tools=(TOOL,)))
    await model.close()
    has = ["tool_choice" in request.body for request in server.requests]
    assert has == [True, False]


def test_a_fault_names_an_option_by_chance() -> None:
    """A status of 500 is no refusal, unless its words are one."""
    body = {"stop": ["x"]}
    for said, part in (
        ("the engine had to stop", ""),
        ("stop is not supported", "stop"),
    ):
        assert refused_part(body, said, known=True, is_fault=True) == part
    assert refused_part(body, "invalid stop", known=True) == "stop"


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for response_format 'answer': schema must be a JSON Schema of "
        "type: object",
        "Tool choice 'deploi' not found in 'tools'",
        "temperature must be non-negative, got -1.0.",
        "top_p must be in (0, 1], got 0.0.",
        "temperature should be in [0, 2]",
        "The model `doubao-seed-1.6` does not exist",
    ],
)
def test_a_users_own_mistake_is_told(message: str) -> None:
    """An option that is dropped in silence hides it."""
    body: dict[str, Any] = {
        "temperature": -1.0,
        "top_p": 0.0,
        "seed": 3,
        "tool_choice": "deploi",
        "response_format": {"type": "json_schema"},
        "tools": [TOOL],
    }
    assert refused_part(body, message, known=True) == ""
