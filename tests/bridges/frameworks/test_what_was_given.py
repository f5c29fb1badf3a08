"""What is no tool of a framework is named, and what to write instead."""

from typing import Any

import pytest

from neuraxis import Session
from neuraxis.bridges.frameworks import (
    from_langchain,
    from_pydantic_ai,
    from_smolagents,
)
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.registry import Plugin

PACKAGES = {
    from_langchain: "langchain_core",
    from_pydantic_ai: "pydantic_ai",
    from_smolagents: "smolagents",
}


def order(number: int) -> str:
    """State of an order.

    Args:
        number: its number.
    """
    return f"{number} is sent"


def tool_of(package: str) -> Any:
    """The function as a tool of that framework."""
    if package == "langchain_core":
        tools: Any = pytest.importorskip("langchain_core.tools")
        return tools.tool(order)
    module: Any = pytest.importorskip(package)
    return module.Tool(order) if package == "pydantic_ai" else module.tool(order)


@pytest.fixture(params=PACKAGES, ids=PACKAGES.get)
def bridge(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(PACKAGES[request.param])
    return request.param


def test_a_function_needs_no_bridge(bridge: Any) -> None:
    """Their own agents take functions as tools, and so does a session."""
    with pytest.raises(ConfigError) as raised:
        bridge([order])
    assert str(raised.value).startswith(f"{bridge.__name__}: expected a list of ")
    assert str(raised.value).endswith("A function needs no bridge: plugins=[order]")


def test_one_tool_is_no_list(bridge: Any) -> None:
    """It says how to write it."""
    tool = tool_of(PACKAGES[bridge])
    with pytest.raises(ConfigError, match=rf"got one; write {bridge.__name__}\(\["):
        bridge(tool)
    assert isinstance(bridge([tool]), Plugin)


@pytest.mark.parametrize(
    ("given", "got"), [(3, "got 3"), ("order", "got 'order'"), ([None], "got None")]
)
def test_anything_else_is_shown(bridge: Any, given: Any, got: str) -> None:
    """In the words of all errors."""
    with pytest.raises(ConfigError, match=got):
        bridge(given)


def test_a_tool_as_a_plugin_leads_to_its_bridge(bridge: Any) -> None:
    """With the line to import it."""
    tool = tool_of(PACKAGES[bridge])
    with pytest.raises(ConfigError) as raised:
        Session(ScriptedModel([]), plugins=[tool])
    assert f"plugins=[{bridge.__name__}([…])]" in str(raised.value)
    assert f"import {bridge.__name__}" in str(raised.value)
