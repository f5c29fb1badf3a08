"""smolagents tools as plugins and the other way round, with the real package."""

from pathlib import Path

import pytest

pytest.importorskip("smolagents", reason="needs smolagents")

from smolagents import tool

from bridges.frameworks.kit import offered
from neuraxis import Session
from neuraxis.bridges.frameworks import from_smolagents, to_smolagents
from neuraxis.errors import CommandError
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel


@tool
def repeat(text: str, times: int = 2) -> str:
    """Repeat a text.

    Args:
        text: what is repeated.
        times: how often.
    """
    return text * times


async def test_a_tool_of_theirs_is_a_checked_command(tmp_path: Path) -> None:
    """What may be left out may be left out; a wrong type is refused."""
    plugin = from_smolagents([repeat], effects="none")
    assert plugin.commands["repeat"].spec.required == ("text",)
    with Session(
        model=ScriptedModel([]), plugins=[plugin], workspace=tmp_path
    ) as session:
        call = Call(id="a1", plugin=None, command="repeat", arguments={"text": "ab"})
        assert (await session.call(call)).value == "abab"
        call = Call(id="a2", plugin=None, command="repeat", arguments={"text": []})
        assert (await session.call(call)).status == "failed"


def test_our_commands_are_their_tools(tmp_path: Path) -> None:
    """A native value comes back; a refused call raises what is wrong."""
    tools = offered(to_smolagents, tmp_path)
    assert tools["add"](a=2, b=3) == 5
    assert tools["add"](2) == 3
    assert tools["series"](length=3) == [0, 1, 2]
    with pytest.raises(CommandError, match="integer"):
        tools["add"](a="many")
