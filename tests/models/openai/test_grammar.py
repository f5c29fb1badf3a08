"""Grammars by URL: what a llama.cpp and a vLLM server are sent, and how both are read.

The requests are recorded on loopback. No vLLM answers here; a real llama.cpp server
does in `test_llama_server.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from models.http_server import Server, answer, hello, serving
from neuraxis import Session, command
from neuraxis.models import find_model
from neuraxis.settings import Settings

LIST = '[{"tool": "double", "number": 4}]'
BLOCK = f"<!-- RESPONSE_START -->\n{LIST}\n<!-- RESPONSE_END -->"
OURS = ("grammar", "grammar_lazy", "grammar_triggers", "json_schema")
THEIRS = ("structured_outputs", "guided_json", "response_format")


@command(effects="read")
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


async def drive(server: Server, folder: Path, reply: str, **options: Any) -> Any:
    """Return the body that the server was sent; the reply's call must have run."""
    server.answers(answer(hello(reply)), answer(hello("It is 8.")))
    given = {f"models.m.{key}": value for key, value in options.items()}
    settings = Settings().override(given, "test")
    model = find_model(f"{server.url}#m", settings)
    with Session(model=model, plugins=[double], workspace=folder) as session:
        done = await session.drive("Double 4.")
    assert [call.value for call in done.calls] == [8]
    return server.requests[0].body


def used(body: dict[str, Any]) -> set[str]:
    return {key for key in (*OURS, *THEIRS) if key in body}


async def test_llama_cpp_gets_a_lazy_grammar(server: Server, tmp_path: Path) -> None:
    """It holds from the marker of a block on; `tools` are never sent beside it."""
    body = await drive(server, tmp_path, BLOCK, grammar="llama.cpp")
    assert used(body) == {"grammar", "grammar_lazy", "grammar_triggers"}
    (trigger,) = body["grammar_triggers"]
    assert trigger == {"type": 1, "value": "<!-- RESPONSE_START -->"}
    assert r'"\"double\""' in body["grammar"]
    assert "tools" not in body


async def test_llama_cpp_gets_one_from_the_first_word(
    server: Server, tmp_path: Path
) -> None:
    """Where a call is wanted."""
    body = await drive(
        server, tmp_path, BLOCK, grammar="llama.cpp", tool_choice="required"
    )
    assert used(body) == {"grammar"}


async def test_vllm_gets_a_structural_tag(server: Server, tmp_path: Path) -> None:
    """Text is free; a block is held to the schema of a list of calls."""
    body = await drive(server, tmp_path, BLOCK, grammar="vllm")
    assert used(body) == {"response_format"}
    (tag,) = body["response_format"]["structures"]
    assert tag["begin"] in body["response_format"]["triggers"]
    assert tag["begin"] in BLOCK
    assert tag["end"] in BLOCK


async def test_vllm_gets_the_schema_itself(server: Server, tmp_path: Path) -> None:
    """`structured_outputs`: vLLM 0.12 has no `guided_json`. The bare list runs."""
    body = await drive(server, tmp_path, LIST, grammar="vllm", tool_choice="double")
    assert used(body) == {"structured_outputs"}
    schema = body["structured_outputs"]["json"]
    assert schema["maxItems"] == 1
    (call,) = schema["items"]["anyOf"]
    assert list(call["properties"]) == ["tool", "number"]


async def test_nothing_is_held_without_the_setting(
    server: Server, tmp_path: Path
) -> None:
    """Other servers would refuse what they do not know."""
    assert used(await drive(server, tmp_path, BLOCK)) == set()


async def test_an_output_schema_goes_first(server: Server, tmp_path: Path) -> None:
    """A reply cannot be held to two forms."""
    schema = {"type": "object", "properties": {"calls": {}}}
    given = {f"output_schema.{key}": value for key, value in schema.items()}
    body = await drive(server, tmp_path, BLOCK, grammar="llama.cpp", **given)
    assert used(body) == {"response_format"}
    assert body["response_format"]["json_schema"]["schema"] == schema
