"""Plugins as tools of the OpenAI Agents SDK, with the real package."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs openai-agents")

from bridges.frameworks.kit import offered
from neuraxis.bridges.frameworks import to_openai_agents


async def test_our_commands_are_their_tools(tmp_path: Path) -> None:
    """Arguments come as JSON text; a failure is told in the answer."""
    tools = offered(to_openai_agents, tmp_path)
    context: Any = None
    assert tools["add"].params_json_schema["required"] == ["a"]
    assert await tools["add"].on_invoke_tool(context, '{"a": 2, "b": 3}') == "5"
    wrong = json.loads(await tools["add"].on_invoke_tool(context, '{"b": 3}'))
    assert wrong["error"]["code"] == "invalid_param"
    broken = await tools["add"].on_invoke_tool(context, "{")
    assert "no JSON" in broken


async def test_a_run_of_theirs_calls_a_command_of_ours(tmp_path: Path) -> None:
    """From their agent's model to our command and back."""
    import agents
    from agents.models.interface import Model
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(Model):
        turns = 0

        async def get_response(self, *given: Any, **named: Any) -> Any:
            self.turns += 1
            if self.turns == 1:
                item: Any = ResponseFunctionToolCall(
                    type="function_call", call_id="c", name="add",
                    arguments='{"a": 20, "b": 22}',
                )  # fmt: skip
            else:
                seen = named.get("input", given[1] if len(given) > 1 else "")
                text = ResponseOutputText(
                    type="output_text", text=f"seen {seen[-1]['output']}",
                    annotations=[],
                )  # fmt: skip
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed",
                    content=[text],
                )  # fmt: skip
            return agents.ModelResponse(
                output=[item], usage=agents.Usage(), response_id=None
            )

        def stream_response(self, *given: Any, **named: Any) -> Any:
            raise NotImplementedError

    agents.set_tracing_disabled(True)
    tools = list(offered(to_openai_agents, tmp_path).values())
    agent = agents.Agent(name="x", model=Scripted(), tools=tools)
    done = await agents.Runner.run(agent, "Add 20 and 22")
    assert done.final_output == "seen 42"
