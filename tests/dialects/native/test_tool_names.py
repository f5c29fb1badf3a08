"""Names of native calls as models and servers' parsers really pass them."""

from __future__ import annotations

import pytest

from models.http_server import frame, hello, lines, serving, stream
from neuraxis import Policy, Session, command
from neuraxis.dialects.native.dialect import Native
from neuraxis.messages import Completion, NativeCall
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.specs import CommandSpec, PluginSpec
from wire_cases import counter

WRITTEN = [
    "population<|channel|>commentary",  # vllm#32587
    "population<|channel|>json",
    "functions.population",
    "functions.population:0",  # Kimi
    "population:0",
    "default_api:population",
    "default_api.population",
    " population\n",
    "functions.population<|constrain|>json",
]


def read(name: str, *tools: str, strict: bool = False) -> tuple[str, tuple[str, ...]]:
    """Decode a call of that name where these tools are offered."""
    dialect = Native(strict=strict)
    commands = tuple(CommandSpec(name=f"c{place}") for place in range(len(tools)))
    names = {tool: ("p", spec.name) for tool, spec in zip(tools, commands, strict=True)}
    dialect.native_tools([PluginSpec(name="p", commands=commands)], names)
    call = NativeCall(id="c", name=name, arguments="{}")
    reply = dialect.decode(Completion(tool_calls=(call,)), next_id=counter())
    assert not reply.errors
    return reply.calls[0].command, reply.notes


@pytest.mark.parametrize("name", WRITTEN)
def test_a_name_with_something_round_it_is_the_tool_of_that_name(name: str) -> None:
    """A namespace, a number, a special token; it is noted."""
    corrected = name.strip() != "population"
    notes = ("name of a call corrected",) if corrected else ()
    assert read(name, "population", "area") == ("population", notes)


@pytest.mark.parametrize("name", WRITTEN)
async def test_such_a_call_of_a_server_is_run(name: str) -> None:
    """With the bytes of a server; the next request has its result."""
    asked: list[str] = []

    @command(effects="once")
    def population(city: str) -> int:
        """Inhabitants of a city.

        Args:
            city: its name.
        """
        asked.append(city)
        return 421878

    function = {"name": name, "arguments": '{"city": "Zürich"}'}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    called = lines(
        frame(delta={"role": "assistant", "tool_calls": [call]}),
        frame(finish_reason="tool_calls"),
    )
    async with serving() as server:
        server.answers(stream(called), stream(hello("421878")))
        model = OpenAIModel("m", server=server.url)
        policy = Policy(default="allow")
        async with Session(
            model, plugins=[population], policy=policy, dialect="native"
        ) as session:
            result = await session.run("How many people live in Zürich?")
        await model.close()
    assert (result.outcome, result.text, asked) == ("answered", "421878", ["Zürich"])


@pytest.mark.parametrize(
    ("name", "tools", "meant"),
    [
        # a name that was offered is that tool, whatever another one is called
        ("Population", ("population", "Population"), "Population"),
        ("functions.look", ("functions.look", "look"), "functions.look"),
        ("look", ("functions.look", "look"), "look"),
        # rule A16: neither case nor letters are corrected in silence
        ("Population", ("population",), "Population"),
        ("functions.Population", ("population",), "functions.Population"),
        ("tool.population", ("population",), "tool.population"),
        ("population()", ("population",), "population()"),
        # no tool of that name
        ("functions.area", ("population",), "functions.area"),
        ("<|channel|>population", ("population",), "<|channel|>population"),
        ("other.population", ("population",), "other.population"),
        ("populations", ("population",), "populations"),
        ("", ("population",), ""),
    ],
)
def test_A16_a_name_is_only_read_as_the_tool_of_that_name(
    name: str, tools: tuple[str, ...], meant: str
) -> None:
    """Otherwise it stays as it is, and the error shows it."""
    assert read(name, *tools) == (meant, ())


def test_a_strict_dialect_takes_names_as_they_are() -> None:
    """Nothing is guessed there."""
    assert read("functions.look", "look", strict=True) == ("functions.look", ())


def test_the_name_of_a_plugin_is_no_models_namespace() -> None:
    """`functions.delete` of such a plugin ran the `delete` of another one."""
    dialect = Native(strict=False)
    delete, scrap = CommandSpec(name="delete"), CommandSpec(name="scrap")
    files = PluginSpec(name="files", commands=(delete,))
    tools = PluginSpec(name="functions", commands=(scrap,))
    names = {"delete": ("files", "delete"), "scrap": ("functions", "scrap")}
    dialect.native_tools([files, tools], names)
    call = NativeCall(id="c", name="functions.delete", arguments="{}")
    (read_call,) = dialect.decode(
        Completion(tool_calls=(call,)), next_id=counter()
    ).calls
    assert (read_call.plugin, read_call.command) != ("files", "delete")
