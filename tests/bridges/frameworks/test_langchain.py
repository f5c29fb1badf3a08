"""LangChain tools as plugins and the other way round, with the real package."""

from pathlib import Path
from typing import Annotated

import pytest

pytest.importorskip("langchain_core", reason="needs langchain-core")

from langchain_core.tools import InjectedToolArg, ToolException, tool

from bridges.frameworks.kit import offered
from neuraxis import Session
from neuraxis.bridges.frameworks import from_langchain, to_langchain
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel


@tool
def weather(city: str, days: int = 1, key: Annotated[str, InjectedToolArg] = "") -> str:
    """Forecast the weather of a city."""
    if city == "nowhere":
        raise ToolException("there is no such city")
    return f"{city}: sun for {days} days"


async def test_a_tool_of_theirs_is_a_checked_command(tmp_path: Path) -> None:
    """Its schema is enforced, its own failure told in its words."""
    plugin = from_langchain([weather], effects="read")
    parameters = plugin.commands["weather"].spec.parameters
    assert "key" not in parameters["properties"]
    with Session(
        model=ScriptedModel([]), plugins=[plugin], workspace=tmp_path
    ) as session:

        async def ask(number: int, **given: object):
            call = Call(
                id=f"a{number}", plugin="langchain", command="weather", arguments=given
            )
            return await session.call(call)

        good = await ask(1, city="Lyon", days=2)
        assert good.value == "Lyon: sun for 2 days"
        wrong = await ask(2, city=["Lyon"], dayz=2)
        assert wrong.error is not None
        assert {p.path[0] for p in wrong.error.problems} == {"city", "dayz"}
        failed = await ask(3, city="nowhere")
        assert failed.error is not None
        assert "there is no such city" in failed.error.message


async def test_our_commands_are_their_tools(tmp_path: Path) -> None:
    """Called by them, a command is checked and its value handed back."""
    tools = offered(to_langchain, tmp_path)
    assert tools["add"].args["a"]["description"] == "the first."
    assert await tools["add"].ainvoke({"a": 2, "b": 3}) == "5"
    message = await tools["series"].ainvoke(
        {"type": "tool_call", "id": "x", "name": "series", "args": {"length": 3}}
    )
    assert message.content == "[0,1,2]"
    assert message.artifact == [0, 1, 2]
    said = await tools["add"].ainvoke({"a": "many"})
    assert "integer" in said


def test_they_can_be_called_without_a_loop(tmp_path: Path) -> None:
    """`invoke` is for code that is not async."""
    assert offered(to_langchain, tmp_path)["add"].invoke({"a": 2}) == "3"


async def test_the_policy_decides_on_their_calls_too(tmp_path: Path) -> None:
    """What needs an approval is refused where nobody can be asked."""
    from neuraxis.policy.rules import Policy, Rule

    policy = Policy(rules=(Rule(verdict="deny", target="send.*"),))
    tools = offered(to_langchain, tmp_path, policy=policy)
    assert "denied" in await tools["send"].ainvoke({"to": "Ada"})
