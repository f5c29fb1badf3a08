"""The client against a server that we did not write: llama.cpp's own."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from neuraxis import Session, command
from neuraxis.dialects import find_dialect
from neuraxis.errors import ModelRefused
from neuraxis.messages import Chunk, Message, Prompt
from neuraxis.models import complete
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session.prompt import Prompts

pytestmark = pytest.mark.local_model

KEY = "sk-neuraxis-test"


@command(effects="read")
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


PROMPT = Prompt(messages=(Message(role="user", content="Say hello."),))


def weights() -> Path:
    """The file that `NEURAXIS_WEIGHTS` names."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    given = os.environ.get("NEURAXIS_WEIGHTS", "")
    if not Path(given).is_file():
        pytest.skip("NEURAXIS_WEIGHTS names no file of a model (GGUF)")
    return Path(given)


@pytest.fixture(scope="module")
def llama() -> Any:
    path = weights()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 512
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    params.warmup = False
    params.api_keys = [KEY]
    return xllamacpp.Server(params)


@pytest.fixture
async def model(
    llama: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[OpenAIModel]:
    monkeypatch.setenv("LLAMA_KEY", KEY)
    made = OpenAIModel(
        "tiny",
        server=llama.listening_address,
        key_env="LLAMA_KEY",
        options=Options(max_tokens=8, temperature=0),
    )
    yield made
    await made.close()


async def test_a_completion(model: OpenAIModel) -> None:
    """Text comes in pieces; the limit of tokens is a truncation; usage is counted."""
    seen: list[Chunk] = []
    completion = await complete(model, PROMPT, seen.append)
    assert completion.text
    assert len([chunk for chunk in seen if chunk.text]) > 1
    assert completion.finish_reason in ("length", "stop")
    assert 0 < completion.usage.output_tokens <= 8
    assert completion.usage.input_tokens > 0


async def test_a_stop_text(model: OpenAIModel) -> None:
    """The prompt's stop texts are kept to."""
    whole = (await complete(model, PROMPT)).text
    stop = whole[2]
    completion = await complete(model, replace(PROMPT, stop=(stop,)))
    assert stop not in completion.text
    assert completion.finish_reason == "stop"


async def test_leaving_early_frees_the_server(model: OpenAIModel) -> None:
    """After a stream that was closed early the one slot answers again."""
    stream = model.stream(PROMPT)
    await anext(stream)
    await stream.aclose()
    assert (await complete(model, PROMPT)).text


async def test_a_grammar_by_url(
    llama: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server itself holds the reply to one call of the session's commands."""
    monkeypatch.setenv("LLAMA_KEY", KEY)
    options = Options(
        grammar="llama.cpp", tool_choice="double", max_tokens=60, temperature=0
    )
    held = OpenAIModel(
        "tiny", server=llama.listening_address, key_env="LLAMA_KEY", options=options
    )
    dialect = find_dialect("intents")
    with Session(
        model=ScriptedModel([]), plugins=[double], workspace=tmp_path
    ) as session:
        prompt = Prompts(session.registry, dialect).make()
    done = await complete(held, replace(PROMPT, form=prompt.form))
    await held.close()
    (call,) = dialect.decode(done, next_id=lambda: "c").calls
    assert call.command == "double"
    assert isinstance(call.arguments["number"], int)


async def test_no_key(llama: Any) -> None:
    """The server's refusal is told with what to do."""
    keyless = OpenAIModel("tiny", server=llama.listening_address)
    with pytest.raises(ModelRefused, match="no key was sent") as caught:
        await complete(keyless, PROMPT)
    await keyless.close()
    assert caught.value.status == 401


async def test_a_prompt_that_is_too_long(model: OpenAIModel) -> None:
    """What does not fit is refused with the server's own words."""
    long = Prompt(messages=(Message(role="user", content="hello " * 2000),))
    with pytest.raises(ModelRefused, match="context") as caught:
        await complete(model, long)
    assert caught.value.status == 400
