"""One program in five packages, as docs/coming-from.md shows it: each is run.

Each package has a scripted model of its own, which asks for order 7 and then says
what it was told, so the answer shows that the tool ran with what belongs to the run.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuraxis.testing import ScriptedModel

_PAGE = (Path(__file__).parent.parent / "docs" / "coming-from.md").read_text("utf-8")
PROGRAMS = dict(
    re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)
)


def _ours() -> Any:
    def reply(prompt: Any) -> str:
        told = re.search(r"sent on \w+", prompt.messages[-1].content)
        return f"It was {told[0]}." if told else '[{"tool": "order", "number": 7}]'

    return ScriptedModel(reply)


def _pydantic_ai() -> Any:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def reply(messages: Any, info: Any) -> ModelResponse:
        told = messages[-1].parts[-1]
        if told.part_kind != "tool-return":
            return ModelResponse(parts=[ToolCallPart("order", {"number": 7})])
        return ModelResponse(parts=[TextPart(f"It was {told.content}.")])

    return FunctionModel(reply)


def _langchain() -> Any:
    pytest.importorskip("langchain")
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        _llm_type = "scripted"

        def bind_tools(self, tools: Any, **given: Any) -> Any:
            return self

        def _generate(self, messages: Any, *given: Any, **named: Any) -> ChatResult:
            call = {"name": "order", "args": {"number": 7}, "id": "c"}
            if messages[-1].type == "tool":
                said = AIMessage(content=f"It was {messages[-1].content}.")
            else:
                said = AIMessage(content="", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=said)])

    return Scripted()


def _openai_agents() -> Any:
    agents = pytest.importorskip("agents")
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(agents.Model):
        async def get_response(self, *given: Any, **named: Any) -> Any:
            said = named.get("input", given[1] if len(given) > 1 else "")
            item: Any = ResponseFunctionToolCall(
                type="function_call", call_id="c", name="order",
                arguments='{"number": 7}',
            )  # fmt: skip
            if isinstance(said, list) and "output" in said[-1]:
                text = ResponseOutputText(
                    type="output_text", text=f"It was {said[-1]['output']}.",
                    annotations=[],
                )  # fmt: skip
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed",
                    content=[text],
                )  # fmt: skip
            usage = agents.Usage()
            return agents.ModelResponse(output=[item], usage=usage, response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agents.set_tracing_disabled(True)
    return Scripted()


def _smolagents() -> Any:
    smolagents = pytest.importorskip("smolagents")
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
    )

    class Scripted(smolagents.Model):
        def generate(self, messages: Any, *_: Any, **__: Any) -> ChatMessage:
            told = re.search(r"sent on \w+", str(messages[-1].content))
            name, given = "order", {"number": 7}
            if told:
                name, given = "final_answer", {"answer": f"It was {told[0]}."}
            call = ChatMessageToolCallFunction(name=name, arguments=given)
            calls = [ChatMessageToolCall(function=call, id=name, type="function")]
            return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=calls)

    return Scripted()


MODELS = {
    "Neuraxis": _ours,
    "Pydantic AI": _pydantic_ai,
    "LangChain and LangGraph": _langchain,
    "OpenAI Agents": _openai_agents,
    "smolagents": _smolagents,
}


def test_every_program_of_the_page_is_run() -> None:
    """None is left out, here or there."""
    assert list(PROGRAMS) == list(MODELS)


@pytest.fixture
def own_loop() -> Iterator[None]:
    """An event loop for those that make one of their own and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


@pytest.mark.usefixtures("own_loop")
@pytest.mark.filterwarnings("default")  # theirs
@pytest.mark.parametrize("package", MODELS)
def test_the_program_says_where_the_order_is(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same answer in each package, made of what its tool gave."""
    monkeypatch.chdir(tmp_path)
    # a module of its own: their decorators look a function's source up
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[package], encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "program", "model": MODELS[package]()}
    exec(compile(PROGRAMS[package], str(program), "exec"), namespace)
    assert namespace["answer"] == "It was sent on Monday."
