"""Weights of one's own: with a binding of ours, and with the real file."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.dialects import find_dialect
from neuraxis.errors import (
    ConfigError,
    MissingExtra,
    ModelBroken,
    ModelRefused,
    ModelUnavailable,
)
from neuraxis.messages import Chunk, Message, Prompt
from neuraxis.models import complete, find_model
from neuraxis.models.gguf import engine, weights
from neuraxis.models.gguf.engine import Setup
from neuraxis.models.gguf.model import GgufModel
from neuraxis.models.http.settings import Options
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session.prompt import Prompts
from neuraxis.settings import Setting, Settings

PROMPT = Prompt(messages=(Message(role="user", content="Hi."),))
Answer = Callable[[dict[str, Any], Callable[[Any], bool]], Any]


def piece(text: str = "", reason: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"content": text}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}


def binding(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> list[Any]:
    """Put a module of the binding's shape in place; gives the parameters it got."""
    seen: list[Any] = []

    class CommonParams:
        def __init__(self) -> None:
            self.model = types.SimpleNamespace()
            self.cpuparams = types.SimpleNamespace()
            self.cpuparams_batch = types.SimpleNamespace()

    class Server:
        listening_address = "http://127.0.0.1:1"

        def __init__(self, params: Any) -> None:
            if params.model.path.endswith("broken.gguf"):
                raise RuntimeError("not a model")
            seen.append(params)

        def handle_chat_completions(self, body: dict[str, Any], take: Any) -> Any:
            return answer(body, take)

    module = types.ModuleType("xllamacpp")
    module.CommonParams = CommonParams  # type: ignore[attr-defined]
    module.Server = Server  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    return seen


def model(tmp_path: Path, name: str = "a.gguf", **given: Any) -> GgufModel:
    file = tmp_path / name
    file.write_bytes(b"GGUF")
    setup = Setup(states_mb=0, threads=1)
    return GgufModel(lambda: file, name="local:a", setup=setup, **given)


async def test_pieces_come_while_it_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first piece is out before the second is written."""
    gate = threading.Event()

    def answer(body: dict[str, Any], take: Any) -> None:
        take([piece("one ")])
        assert gate.wait(10)
        take(piece("two", "stop"))
        take({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})

    binding(monkeypatch, answer)
    seen: list[Chunk] = []

    def on_chunk(chunk: Chunk) -> None:
        seen.append(chunk)
        gate.set()

    made = model(tmp_path)
    done = await complete(made, PROMPT, on_chunk)
    assert (done.text, done.finish_reason) == ("one two", "stop")
    assert done.usage is not None
    assert done.usage.input_tokens == 3
    assert seen[0].text == "one "
    await made.close()


async def test_a_closed_stream_ends_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The binding is told to stop at its next piece, and not waited for."""
    told: list[bool] = []
    ended = threading.Event()

    def answer(body: dict[str, Any], take: Any) -> None:
        while not told or not told[-1]:
            told.append(take(piece("la ")))
            time.sleep(0.01)
        ended.set()

    binding(monkeypatch, answer)
    stream = model(tmp_path).stream(PROMPT)
    assert (await anext(stream)).text == "la "  # type: ignore[arg-type]
    await stream.aclose()  # type: ignore[attr-defined]
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_closed_stream_ends_the_reading_of_the_constant_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reading it takes minutes on a slow machine; nobody waits for it any more."""
    reading, ended = threading.Event(), threading.Event()
    bodies: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], take: Any = None) -> None:
        bodies.append(body)
        until = time.monotonic() + 10
        while not take(piece()) and time.monotonic() < until:
            reading.set()
            time.sleep(0.01)
        ended.set()

    binding(monkeypatch, answer)
    monkeypatch.setenv("NEURAXIS_HOME", str(tmp_path / "home"))
    system = Message(role="system", content="Be kind.")
    prompt = Prompt(messages=(system, *PROMPT.messages), constant=1)
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    made = GgufModel(
        lambda: tmp_path / "a.gguf", name="local:a", setup=Setup(threads=1)
    )
    asked = asyncio.ensure_future(complete(made, prompt))
    assert await asyncio.to_thread(reading.wait, 10)
    asked.cancel()
    assert await asyncio.to_thread(ended.wait, 5)
    assert [len(body["messages"]) for body in bodies] == [1]


async def test_sessions_share_a_loaded_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is in memory once, for two that answer at the same time; then it goes."""
    both = threading.Barrier(2)

    def answer(body: dict[str, Any], take: Any) -> None:
        both.wait(10)
        take(piece("x", "stop"))

    seen = binding(monkeypatch, answer)
    one, two = model(tmp_path), model(tmp_path)
    await asyncio.gather(complete(one, PROMPT), complete(two, PROMPT))
    assert len(seen) == 1
    await one.close()
    await two.close()
    both = threading.Barrier(1)
    await complete(one, PROMPT)
    assert len(seen) == 2
    await one.close()


async def test_what_cannot_be_run_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A broken file, a prompt that is too long, and a binding that is missing."""
    error = {"code": 400, "message": "request (9 tokens) exceeds the context size"}
    binding(monkeypatch, lambda body, take: take({"error": error}))
    what_helps = r"local:a: .*exceeds the context.*local\.context.*--no-builtin"
    with pytest.raises(ModelRefused, match=what_helps):
        await complete(model(tmp_path), PROMPT)
    with pytest.raises(ModelUnavailable, match=r"llama\.cpp cannot load it"):
        await complete(model(tmp_path, "broken.gguf"), PROMPT)

    def fails(body: dict[str, Any], take: Any) -> None:
        raise ValueError("no")

    binding(monkeypatch, fails)
    with pytest.raises(ModelBroken, match="local:a: no"):
        await complete(model(tmp_path, "b.gguf"), PROMPT)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match="neuraxis\\[local\\]"):
        await complete(model(tmp_path, "c.gguf"), PROMPT)


async def test_native_tools_need_a_template_with_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the model would never see them."""
    binding(monkeypatch, lambda body, take: None)
    tools = ({"type": "function", "function": {"name": "f"}},)
    prompt = Prompt(messages=PROMPT.messages, native_tools=tools)
    with pytest.raises(ModelRefused, match="dialect = intents"):
        await complete(model(tmp_path), prompt)


def test_names(tmp_path: Path) -> None:
    """A path, the hub, a known name; anything else says what there is."""
    file = tmp_path / "own.gguf"
    file.write_bytes(b"")
    assert find_model(f"local:{file}").name == f"local:{file}"
    assert find_model("local:hf:o/r/d/f.gguf").name == "local:hf:o/r/d/f.gguf"
    for wrong in ("hf:o/r", "qwen3-4", str(tmp_path / "none.gguf")):
        with pytest.raises(ConfigError, match=r"expected .*hf:OWNER/REPO/FILE"):
            find_model(f"local:{wrong}")
    many = Setting(value="many", source="neuraxis.toml")
    settings = Settings(values={"local.threads": many})
    with pytest.raises(ConfigError, match=r"local\.threads: expected a number"):
        find_model(f"local:{file}", settings)


@pytest.fixture(autouse=True)
def nothing_loaded() -> None:
    """A test that failed may still hold its model in the traceback."""
    engine._LOADED.clear()  # pyright: ignore[reportPrivateUsage]


# --- the real file -----------------------------------------------------------


@pytest.fixture
def real() -> Path:
    pytest.importorskip("xllamacpp")
    found = weights.find()
    if found is None:
        pytest.skip("NEURAXIS_WEIGHTS does not name the model file")
    return found


@command(effects="read")
def population(city: str, year: int = 2025) -> dict[str, int]:
    """How many people live in a city."""
    return {"people": len(city) * year}


def made(real: Path, choice: str | None = None, **given: Any) -> GgufModel:
    more = {"temperature": 0, "max_tokens": 300, **given}
    return GgufModel(
        lambda: real,
        name="local:smollm2",
        options=Options(tool_choice=choice, seed=7, **more),
        setup=Setup(threads=1, context=4096),
    )


@pytest.mark.local_model
@pytest.mark.timeout(300)
async def test_a_call_cannot_be_malformed(real: Path, tmp_path: Path) -> None:
    """Twelve requests, most of which mean no tool: each reply is whole, valid calls.

    The cold ones are held to a single call, the hot ones to a list of them.
    """
    dialect = find_dialect("intents")
    with Session(
        model=ScriptedModel([]), plugins=[population], workspace=tmp_path
    ) as session:
        prompts = Prompts(session.registry, dialect)
    read = broken = 0
    for text in ("How many live in Paris?", "Hi", "Write <b>", "ja?", "42", "{}"):
        for hot in (0.0, 1.5):
            asked = Message(role="user", content=dialect.request(text))
            prompt = prompts.make([asked])
            many = hot > 0
            weigher = made(real, "required", temperature=hot, parallel_tool_calls=many)
            done = await complete(weigher, prompt)
            if done.finish_reason == "length":
                continue  # cut off, so that nothing of it runs (D10)
            reply = dialect.decode(done, next_id=lambda: "c")
            read += len(reply.calls)
            broken += bool(reply.errors) or not reply.calls
            assert many or len(reply.calls) == 1
            assert {call.command for call in reply.calls} <= {"population"}
            for call in reply.calls:
                assert isinstance(call.arguments["city"], str)
    assert broken == 0
    assert read > 0


@pytest.mark.local_model
@pytest.mark.timeout(300)
async def test_a_session_with_real_weights(real: Path, tmp_path: Path) -> None:
    """The forced call runs once, its result reaches the model, its words end the run.

    So small a model may write the mark of the dialect alone. That is no answer: the run
    then fails and says so, and the mark is never shown.
    """
    forced, free = (made(real, "population"), made(real, "none", max_tokens=30))
    told: list[Any] = []

    class Once:
        name = "local:smollm2"

        def stream(self, prompt: Prompt) -> Any:
            told.extend(one for said in prompt.messages for one in said.results)
            return (free if told else forced).stream(prompt)

        async def close(self) -> None:
            await forced.close()

    with Session(model=Once(), plugins=[population], workspace=tmp_path) as session:
        answer = await session.drive("How many people live in Paris?")
    if answer.text:
        assert answer.outcome == "answered", answer
    else:
        assert answer.outcome == "failed", answer
        assert "The reply was empty." in answer.error
    (call,) = answer.calls
    assert call.status == "done"
    assert isinstance(call.value, dict)
    assert all(one == call for one in told)
    assert told
    assert "RESULTS_END" not in answer.text


@pytest.mark.local_model
@pytest.mark.timeout(300)
async def test_two_sessions_at_once_and_a_cancelled_one(real: Path) -> None:
    """One engine; a cancelled answer leaves its slot to the next."""
    one, two = made(real, max_tokens=60), made(real, max_tokens=60)
    text = Prompt(messages=(Message(role="user", content="Count to twenty."),))
    both = await asyncio.gather(complete(one, text), complete(two, text))
    assert all(done.text for done in both)
    assert one._engine is two._engine  # pyright: ignore[reportPrivateUsage]
    stream = one.stream(text)
    await anext(stream)  # type: ignore[arg-type]
    await stream.aclose()  # type: ignore[attr-defined]
    began = time.monotonic()
    short = made(real, max_tokens=3)
    assert (await complete(short, text)).finish_reason == "length"
    assert time.monotonic() - began < 30


@pytest.mark.local_model
@pytest.mark.timeout(300)
async def test_the_constant_part_is_on_disk(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new engine finds what the last one had read, and reads only the rest."""
    rules = "You are kind and count in tens. " * 30
    system = Message(role="system", content=rules)
    prompt = Prompt(messages=(system, PROMPT.messages[0]), constant=1)
    for fresh in (True, False):
        weigher = made(real)
        done = await complete(weigher, prompt)
        assert done.usage is not None
        assert done.usage.cached_tokens > 200, fresh
        await weigher.close()
        assert not engine._LOADED  # pyright: ignore[reportPrivateUsage]
        # from here on nothing may read the constant part by itself
        monkeypatch.setattr(
            "neuraxis.models.gguf.kv_cache_files.save",
            lambda *given: pytest.fail("read again"),
        )
