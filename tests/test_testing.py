"""The test kit for people who write plugins."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import polars
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from neuraxis import Context, Session, command
from neuraxis.cli.plugins import plugins as cli
from neuraxis.dialects import DIALECTS, find_dialect
from neuraxis.errors import ConfigError
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.loader import builtin_names
from neuraxis.plugins.registry import Plugin
from neuraxis.testing import call, check_plugin, golden, prompt_of, round_trip

MANIFEST = """
name: hello
info: {title: Hello, description: Says hello.}
commands:
  - command_name: greet
    description: Greet a person.
    effects: none
    parameter: {type: {person: {type: string, description: who}}}
    response: {type: {greeting: {type: string, description: the greeting}}}
    example_output: {greeting: Hello}
    examples: [{q: Greet Ada, a: {person: Ada}}]
"""
CODE = "def greet(person):\n    return {'greeting': f'Hello, {person}!'}\n"


def _folder(base: Path, manifest: str = MANIFEST, code: str = CODE) -> Path:
    (base / "hello").mkdir()
    (base / "hello" / "config.yaml").write_text(manifest)
    if code:
        (base / "hello" / "plugin.py").write_text(code)
    return base / "hello"


def test_call_runs_one_command(tmp_path: Path) -> None:
    """By its own name; the arguments are checked as a model's would be."""
    plugin = _folder(tmp_path)
    assert call(plugin, "greet", {"person": "Ada"}).value == {"greeting": "Hello, Ada!"}
    wrong = call(plugin, "greet", {"name": "Ada"})
    assert wrong.error is not None
    assert wrong.error.code == "invalid_param"


def test_call_passes_objects_by_reference(tmp_path: Path) -> None:
    """Also inside of lists; a file is read as `Session.attach` reads it."""

    @command(effects="read")
    def total(tables: list[polars.DataFrame]) -> int:
        return sum(table["x"].sum() for table in tables)

    table = polars.DataFrame({"x": [1, 2]})
    table.write_csv(tmp_path / "x.csv")
    assert call(total, "total", {"tables": [table, tmp_path / "x.csv"]}).value == 6
    refused = call(total, "total", {"tables": [object()]}).error
    assert refused is not None
    assert refused.code == "invalid_asset_type"


def test_D11_call_can_be_strict_about_the_answer(tmp_path: Path) -> None:
    """An answer that was not declared is an error then, and a warning otherwise."""
    plugin = _folder(
        tmp_path, code="def greet(person):\n    return {'hello': person}\n"
    )
    strict = call(plugin, "greet", {"person": "Ada"}, strict=True)
    assert strict.error is not None
    assert strict.error.code == "plugin_contract_error"
    lenient = call(plugin, "greet", {"person": "Ada"})
    assert lenient.value == {"hello": "Ada"}
    assert lenient.warnings != ()


@pytest.mark.parametrize("name", builtin_names())
def test_our_own_plugins_have_no_problem(name: str) -> None:
    """What comes with the package passes its own check."""
    assert check_plugin(f"neuraxis:{name}") == []


def test_a_good_folder_has_no_problem(tmp_path: Path) -> None:
    """Nothing is said of it."""
    assert check_plugin(_folder(tmp_path)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: hello", "nam: hello", "unknown key 'nam'"),
        ("type: string, description: who", "type: strin, description: who", "strin"),
        ("a: {person: Ada}", "a: {person: 5, x: 1}", "the example does not fit"),
        ("example_output: {greeting", "example_output: {hello", "output does not fit"),
        ("description: Greet a person.", "", "no description"),
    ],
)
def test_mistakes_of_a_folder_are_told(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """Those of the manifest with their lines, those of examples with their question."""
    plugin = _folder(tmp_path, MANIFEST.replace(old, new))
    assert any(said in problem for problem in check_plugin(plugin))


@pytest.mark.parametrize(
    ("name", "says", "options", "told"),
    [
        ("sendNote", "Do it.", {}, True),
        ("run_it", "Pays a bill.", {}, True),
        ("go", "Publishes a page.", {"effects": "idempotent"}, True),
        ("purge", "Do it.", {}, True),
        ("sender", "The postage.", {}, False),
        ("delete", "Delete it.", {"trusted_only": ["it"]}, False),
        ("post", "Post it.", {"sends_out": ["it"]}, False),
        ("pay", "Pay.", {"effects": {"kind": "once", "destructive": False}}, False),
    ],
)
def test_who_sends_pays_or_deletes_and_declares_nothing_is_warned_about(
    name: str, says: str, options: dict[str, Any], told: bool
) -> None:
    """The verb is named, and what is expected instead."""

    def deed(it: str) -> None: ...

    deed.__name__, deed.__doc__ = name, says
    problems = check_plugin(command(**options)(deed))
    assert told is any("trusted_only (whom, where)" in text for text in problems)


@pytest.mark.parametrize(
    ("name", "says", "effects", "told"),
    [
        ("deleteUser", "Do it.", "read", True),
        ("run_it", "Sends a mail.", "none", True),
        ("posts", "List what was posted.", "read", False),
        ("order", "Order of a customer that was deleted.", "read", False),
        ("delete", "Do it.", {"kind": "read", "destructive": True}, False),
    ],
)
def test_who_sends_pays_or_deletes_and_declares_read_is_warned_about(
    name: str, says: str, effects: Any, told: bool
) -> None:
    """A name or text that begins with the verb; nouns are left alone."""

    def deed(it: str) -> None: ...

    deed.__name__, deed.__doc__ = name, says
    problems = check_plugin(command(effects=effects)(deed))
    assert told is any("Declare the effects once" in text for text in problems)


def test_a_folder_without_code_is_told(tmp_path: Path) -> None:
    """A description alone can be shown and not called."""
    (problem,) = check_plugin(_folder(tmp_path, code=""))
    assert "hello/config.yaml:5: error: greet: there is no code" in problem
    with pytest.raises(ConfigError, match="greet: there is no code"):
        Session(model=ScriptedModel([]), plugins=[tmp_path / "hello"])


def test_mistakes_of_a_function_are_told() -> None:
    """Missing words, and examples that would be refused."""

    @command(
        examples=[{"q": "Add", "a": {"number": "one"}}],
        example_output={"x": 1},
    )
    def add(number: int) -> int:
        return number

    told = "\n".join(check_plugin(add))
    assert "the plugin has no description" in told
    assert "add: the command has no description" in told
    assert "add: the parameter number has no description" in told
    assert "the example 'Add' does not fit" in told
    assert "add: the example output does not fit" in told


def test_a_plugin_source_is_taken_as_a_session_takes_it() -> None:
    """It is opened, checked or shown, and closed, whatever comes of it."""

    @command(effects="read")
    def one() -> int:
        """Return one."""
        return 1

    class Source:
        def __init__(self) -> None:
            self.done: list[str] = []

        def open_plugins(self, workspace: Path) -> list[Plugin]:
            self.done.append("open")
            return [plugin_from(one)]

        def close_plugins(self) -> None:
            self.done.append("close")

    source = Source()
    assert check_plugin(source) == []
    assert "## one\nReturn one." in prompt_of(source)
    assert source.done == ["open", "close"] * 2


def test_golden_compares_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file and another text are told; the variable writes it."""
    file = tmp_path / "golden" / "hello.txt"
    text = prompt_of(_folder(tmp_path))
    with pytest.raises(AssertionError, match="NEURAXIS_UPDATE_GOLDEN"):
        golden(file, text)
    monkeypatch.setenv("NEURAXIS_UPDATE_GOLDEN", "1")
    golden(file, text)
    monkeypatch.delenv("NEURAXIS_UPDATE_GOLDEN")
    golden(file, text)
    with pytest.raises(AssertionError, match=r"\+more"):
        golden(file, text + "more")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_prompt_shows_the_plugin(tmp_path: Path, dialect: str) -> None:
    """In each dialect, but for native, where the tool stands beside it."""
    text = prompt_of(_folder(tmp_path), dialect)
    assert ("greet" in text) == (dialect != "native")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_ARGUMENTS = st.dictionaries(st.text(max_size=8), _JSON, max_size=4)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(many=st.lists(_ARGUMENTS, min_size=1, max_size=3))
def test_written_calls_are_read_again(dialect: str, many: list[Any]) -> None:
    """decode(write(calls)) == calls, for any JSON in them."""
    calls = [
        Call(id=f"a{number}", plugin="web", command="find", arguments=arguments)
        for number, arguments in enumerate(many)
    ]
    round_trip(dialect, calls)


def test_a_dialect_that_forgets_is_told() -> None:
    """round_trip is what a new dialect is checked with."""

    class Deaf:
        name = "deaf"

        def write(self, calls: Any) -> str:
            return ""

        def decode(self, completion: Any, *, next_id: Any) -> Any:
            return find_dialect("intents").decode(completion, next_id=next_id)

    with pytest.raises(AssertionError, match="deaf: wrote"):
        round_trip(Deaf(), [Call(id="a1", plugin="web", command="find")])  # pyright: ignore[reportArgumentType]


def test_the_command_line_checks_the_same(tmp_path: Path) -> None:
    """`plugins check` tells doubts as warnings, and missing code as an error."""
    folder = _folder(tmp_path, code="")
    (tmp_path / "sums.py").write_text(
        "from neuraxis import command\n\n\n"
        "@command(examples=[{'q': 'Add', 'a': {'number': 'one'}}])\n"
        "def add(number: int) -> int:\n    return number\n"
    )
    paths = [str(folder), str(tmp_path / "sums.py")]
    done = CliRunner().invoke(cli, ["check", *paths], standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 1)
    assert "hello cannot be called (greet)" in done.stdout
    assert "error: greet: there is no code for this command" in done.stderr
    assert "sums is valid (add)" in done.stdout
    assert "sums.py:4: warning: add: the example 'Add' does not fit" in done.stderr
    alone = CliRunner().invoke(cli, ["check", paths[1]], standalone_mode=False)
    assert alone.return_value == 0


async def test_call_where_a_loop_runs_and_with_a_wrong_name() -> None:
    """As in Jupyter: what to write there; nothing is left half done."""

    @command(effects="read")
    def one() -> int:
        return 1

    with pytest.raises(ConfigError, match=r"await asyncio\.to_thread\(call, plugin"):
        call(one, "one")
    assert (await asyncio.to_thread(call, one, "one")).value == 1
    wrong: Any = {"tool": "one"}
    with pytest.raises(ConfigError, match=r"write call\(plugin, 'NAME', {\.\.\.}\)"):
        call(one, wrong)


def test_call_passes_deps_also_to_coroutines() -> None:
    """As `Session.run(deps=...)` does; in an async test by way of a thread."""

    @command(effects="read")
    async def clerk(context: Context[str]) -> str:
        """Name the clerk."""
        await asyncio.sleep(0)
        return context.deps

    assert call(clerk, "clerk", deps="Ada").value == "Ada"

    async def inside() -> object:
        return (await asyncio.to_thread(call, clerk, "clerk", deps="Bo")).value

    assert asyncio.run(inside()) == "Bo"


def test_a_connection_is_used_where_it_was_made_without_a_thread() -> None:
    """As docs/plugins.md says of `blocking=False` and of coroutines."""
    db = sqlite3.connect(":memory:")

    def one() -> int:
        return db.execute("SELECT 1").fetchone()[0]

    @command(effects="read")
    async def later() -> int:
        return one()

    assert call(command(effects="read", blocking=False)(one), "one").value == 1
    assert call(later, "later").value == 1
    in_a_thread = call(command(effects="read")(one), "one").error
    db.close()
    assert in_a_thread is not None
    assert "same thread" in in_a_thread.message


def test_call_allows_an_effect_on_an_object() -> None:
    """It was denied: an object counts as from outside, and the policy held."""

    @command
    def save(table: polars.DataFrame) -> int:
        """Save a table."""
        return table.height

    assert call(save, "save", {"table": polars.DataFrame({"a": [1]})}).value == 1


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.txt", "a/../../x.txt"])
def test_a_command_reports_no_file_outside_of_its_workspace(
    path: str, tmp_path: Path
) -> None:
    """The answer listed it among the written files."""

    @command
    def note(context: Context, given: str) -> None:
        """Take a note."""
        context.wrote(given)

    wrong = call(note, "note", {"given": path}, workspace=tmp_path)
    assert wrong.exception is not None
    assert "context.wrote: expected a path in the workspace" in str(wrong.exception)
    (tmp_path / "a.txt").touch()
    right = call(note, "note", {"given": f"{tmp_path}/a.txt"}, workspace=tmp_path)
    assert right.status == "done"
