"""Answers that were paid and hold nothing: their tokens count all the same."""

from __future__ import annotations

from pathlib import Path

from models.http_server import Script, Server, frame, lines, serving, stream
from neuraxis import Session
from neuraxis.messages import Usage
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.settings import Settings

PAID = {"usage": {"prompt_tokens": 100, "completion_tokens": 20}}
NOTHING = stream(lines({"id": "c", "choices": [], **PAID}))
WHOLE = stream(
    lines(frame("Hello", finish_reason="stop"), {"id": "c", "choices": [], **PAID})
)


async def test_the_tokens_of_an_answer_that_is_asked_for_again_count(
    tmp_path: Path,
) -> None:
    """They are those of the reply."""
    found = await _asked(tmp_path, NOTHING, WHOLE)
    assert found == ("answered", Usage(input_tokens=200, output_tokens=40))


async def test_the_tokens_of_a_run_without_an_answer_count(tmp_path: Path) -> None:
    """Each attempt is paid."""
    outcome, usage = await _asked(tmp_path, NOTHING)
    assert (outcome, usage.input_tokens % 100) == ("failed", 0)
    assert usage.input_tokens >= 200


async def _asked(folder: Path, *answers: Script) -> tuple[str, Usage]:
    async with serving() as server:
        return await _run(server, folder, *answers)


async def _run(server: Server, folder: Path, *answers: Script) -> tuple[str, Usage]:
    server.answers(*answers)
    options = Options(max_retries=1, backoff=0.01)
    model = OpenAIModel("m", server=server.url, options=options)
    async with Session(model, settings=Settings(), workspace=folder) as session:
        answer = await session.run("Hi")
    await model.close()
    return answer.outcome, answer.usage
