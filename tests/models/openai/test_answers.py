"""What the servers of the OpenAI form send: read as it is meant, or told as it is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from models.http_server import Script, Server, answer, serving, stream
from neuraxis.errors import ModelError
from neuraxis.messages import Message, Prompt
from neuraxis.models import complete
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from wire_cases import Case, case_id, cases

OPTIONS = Options(max_retries=2, first_byte_timeout=5, stall_timeout=5)
PROMPT = Prompt(messages=(Message(role="user", content="Hi"),))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


async def at_once(seconds: float) -> None:
    """Stands for `asyncio.sleep` between attempts."""


def script(case: Case) -> Script:
    if "body" in case:
        return answer(json.dumps(case["body"]).encode(), case.get("status", 200))
    written = "".join(
        f"{line}\n"
        if line.startswith("event:")
        else f"{line}\n\n"
        if line.startswith(":")
        else f"data: {line}\n\n"
        for line in case["lines"]
    )
    return stream(written.encode())


ANSWERS = [*cases("models", "lines"), *cases("models", "body")]


@pytest.mark.parametrize("case", ANSWERS, ids=case_id)
async def test_what_is_read(case: Case, server: Server) -> None:
    """Text, calls, reasoning, usage and reason; or the server's words, asked again
    only where that may help.
    """
    server.answers(script(case))
    model = OpenAIModel("m", server=server.url, options=OPTIONS, sleep=at_once)
    thoughts: list[str] = []
    try:
        if "error" in case:
            with pytest.raises(ModelError) as caught:
                await complete(model, PROMPT)
            assert case["error"] in str(caught.value)
            assert len(server.requests) == case["asked"]
            return
        said = await complete(
            model, PROMPT, lambda chunk: thoughts.append(chunk.reasoning)
        )
    finally:
        await model.close()
    assert said.text == case.get("text", "")
    assert "".join(thoughts) == case.get("reasoning", "")
    assert said.finish_reason == case.get("finish", "stop")
    calls = case.get("calls", [])
    assert [(c.name, c.arguments) for c in said.tool_calls] == [
        (name, arguments) for _, name, arguments in calls
    ]
    ids = [call.id for call in said.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    for given, (own, *_) in zip(ids, calls, strict=True):
        assert given == (own or given)
    if "usage" in case:
        usage = said.usage
        assert case["usage"] == [
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
        ]
