"""Pydantic AI tools as plugins and the other way round, with the real package."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai")

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from bridges.frameworks.kit import offered
from neuraxis import Session
from neuraxis.bridges.frameworks import from_pydantic_ai, to_pydantic_ai
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel


class Point(BaseModel):
    x: int
    y: int = 0


def move(point: Point, by: int) -> int:
    """Move a point."""
    if by > 100:
        raise ModelRetry("move by less than 100")
    return point.x + point.y + by


def inside(context: RunContext[None]) -> str:
    """Take what only a run of theirs has."""
    return str(context)


async def test_a_tool_of_theirs_is_a_checked_command(tmp_path: Path) -> None:
    """Arguments become its types; what asks for another try is told."""
    plugin = from_pydantic_ai([Tool(move), Tool(inside)], effects="none")
    assert list(plugin.commands) == ["move"]
    assert "RunContext" in plugin.problems[0].message
    with Session(
        model=ScriptedModel([]), plugins=[plugin], workspace=tmp_path
    ) as session:

        async def ask(number: int, **given: Any):
            call = Call(id=f"a{number}", plugin=None, command="move", arguments=given)
            return await session.call(call)

        assert (await ask(1, point={"x": 1, "y": 2}, by=3)).value == 6
        wrong = await ask(2, point={"x": []}, by=3)
        assert wrong.error is not None
        assert wrong.error.problems[0].path == ("point", "x")
        retried = await ask(3, point={"x": 1}, by=300)
        assert retried.error is not None
        assert "less than 100" in retried.error.message


async def test_a_run_of_theirs_calls_a_command_of_ours(tmp_path: Path) -> None:
    """A wrong call goes back to their model, which mends it."""
    seen: list[str] = []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        part = messages[-1].parts[-1]
        seen.append(str(part.content))
        given = {"a": 20, "b": 22} if len(seen) == 2 else {"a": "much"}
        if len(seen) < 3:
            return ModelResponse(parts=[ToolCallPart("add", given)])
        return ModelResponse(parts=[TextPart(f"It is {part.content}.")])

    tools = list(offered(to_pydantic_ai, tmp_path).values())
    agent = Agent(FunctionModel(model), tools=tools)
    done = await agent.run("Add 20 and 22")
    assert done.output == "It is 42."
    assert "expected integer" in seen[1]
