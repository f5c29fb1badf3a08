"""Our own models pass the suite that every model must pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from models import wire_scripts
from models.conformance import CHECKS, Answer, Make
from models.http_server import Script, Server, frame, lines, serving, stream
from neuraxis.models import Model
from neuraxis.models.anthropic.model import AnthropicModel
from neuraxis.models.gemini.model import GeminiModel
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.openai_responses.model import ResponsesModel
from neuraxis.models.recorder import Recorder
from neuraxis.models.scripted import ScriptedModel, ScriptedReply

Check = Callable[[Make], Awaitable[None]]
checks = pytest.mark.parametrize(
    "check", CHECKS, ids=[check.__name__.removeprefix("check_") for check in CHECKS]
)


def scripted(*answers: Answer) -> ScriptedModel:
    return ScriptedModel(
        [
            ScriptedReply(
                chunks=answer.pieces,
                finish_reason=answer.finish_reason,
                tool_calls=answer.tool_calls,
                usage=answer.usage,
                error="broken: as told" if answer.breaks else "",
                reasoning="…" if answer.hangs else "",
                delay=30 if answer.hangs else 0,
            )
            for answer in answers
        ]
    )


@checks
async def test_scripted(check: Check) -> None:
    await check(scripted)


@checks
async def test_recorder(check: Check, tmp_path: Path) -> None:
    def make(*answers: Answer) -> Model:
        return Recorder(scripted(*answers), tmp_path / "r.yaml")

    await check(make)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as state:
        yield state


@checks
async def test_openai(check: Check, server: Server) -> None:
    made: list[OpenAIModel] = []

    def make(*answers: Answer) -> Model:
        server.answers(*(_script(answer) for answer in answers))
        made.append(OpenAIModel("m", server=server.url, options=Options(max_retries=0)))
        return made[-1]

    await check(make)
    for model in made:
        await model.close()


@checks
@pytest.mark.parametrize(
    ("kind", "script"),
    [
        (AnthropicModel, wire_scripts.anthropic),
        (GeminiModel, wire_scripts.gemini),
        (ResponsesModel, wire_scripts.responses),
    ],
)
async def test_other_wires(
    check: Check,
    kind: Callable[..., Model],
    script: Callable[[Answer], Script],
    server: Server,
) -> None:
    made: list[Model] = []

    def make(*answers: Answer) -> Model:
        server.answers(*(script(answer) for answer in answers))
        made.append(kind("m", server=server.url, options=Options(max_retries=0)))
        return made[-1]

    await check(make)
    for model in made:
        await model.close()


def _script(answer: Answer):
    frames = [frame(piece) for piece in answer.pieces]
    for index, call in enumerate(answer.tool_calls):
        head = {"index": index, "id": call.id, "type": "function"}
        start = {**head, "function": {"name": call.name, "arguments": ""}}
        frames.append(frame(delta={"tool_calls": [start]}))
        frames.extend(
            frame(
                delta={
                    "tool_calls": [{"index": index, "function": {"arguments": char}}]
                }
            )
            for char in call.arguments
        )
    portions = [lines(item, done=False) for item in frames]
    if answer.breaks or answer.hangs:
        return stream(*portions, end="drop" if answer.breaks else "stall")
    portions.append(lines(frame(finish_reason=answer.finish_reason), done=False))
    if usage := answer.usage:
        counts = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        }
        portions.append(lines({"choices": [], "usage": counts}, done=False))
    return stream(*portions, lines())
