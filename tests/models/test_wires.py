"""What holds for each wire: failures, retries, keys, options, files in a message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from models import wire_scripts
from models.conformance import Answer
from models.http_server import Script, Server, answer, hello, serving, silence, stream
from neuraxis import Session
from neuraxis.errors import (
    ConfigError,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from neuraxis.events import ModelFinished
from neuraxis.messages import Message, NativeCall, Part, Prompt
from neuraxis.models import Model, complete, find_model
from neuraxis.models.anthropic.model import AnthropicModel
from neuraxis.models.gemini.model import GeminiModel
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.openai_responses.model import ResponsesModel
from neuraxis.settings import Setting, Settings

KEY = "sk-test-0123456789"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}
USER = Message(role="user", content="Hi.")
PROMPT = Prompt(
    messages=(Message(role="system", content="Be kind."), USER),
    constant=1,
    native_tools=(TOOL,),
)


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A wire and how its server says things."""

    name: str
    make: Callable[..., Model]
    script: Callable[[Answer], Script]
    key_header: str
    overloaded: bytes
    """An error within a stream."""
    begun: bytes
    """A piece of text within a stream."""


def _chat(answer: Answer) -> Script:
    return stream(hello("".join(answer.pieces)))


def _frame(tree: dict[str, Any], name: str = "") -> bytes:
    event = f"event: {name}\n" if name else ""
    return f"{event}data: {json.dumps(tree)}\n\n".encode()


WIRES = [
    Wire(
        name="openai",
        make=OpenAIModel,
        script=_chat,
        key_header="authorization",
        overloaded=_frame({"error": {"message": "overloaded", "code": 503}}),
        begun=_frame({"choices": [{"index": 0, "delta": {"content": "Hel"}}]}),
    ),
    Wire(
        name="anthropic",
        make=AnthropicModel,
        script=wire_scripts.anthropic,
        key_header="x-api-key",
        overloaded=_frame(
            {
                "type": "error",
                "error": {"type": "overloaded_error", "message": "overloaded"},
            },
            "error",
        ),
        begun=_frame(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "Hel"},
            }
        ),
    ),
    Wire(
        name="gemini",
        make=GeminiModel,
        script=wire_scripts.gemini,
        key_header="x-goog-api-key",
        overloaded=_frame({"error": {"code": 503, "message": "overloaded"}}),
        begun=_frame({"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]}),
    ),
    Wire(
        name="openai-responses",
        make=ResponsesModel,
        script=wire_scripts.responses,
        key_header="authorization",
        overloaded=_frame(
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {"code": "server_error", "message": "overloaded"},
                },
            }
        ),
        begun=_frame(
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "delta": "Hel",
            }
        ),
    ),
]
wires = pytest.mark.parametrize("wire", WIRES, ids=[wire.name for wire in WIRES])


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


async def nobody_waits(seconds: float) -> None:
    """In place of a pause."""


Make = Callable[..., Model]


@pytest.fixture
async def make(server: Server) -> AsyncIterator[Make]:
    made: list[Model] = []

    def build(wire: Wire, *scripts: Script, **given: Any) -> Model:
        server.answers(*scripts)
        options = Options(**given.pop("options", {}))
        keyed = {"sleep": nobody_waits, "options": options, **given}
        made.append(wire.make("m", server=server.url, **keyed))
        return made[-1]

    yield build
    for model in made:
        await model.close()


# --- failures -------------------------------------------------------------------


@wires
async def test_a_wrong_key_is_one_sentence_without_the_key(
    wire: Wire, make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says which variable was sent, is not repeated, and never holds the key."""
    monkeypatch.setenv("MY_KEY", KEY)
    refusal = answer({"error": {"message": f"invalid key {KEY}"}}, 401)
    model = make(wire, refusal, key_env="MY_KEY")
    with pytest.raises(ModelRefused, match=r"401.*the key of MY_KEY was sent") as told:
        await complete(model, PROMPT)
    assert KEY in server.requests[0].headers[wire.key_header]
    assert len(server.requests) == 1
    assert KEY not in str(told.value)
    assert "\n" not in str(told.value)


@wires
async def test_a_storm_of_429_ends_after_the_retries(
    wire: Wire, make: Make, server: Server
) -> None:
    """The last refusal is told in one sentence with its status."""
    full = answer({"error": {"message": "slow down"}}, 429, retry_after="1")
    model = make(wire, full, options={"max_retries": 2})
    with pytest.raises(ModelRefused, match="429: slow down") as told:
        await complete(model, PROMPT)
    assert (told.value.status, len(server.requests)) == (429, 3)


@wires
async def test_a_stall_is_told_with_its_limit(wire: Wire, make: Make) -> None:
    """A server that falls silent within its answer is waited for as long as said."""
    model = make(wire, stream(wire.begun, end="stall"), options={"stall_timeout": 0.1})
    with pytest.raises(ModelTimeout, match=r"the answer stopped for 0\.1 s"):
        await complete(model, PROMPT)


@wires
async def test_a_server_that_never_answers(wire: Wire, make: Make) -> None:
    """So is one that takes the request and says nothing."""
    model = make(wire, silence, options={"first_byte_timeout": 0.1})
    with pytest.raises(ModelTimeout, match=r"no answer in 0\.1 s"):
        await complete(model, PROMPT)


@wires
async def test_an_error_within_the_stream_is_asked_again(
    wire: Wire, make: Make, server: Server
) -> None:
    """Where nothing was given out the same request is sent again, with a note."""
    model = make(wire, stream(wire.overloaded), wire.script(Answer()))
    notes: list[str] = []
    done = await complete(model, PROMPT, lambda chunk: notes.append(chunk.note))
    assert (done.text, len(server.requests)) == ("Hello", 2)
    assert "overloaded" in "".join(notes)


@wires
async def test_a_session_asks_again_where_the_server_fails_amid_its_reply(
    wire: Wire, make: Make, server: Server
) -> None:
    """The half reply is dropped and the journal says so."""
    broken = stream(wire.begun, wire.overloaded)
    session = Session(model=make(wire, broken, wire.script(Answer())), dialect="native")
    answered = await session.run("Hi.")
    assert (answered.text, answered.outcome) == ("Hello", "answered")
    assert len(server.requests) == 2
    events = [entry.event for entry in session.journal.read(session.id)]
    finished = [event for event in events if isinstance(event, ModelFinished)]
    assert "broke off and was asked for again" in finished[0].notes[0]


@wires
async def test_a_session_gives_up_where_the_server_keeps_failing(
    wire: Wire, make: Make, server: Server
) -> None:
    """After two repetitions the run fails with the server's sentence."""
    session = Session(
        model=make(wire, stream(wire.begun, wire.overloaded)), dialect="native"
    )
    answered = await session.run("Hi.")
    assert (answered.outcome, len(server.requests)) == ("failed", 3)
    assert "overloaded" in answered.error


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic:claude-sonnet-5", "ANTHROPIC_API_KEY"),
        ("gemini:gemini-3-flash", "GEMINI_API_KEY"),
        ("openai-responses:gpt-5", "OPENAI_API_KEY"),
        ("bedrock:anthropic.claude-sonnet-4-5", "AWS_BEARER_TOKEN_BEDROCK"),
        ("vertex:gemini-3-flash", "VERTEX_ACCESS_TOKEN"),
    ],
)
def test_a_missing_key_is_told_at_once(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is asked, with the variable to set."""
    monkeypatch.delenv(variable, raising=False)
    settings = Settings().override(
        {
            "vertex.project": "p",
            "bedrock.base_url": "https://bedrock-runtime.us-east-1.amazonaws.com",
        },
        "test",
    )
    with pytest.raises((ModelUnavailable, ConfigError), match=variable) as told:
        find_model(name, settings)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("kind", ["anthropic", "gemini", "openai-responses"])
def test_a_name_is_expected_behind_the_kind(kind: str) -> None:
    """A kind alone names no model."""
    with pytest.raises(ConfigError, match=f"{kind}: the model's name is missing"):
        find_model(f"{kind}:", Settings())


@pytest.mark.parametrize("kind", ["anthropic", "gemini"])
async def test_a_projects_address_gets_no_key(
    kind: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace's file may come from anybody (tests/test_settings.py: no key_env)."""
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", KEY)
    server.answers(answer({"error": {"message": "no"}}, 401))
    place = Setting(value=server.url, source="neuraxis.toml", of_project=True)
    model = find_model(f"{kind}:m", Settings(values={f"{kind}.base_url": place}))
    with pytest.raises(ModelRefused, match=f"put {kind}.base_url in your own"):
        await complete(model, PROMPT)
    await model.close()
    assert KEY not in str(server.requests[0].headers)


# --- what is asked --------------------------------------------------------------


PICTURE = Part(media_type="image/png", data=b"\x89PNG")
PDF = Part(media_type="application/pdf", data=b"%PDF", name="a.pdf")


@wires
async def test_pictures_and_pdf_are_sent(
    wire: Wire, make: Make, server: Server
) -> None:
    """Both stand in the message as the API takes them."""
    prompt = replace(PROMPT, messages=(replace(USER, parts=(PICTURE, PDF)),))
    await complete(make(wire, wire.script(Answer())), prompt)
    sent = json.dumps(server.requests[0].body)
    for data in ("iVBORw==", "JVBERg=="):
        assert data in sent
    assert sent.index("image") < sent.index("pdf")
    assert "Hi." in sent


@wires
async def test_another_kind_of_file_is_refused(wire: Wire, make: Make) -> None:
    """It is never sent as something that it is not."""
    part = Part(media_type="video/mp4", data=b"", name="x.mp4")
    prompt = replace(PROMPT, messages=(replace(USER, parts=(part,)),))
    with pytest.raises(ConfigError, match=r"x\.mp4: expected a picture or a PDF"):
        await complete(make(wire, wire.script(Answer())), prompt)


@wires
async def test_a_refused_picture_is_told_in_words(
    wire: Wire, make: Make, server: Server
) -> None:
    """Here and in each later request; the note says so once."""
    said = {"error": {"message": "this model takes no image input"}}
    model = make(wire, answer(said, 400), wire.script(Answer()))
    shown = replace(USER, parts=(replace(PICTURE, name="cat.png"),))
    prompt = replace(PROMPT, messages=(shown,))
    notes: list[str] = []
    for _ in range(2):
        await complete(model, prompt, lambda chunk: notes.append(chunk.note))
    sent = [json.dumps(request.body) for request in server.requests]
    assert ["iVBORw==" in body for body in sent] == [True, False, False]
    words = "Not shown here: cat.png, image/png."
    assert [words in body for body in sent] == [False, True, True]
    assert len([note for note in notes if "without pictures" in note]) == 1


@wires
async def test_a_refused_option_is_left_out_with_a_note(
    wire: Wire, make: Make, server: Server
) -> None:
    """Here and in each later request; the note says so once."""
    said = {"error": {"message": "temperature is not supported for this model"}}
    model = make(
        wire,
        answer(said, 400),
        wire.script(Answer()),
        options={"temperature": 0.2},
    )
    notes: list[str] = []
    for _ in range(2):
        await complete(model, PROMPT, lambda chunk: notes.append(chunk.note))
    sent = [json.dumps(request.body) for request in server.requests]
    assert ["temperature" in body for body in sent] == [True, False, False]
    assert len([note for note in notes if "refuses temperature" in note]) == 1


@wires
async def test_calls_and_results_go_back_by_their_ids(
    wire: Wire, make: Make, server: Server
) -> None:
    """Also where another model wrote them; arguments are always an object."""
    call = NativeCall(id="c1", name="look", arguments='{"at": "x"}')
    broken = NativeCall(id="c2", name="look", arguments='{"at": ')
    history = (
        USER,
        Message(role="assistant", content="", tool_calls=(call, broken)),
        Message(role="tool", content="seen", tool_call_id="c1"),
        Message(role="tool", content="not read", tool_call_id="c2"),
        Message(role="user", content="And?"),
    )
    await complete(make(wire, wire.script(Answer())), replace(PROMPT, messages=history))
    sent = json.dumps(server.requests[0].body)
    assert sent.count('"c1"') == sent.count('"c2"') == 2
    assert sent.count('"look"') >= 3
    for text in ("seen", "not read", "And?", "unreadable"):
        assert text in sent


@wires
async def test_half_a_surrogate_pair_can_be_sent(wire: Wire, make: Make) -> None:
    """A history may hold it; it has no UTF-8."""
    prompt = replace(PROMPT, messages=(Message(role="user", content="\ud83d"),))
    assert (await complete(make(wire, wire.script(Answer())), prompt)).text == "Hello"


@wires
async def test_what_is_no_json_is_an_error(wire: Wire, make: Make) -> None:
    """A page of a proxy, or a broken frame, is no answer."""
    for body in (b"<html>x</html>", b"data: {oops\n\n", b"[1]", b"{}"):
        model = make(wire, answer(body), options={"max_retries": 0})
        with pytest.raises(ModelError):
            await complete(model, PROMPT)
