"""Finding commands by name."""

import time
from typing import Any

import pytest

from cpu_time import least
from neuraxis.errors import ManifestError
from neuraxis.messages import CallError
from neuraxis.plugins.functions.command import command, plugin_from
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.plugins.registry import Command, Plugin, Registry


def plugin(name: str, *commands: str, listed: bool = True, **tools: str) -> Plugin:
    text = f"name: {name}\nas_plugin: {str(listed).lower()}\ninfo: {{description: d}}\n"
    text += "commands:\n"
    for item in commands:
        text += f"  - command_name: {item}\n    description: d\n"
        text += f"    tool_name: {tools[item]}\n" if item in tools else ""
    spec, problems = parse_manifest(text, file=f"{name}/config.yaml")
    made = {item.name: Command(plugin=spec, spec=item) for item in spec.commands}
    return Plugin(spec=spec, commands=made, problems=problems)


def missed(found: Command | CallError) -> CallError:
    assert isinstance(found, CallError)
    return found


def hit(found: Command | CallError) -> tuple[str, str]:
    assert isinstance(found, Command)
    return found.plugin.name, found.spec.name


def test_find_by_plugin_and_command() -> None:
    """The pair of names is exact."""
    registry = Registry([plugin("a", "x", "y"), plugin("b", "x")])
    assert hit(registry.find("b", "x")) == ("b", "x")
    assert hit(registry.find("a", "y")) == ("a", "y")


def test_A16_exact_after_trimming_only() -> None:
    """Spaces around a name are nothing; case is something."""
    registry = Registry([plugin("Alpha", "run")])
    assert hit(registry.find(" Alpha ", "run ")) == ("Alpha", "run")
    wrong = missed(registry.find("alpha", "run"))
    assert (wrong.code, wrong.candidates) == ("unknown_plugin", ("Alpha",))


def test_B5_unknown_command() -> None:
    """It lists the plugin's commands and the nearest."""
    error = missed(Registry([plugin("a", "search", "fetch")]).find("a", "serch"))
    assert (error.code, error.candidates[0]) == ("unknown_command", "search")
    assert "search, fetch" in error.message


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("write_file", ("FILEWRITER",)),
        ("FileWriter", ("FILEWRITER",)),
        ("read_file", ("file_reader",)),
        ("run_python", ("EXECUTE_PYTHON_FILE",)),
        ("files.writefile", ("FILEWRITER",)),
        ("paint", ()),
    ],
)
def test_a_tool_is_found_by_all_its_names(given: str, meant: tuple[str, ...]) -> None:
    """A question names plugin and command, a model calls the tool."""
    named = {"write_file": "FILEWRITER", "read_file": "file_reader"}
    plugins = [
        plugin("files", "write_file", "read_file", "delete_file", **named),
        plugin("python_file", "run", run="EXECUTE_PYTHON_FILE"),
        plugin("tables", "read_table", "write_table"),
    ]
    error = missed(Registry(plugins).find(None, given))
    assert error.candidates == meant


def test_a_command_is_found_by_its_tools_name() -> None:
    """Where a call names plugin and command apart."""
    given = plugin("files", "write_file", write_file="FILEWRITER")
    error = missed(Registry([given]).find("files", "FILEWRITER"))
    assert error.candidates == ("write_file",)


def test_B4_unlisted_is_unknown() -> None:
    """What is loaded but not listed cannot be told from what is not there."""
    registry = Registry([plugin("a", "x"), plugin("hidden", "y", listed=False)])
    hidden, absent = registry.find("hidden", "y"), registry.find("hidden2", "y")
    assert missed(hidden).code == missed(absent).code == "unknown_plugin"
    assert "hidden" not in missed(hidden).candidates
    assert isinstance(registry.find(None, "y"), CallError)
    assert [item.spec.name for item in registry.listed] == ["a"]
    assert [item.name for item in registry.specs] == ["a"]
    assert [item.spec.name for item in registry.plugins] == ["a", "hidden"]


def test_A14_duplicate_names_name_both_files() -> None:
    """And say how to mend it."""
    with pytest.raises(ManifestError) as caught:
        Registry([plugin("a", "x"), plugin("a", "y")])
    assert "a/config.yaml" in str(caught.value)
    assert "config.name" in str(caught.value)


def test_tool_names() -> None:
    """Explicit, else the command's name if it is the only one, else both names."""
    registry = Registry(
        [
            plugin("a", "x", "y", x="GOOGLE"),
            plugin("b", "y", "z"),
            plugin("c", "GOOGLE"),
        ]
    )
    assert dict(registry.tool_names) == {
        "GOOGLE": ("a", "x"),
        "a.y": ("a", "y"),
        "b.y": ("b", "y"),
        "z": ("b", "z"),
        "c.GOOGLE": ("c", "GOOGLE"),
    }
    for tool, pair in registry.tool_names.items():
        found = registry.find(None, tool)
        assert hit(found) == pair
        assert isinstance(found, Command)
        assert registry.tool_name(found) == tool
    assert hit(registry.find(None, "a.x")) == ("a", "x")
    assert missed(registry.find(None, "y")).code == "unknown_command"


def test_two_commands_of_one_tool_name() -> None:
    """The error names both."""
    with pytest.raises(ManifestError, match=r"b\.y is taken by a\.x"):
        Registry([plugin("a", "x", x="T"), plugin("b", "y", y="T")])


def test_full_names_that_meet() -> None:
    """`a` with `b.c` and `a.b` with `c` both stay reachable."""
    registry = Registry(
        [plugin("a", "b.c", "c"), plugin("a.b", "c", "d"), plugin("e", "b.c", "d")]
    )
    assert len(registry.tool_names) == 6
    for tool, pair in registry.tool_names.items():
        assert hit(registry.find(None, tool)) == pair


def test_a_plugin_added_later_is_found() -> None:
    """Tool names are made anew."""
    registry = Registry([plugin("a", "x")])
    assert dict(registry.tool_names) == {"x": ("a", "x")}
    registry.add(plugin("b", "x"))
    assert dict(registry.tool_names) == {"a.x": ("a", "x"), "b.x": ("b", "x")}
    assert hit(registry.find("b", "x")) == ("b", "x")


def test_schemas_are_compiled_once_and_late() -> None:
    """And a simple parameter is told (K3)."""

    @command
    def one(a: int) -> int:
        return a

    found = Registry([plugin_from(one)]).find("one", "one")
    assert isinstance(found, Command)
    assert found.parameters is found.parameters
    assert found.response is found.response
    assert found.response is not None
    assert (found.bare, found.context_name) == (False, "")
    text = "name: p\ninfo: {description: d}\n"
    text += "commands: [{command_name: c, parameter: {type: int}}]"
    spec = parse_manifest(text)[0]
    simple = Command(plugin=spec, spec=spec.commands[0])
    assert (simple.bare, simple.response) == (True, None)


def test_find_does_not_slow_down() -> None:
    """A hit among a thousand plugins is one look-up (bound far above the measured)."""

    def make(number: int) -> Any:
        def function(city: str, year: int = 1) -> dict[str, int]:
            """Numbers of a city.

            Args:
                city: its name.
                year: the year.
            """
            return {city: year}

        return command(name=f"f{number}")(function)

    registry = Registry(plugin_from(make(number)) for number in range(1000))
    registry.find("f1", "f1")
    start = time.process_time()
    for _ in range(10_000):
        registry.find("f999", "f999")
    assert (time.process_time() - start) / 10_000 < 5e-6


@pytest.mark.parametrize(
    "name", ["add", " add ", "p.add", "p.hidden", "hidden", "ad", "", "q.add", "lost"]
)
def test_a_tool_is_what_find_returns(name: str) -> None:
    """Without the error that holds similar names."""
    registry = Registry([plugin("p", "add", "hidden", "lost"), plugin("q", "lost")])
    registry.show([("p", "add"), ("q", "lost")])
    found = registry.find(None, name)
    assert registry.tool(name) is (None if isinstance(found, CallError) else found)


def test_D6_a_name_that_is_no_tool_costs_the_same_among_many() -> None:
    """A reply may hold a hundred thousand tags that are looked up."""

    def seconds(count: int) -> float:
        registry = Registry([plugin("p", *[f"command_{n}" for n in range(count)])])
        names = [f"comand_{n}" for n in range(20_000)]
        registry.tool("")
        return least(lambda: [registry.tool(name) for name in names])

    assert seconds(200) < 3 * max(seconds(2), 0.001)
