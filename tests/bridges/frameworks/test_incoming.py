"""Tools that another framework describes by JSON Schema, as a plugin."""

from typing import Any

import pytest

from neuraxis.bridges.frameworks.incoming import Tool, plugin_of
from neuraxis.errors import ConfigError
from neuraxis.specs import Effects


def tool(name: str = "look up", **parameters: Any) -> Tool:
    return Tool(name=name, description="Look\n it up.", parameters=parameters)


def made(*tools: Tool, effects: Any = "read", **given: Any) -> Any:
    return plugin_of("others", tools, source="a file", effects=effects, **given)


def test_a_name_is_made_legal_and_a_description_one_line() -> None:
    """What other frameworks allow in names, a call cannot write."""
    (spec,) = made(tool()).spec.commands
    assert (spec.name, spec.description) == ("look_up", "Look it up.")
    assert spec.effects.kind == "read"


def test_arguments_that_no_parameter_takes_are_refused() -> None:
    """Unless the other framework's schema says that more are taken."""
    properties = {"n": {"type": "integer"}}
    (closed,) = made(tool(properties=properties)).commands.values()
    assert closed.parameters.valid({"n": 1})
    assert not closed.parameters.valid({"n": 1, "m": 2})
    open_ = tool(properties=properties, additionalProperties=True)
    (taken,) = made(open_).commands.values()
    assert taken.parameters.valid({"n": 1, "m": 2})


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ((tool("a b"), tool("a_b")), "got 'a_b' twice"),
        ((tool("?!"),), "names of their own, got '\\?!'"),
        ((), "expected at least one tool: left out"),
    ],
)
def test_tools_that_cannot_be_told_apart_are_refused(tools: Any, words: str) -> None:
    """With the source, and what was left out of it."""
    with pytest.raises(ConfigError, match=f"a file: .*{words}"):
        made(*tools, problems=["left out"])


def test_effects_are_what_the_decorator_takes() -> None:
    """A word, a mapping or `Effects`; another word is told."""
    for effects in ("once", {"kind": "once"}, Effects(kind="once", declared=True)):
        (spec,) = made(tool(), effects=effects).spec.commands
        assert spec.effects.kind == "once"
    with pytest.raises(ConfigError, match="sometimes"):
        made(tool(), effects="sometimes")
