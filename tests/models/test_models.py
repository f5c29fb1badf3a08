"""Names become models, and chunks become completions."""

from __future__ import annotations

import asyncio
import importlib
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any, cast

import pytest

import neuraxis.models
from cpu_time import within
from neuraxis import Session
from neuraxis.errors import ConfigError, ModelBroken, ModelUnavailable
from neuraxis.messages import Chunk, Prompt, ToolCallDelta, Usage
from neuraxis.models import complete, find_model, model_names
from neuraxis.models.accumulate import Joiner
from neuraxis.models.failover import Failover
from neuraxis.models.recorder import Recorder
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

PROMPT = Prompt(messages=())

BUILT_IN = (
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "vertex",
    "bedrock",
    "azure",
    "scripted",
    "local",
)


def offered(rest: str, settings: Settings) -> ScriptedModel:
    """What a package would offer as an entry point."""
    return ScriptedModel([rest + str(settings.get("x", ""))])


class Bare:
    """A model whose stream has no `aclose`, as a third party may write it."""

    name = "bare"

    def __init__(self, *chunks: Chunk) -> None:
        self._chunks = chunks

    def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        return _Plain(self._chunks)

    async def close(self) -> None: ...


class _Plain:
    def __init__(self, chunks: tuple[Chunk, ...]) -> None:
        self._rest = iter(chunks)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        try:
            return next(self._rest)
        except StopIteration:
            raise StopAsyncIteration from None


@pytest.mark.parametrize("name", ["nope:x", "gpt-x", "", "Openai:x", "open ai:x"])
def test_unknown_names(name: str) -> None:
    """The error says which forms and which kinds there are."""
    with pytest.raises(ConfigError) as caught:
        find_model(name)
    for word in ("openai:NAME", "scripted:FILE", "local:", "Expected one of"):
        assert word in str(caught.value)


def test_a_near_name_is_proposed() -> None:
    """A slip of the finger is met with the right name."""
    with pytest.raises(ConfigError, match="Did you mean openai:"):
        find_model("opnai:gpt-x")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai:", "openai:NAME"),
        ("openai", "openai:NAME"),
        ("scripted:", "scripted:FILE"),
        ("http://127.0.0.1:1/v1", "after a #"),
        ("http://127.0.0.1:1/v1#", "after a #"),
        ("http://#m", "such as http"),
        ("http://127.0.0.1:99999/v1#m", "not a URL"),
        ("https://user:secret@host/v1#m", "without a name or key"),
    ],
)
def test_names_that_lack_something(name: str, expected: str) -> None:
    """The form that was meant is told; a key in a URL is not repeated."""
    with pytest.raises(ConfigError, match=expected) as caught:
        find_model(name)
    assert "secret" not in str(caught.value)


def test_openai_without_key() -> None:
    """One plain sentence that names the variable."""
    with pytest.raises(ModelUnavailable, match="set the environment variable OPENAI"):
        find_model("openai:gpt-x")


def test_the_built_in_names_need_no_metadata(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stale or absent installation does not hide them."""

    def none(**_: str) -> EntryPoints:
        return EntryPoints()

    monkeypatch.setattr(neuraxis.models, "_entry_points", none)
    (tmp_path / "s.yaml").write_text("- hello\n", encoding="utf-8")
    assert model_names() == BUILT_IN
    assert find_model("http://127.0.0.1:1#m").name == "http://127.0.0.1:1/v1#m"
    assert find_model(f"scripted:{tmp_path / 's.yaml'}").name.startswith("scripted:")
    assert importlib.util.find_spec("neuraxis.models.offline") is not None


def test_entry_points_add_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package offers a model by an entry point, but not under a built-in name."""
    points = [
        EntryPoint(name=name, value=value, group="neuraxis.models")
        for name, value in [
            ("mine", f"{__name__}:offered"),
            ("openai", f"{__name__}:offered"),
            ("gone", "no_such_module_at_all:make"),
        ]
    ]

    def chosen(**wanted: str) -> EntryPoints:
        return EntryPoints(points).select(**wanted)

    monkeypatch.setitem(sys.modules, __name__, sys.modules[offered.__module__])
    monkeypatch.setattr(neuraxis.models, "_entry_points", chosen)
    settings = Settings().override({"x": "!"}, "test")
    completion = asyncio.run(complete(find_model("mine:a:b", settings), PROMPT))
    assert completion.text == "a:b!"
    assert model_names() == (*BUILT_IN, "gone", "mine")
    with pytest.raises(ModelUnavailable):
        find_model("openai:gpt-x")
    with pytest.raises(ConfigError, match="no_such_module_at_all"):
        find_model("gone:x")


def test_nothing_heavy_is_imported() -> None:
    """Finding a server's model does not import the HTTP client yet."""
    code = (
        "import sys; from neuraxis.models import find_model; "
        "find_model('http://127.0.0.1:1#m'); "
        "print([n for n in ('httpx2', 'xllamacpp', 'yaml') if n in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


async def test_chunks_are_joined() -> None:
    """Text, native calls by index, the last usage; reasoning is only shown."""
    seen: list[Chunk] = []
    chunks = (
        Chunk(reasoning="hm", usage=Usage(input_tokens=1)),
        Chunk(text="a", tool_calls=(ToolCallDelta(index=1, name="g", arguments="{"),)),
        Chunk(tool_calls=(ToolCallDelta(index=0, id="x", name="f", arguments="{}"),)),
        Chunk(text="b", tool_calls=(ToolCallDelta(index=1, id="y", arguments="}"),)),
        Chunk(finish_reason="tool_calls", usage=Usage(input_tokens=2)),
    )
    completion = await complete(Bare(*chunks), PROMPT, seen.append)
    assert completion.text == "ab"
    assert [(c.id, c.name, c.arguments) for c in completion.tool_calls] == [
        ("x", "f", "{}"),
        ("y", "g", "{}"),
    ]
    assert completion.usage == Usage(input_tokens=2)
    assert tuple(seen) == chunks


async def test_each_call_has_an_id_of_its_own() -> None:
    """Results go back by id; what the server says twice under one id is one call."""
    said = [("f", "1"), ("f", "2"), ("f", "1"), ("g", "1")]
    deltas = tuple(
        ToolCallDelta(index=index, id="c", name=name, arguments=arguments)
        for index, (name, arguments) in enumerate(said)
    )
    chunk = Chunk(tool_calls=deltas, finish_reason="tool_calls")
    calls = (await complete(Bare(chunk), PROMPT)).tool_calls
    assert [(c.name, c.arguments) for c in calls] == [
        ("f", "1"),
        ("f", "2"),
        ("g", "1"),
    ]
    assert len({c.id for c in calls}) == 3
    assert calls[0].id == "c"


@pytest.mark.parametrize(
    ("other", "arguments", "carried"),
    [("d", "1", "state"), ("c", "1", ""), ("c", "2", "")],
)
async def test_what_names_two_calls_by_one_id_does_not_go_back(
    other: str, arguments: str, carried: str
) -> None:
    """It has the server's ids and places, and the results have others."""
    calls = (
        ToolCallDelta(index=0, id="c", name="f", arguments="1"),
        ToolCallDelta(index=1, id=other, name="f", arguments=arguments),
    )
    chunk = Chunk(tool_calls=calls, finish_reason="tool_calls", carried="state")
    seen: list[Chunk] = []
    assert (await complete(Bare(chunk), PROMPT, seen.append)).carried == carried
    assert any("gave two calls one id" in c.note for c in seen) is not bool(carried)


def test_each_id_of_many_calls_is_looked_up_and_not_searched_for() -> None:
    """A server may give thousands."""
    joined = Joiner()
    for index in range(16_000):
        call = ToolCallDelta(index=index, id=f"id_{index}", name="f")
        joined.add(Chunk(tool_calls=(call,)))
    joined.add(Chunk(finish_reason="tool_calls"))
    assert len(within(0.3, lambda: joined.completion("m")).tool_calls) == 16_000


async def test_no_finish_reason_is_a_break() -> None:
    """A stream that just ends is not taken for a whole reply."""
    with pytest.raises(ModelBroken, match="bare: the stream ended without a finish"):
        await complete(Bare(Chunk(text="half")), PROMPT)


class Plain(Bare):
    """A model whose stream is a plain generator."""

    def stream(self, prompt: Prompt) -> Any:
        return iter(())


class Whole(Bare):
    """A model whose stream only returns; a warning would be an error here."""

    async def stream(self, prompt: Prompt) -> Any:
        return "hi"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Plain(), "stream: expected an `async def` that yields, got a tuple_iterator"),
        (Whole(), "stream: expected an `async def` that yields, got a coroutine"),
        (Bare(cast("Any", "hi")), "stream: expected each piece as a Chunk, got 'hi'"),
        (
            Bare(Chunk(text="hi", finish_reason=cast("Any", "end_turn"))),
            "finish_reason: expected one of stop, length, .*, got 'end_turn'",
        ),
    ],
)
async def test_what_the_author_of_a_model_must_write_is_told(
    model: Bare, words: str
) -> None:
    """No attribute error of a text, deep inside."""
    with pytest.raises(ConfigError, match=f"model bare: {words}"):
        await complete(model, PROMPT)


@pytest.mark.parametrize(
    ("calls", "given"),
    [
        (({"id": "a", "name": "f"},), "a dict"),
        (ToolCallDelta(index=0, name="f"), "a ToolCallDelta"),
    ],
)
async def test_what_a_native_call_must_be_is_told(calls: Any, given: str) -> None:
    """A mapping is none, and one alone is no tuple."""
    told = f"tool_calls: expected a tuple of ToolCallDelta, got {given}"
    with pytest.raises(ConfigError, match=told):
        await complete(Bare(Chunk(tool_calls=calls, finish_reason="stop")), PROMPT)


class Closing(Bare):
    """A model whose `close` is a plain function."""

    closed = 0

    def close(self) -> Any:
        self.closed += 1


async def test_a_plain_close_is_enough(tmp_path: Path) -> None:
    """Wherever a model is closed; the answer is not lost."""
    model = Closing(Chunk(text="done", finish_reason="stop"))
    await Failover([model]).close()
    await Recorder(model, tmp_path / "script.yaml").close()
    assert model.closed == 2


def test_the_answer_of_a_model_with_a_plain_close_is_returned() -> None:
    """`run_sync` closes its connections."""
    model = Closing(Chunk(text="done", finish_reason="stop"))
    with Session(model) as session:
        assert session.run_sync("go").text == "done"
    assert model.closed == 1


async def test_the_stream_is_closed_when_a_listener_fails() -> None:
    """What the generator holds is freed before the error goes on."""
    closed: list[bool] = []

    class Held(Bare):
        async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
            try:
                yield Chunk(text="a")
            finally:
                closed.append(True)

    def fail(chunk: Chunk) -> None:
        raise RuntimeError(chunk.text)

    with pytest.raises(RuntimeError):
        await complete(Held(), PROMPT, fail)
    assert closed == [True]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ollama:qwen3", "http://127.0.0.1:11434/v1#qwen3"),
        ("llama.cpp:", "http://127.0.0.1:8080/v1#NAME"),
        ("vLLM:big/one", "http://127.0.0.1:8000/v1#big/one"),
        ("127.0.0.1:11434/v1#qwen3", "http://127.0.0.1:11434/v1#qwen3"),
        ("localhost:8080/v1#m", "http://localhost:8080/v1#m"),
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("openai/gpt-5", "openai:gpt-5"),
        ("opnai:gpt-5", "openai:"),
    ],
)
def test_the_name_that_a_model_has_here(name: str, meant: str) -> None:
    """What other programs call a model is answered with what it is called here."""
    with pytest.raises(ConfigError, match=rf"Did you mean {re.escape(meant)}\?"):
        find_model(name)
