"""Plugins from folders, names and objects."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from neuraxis.errors import ConfigError, ManifestError
from neuraxis.plugins import loader
from neuraxis.plugins.functions.command import command
from neuraxis.plugins.loader import builtin_names, load_plugin, load_plugins
from neuraxis.plugins.registry import Plugin
from neuraxis.testing import check_plugin

MANIFEST = """\
name: tools
info: {description: d}
commands:
  - command_name: add
    description: d
    parameter: {type: {a: {type: int, description: d}, b: {type: int, description: d}}}
  - command_name: say it
    description: d
    parameter: {type: string, description: d}
config: {greeting: hello}
"""
CODE = """\
from __future__ import annotations
import dataclasses
from neuraxis import Context

@dataclasses.dataclass
class Made:
    value: int

def add(a: int, b: int, context: Context) -> int:
    return a + b

async def say_it(text: str) -> str:
    return text
"""


def folder(path: Path, code: str | None = CODE, manifest: str = MANIFEST) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.yaml").write_text(manifest, encoding="utf-8")
    if code is not None:
        (path / "plugin.py").write_text(code, encoding="utf-8")
    return path


def call(plugin: Plugin, name: str, *values: Any, **arguments: Any) -> Any:
    run = plugin.commands[name].run
    assert run is not None
    return run(*values, **arguments)


def test_a_folder_with_functions(tmp_path: Path) -> None:
    """A function for each command; what is no identifier becomes an underscore."""
    plugin = load_plugin(folder(tmp_path / "tools"))
    add, say = plugin.commands["add"], plugin.commands["say it"]
    assert (add.context_name, add.is_async, add.bare) == (
        "context",
        False,
        False,
    )
    assert (say.context_name, say.is_async, say.bare) == ("", True, True)
    assert call(plugin, "add", a=1, b=2, context=None) == 3


@pytest.mark.parametrize("form", ["path", "text", "file"])
def test_the_ways_to_name_a_folder(tmp_path: Path, form: str) -> None:
    """A path, its text, or the manifest in it."""
    path = folder(tmp_path / "tools")
    source: Any = {"path": path, "text": str(path), "file": str(path / "config.yaml")}
    assert load_plugin(source[form]).spec.name == "tools"


def test_a_folder_without_code(tmp_path: Path) -> None:
    """It can be shown, and its commands have nothing to run."""
    plugin = load_plugin(folder(tmp_path / "tools", None))
    assert plugin.commands["add"].run is None


def test_a_class_gets_the_config(tmp_path: Path) -> None:
    """`Plugin` in plugin.py, with the manifest's own settings."""
    code = """
class Plugin:
    def __init__(self, config):
        self.greeting = config["greeting"]
    def add(self, a: int, b: int):
        return a + b
    def say_it(self, text):
        return f"{self.greeting} {text}"
"""
    plugin = load_plugin(folder(tmp_path / "tools", code))
    assert call(plugin, "say it", "you") == "hello you"
    assert call(plugin, "add", a=1, b=2) == 3


def test_an_object_with_one_command_method(tmp_path: Path) -> None:
    """The predecessor's convention: `command(command_name, param)`."""
    code = """
class Plugin:
    def command(self, command_name, param):
        return [command_name, param]
"""
    plugin = load_plugin(folder(tmp_path / "tools", code))
    assert call(plugin, "add", a=1, b=2) == ["add", {"a": 1, "b": 2}]
    assert call(plugin, "say it", "x") == ["say it", "x"]


def test_a_module_with_one_command_function(tmp_path: Path) -> None:
    """The same at the module's own level; our decorator is not taken for it."""
    code = "def command(command_name, param):\n    return command_name\n"
    assert call(load_plugin(folder(tmp_path / "a", code)), "add", a=1, b=2) == "add"
    with pytest.raises(ManifestError, match="there is no function"):
        load_plugin(folder(tmp_path / "b", "from neuraxis import command\n"))


def test_names_that_python_cannot_say(tmp_path: Path) -> None:
    """A parameter `user-id` is given as `user_id`, or as it is to `**rest`."""
    manifest = MANIFEST.replace("a: {type", "user-id: {type")
    code = "def say_it(text): ...\ndef add(user_id: int, b: int): return user_id - b\n"
    plugin = load_plugin(folder(tmp_path / "a", code, manifest))
    assert call(plugin, "add", **{"user-id": 3, "b": 1}) == 2
    code = "def say_it(text): ...\ndef add(**rest): return rest\n"
    plugin = load_plugin(folder(tmp_path / "b", code, manifest))
    assert call(plugin, "add", **{"user-id": 3}) == {"user-id": 3}


def test_code_and_manifest_must_agree(tmp_path: Path) -> None:
    """What would fail at every call is told at load, all of it."""
    code = "def add(a: int, c: int): ...\n"
    with pytest.raises(ManifestError) as caught:
        load_plugin(folder(tmp_path / "tools", code))
    assert [problem.message for problem in caught.value.problems] == [
        "add() takes no parameter 'b'",
        "add() needs 'c', which the manifest does not have",
        "there is no function for the command 'say it'",
    ]


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("x = 1\nraise ValueError('no key')\n", 2, "raised ValueError: no key"),
        ("def add(:\n", 1, "raised SyntaxError"),
        ("import no_such_module\n", 1, "raised ModuleNotFoundError"),
        ("class Plugin:\n    def __init__(self):\n        1 / 0\n", 3, "making Plugin"),
    ],
)
def test_code_that_fails_has_its_line(
    tmp_path: Path, code: str, line: int, words: str
) -> None:
    """Whatever it raises is a problem of that plugin."""
    with pytest.raises(ManifestError, match=words) as caught:
        load_plugin(folder(tmp_path / "tools", code))
    assert caught.value.problems[0].line == line


def test_two_folders_of_one_name_do_not_meet(tmp_path: Path) -> None:
    """Each has its own module, in which its classes are found."""
    first = folder(tmp_path / "tools")
    (tmp_path / "other").mkdir()
    second = folder(tmp_path / "other" / "tools", CODE.replace("a + b", "a * b"))
    (second / "words.py").write_text("X = 5\n", encoding="utf-8")
    text = (second / "plugin.py").read_text(encoding="utf-8")
    (second / "plugin.py").write_text(
        text.replace("import dataclasses", "import dataclasses\nfrom .words import X"),
        encoding="utf-8",
    )
    one, two = load_plugin(first), load_plugin(second)
    assert call(one, "add", a=3, b=3, context=None) == 6
    assert call(two, "add", a=3, b=3, context=None) == 9
    assert "plugin" not in sys.modules


def test_context_imported_for_the_type_checker_only(tmp_path: Path) -> None:
    """It is known by its name."""
    code = CODE.replace(
        "from neuraxis import Context",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from neuraxis import Context",
    )
    plugin = load_plugin(folder(tmp_path / "tools", code))
    assert plugin.commands["add"].context_name == "context"


def test_setup_package_is_never_imported(tmp_path: Path) -> None:
    """A manifest names a module; nobody imports it."""
    manifest = MANIFEST + "setup: {package: this_would_fail.plugin}\n"
    load_plugin(folder(tmp_path / "tools", CODE, manifest))
    assert not any("this_would_fail" in name for name in sys.modules)


def test_load_plugins_goes_on_after_a_mistake(tmp_path: Path) -> None:
    """One broken plugin takes no other with it."""
    good = folder(tmp_path / "good")
    bad = folder(tmp_path / "bad", None, "name: x\n")

    @command
    def one() -> None: ...

    plugins, errors = load_plugins([good, bad, "no/such/folder", one])
    assert [plugin.spec.name for plugin in plugins] == ["tools", "one"]
    assert len(errors) == 2
    assert "no/such/folder" in str(errors[1])


def test_what_comes_with_the_package() -> None:
    """`neuraxis:` and a folder of builtin."""
    for name in builtin_names():
        plugin = load_plugin(f"neuraxis:{name}")
        assert plugin.commands
        assert plugin.problems == ()
    with pytest.raises(ConfigError, match="no plugin of that name comes with"):
        load_plugin("neuraxis:no_such")


def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    """They say what there is; a folder without a manifest says that."""
    with pytest.raises(ConfigError, match="not a file, a folder or a known plugin"):
        load_plugin("wether")
    with pytest.raises(ConfigError, match="Did you mean neuraxis:files"):
        load_plugin("files")
    with pytest.raises(ConfigError, match=r"expected a folder with a config\.yaml"):
        load_plugin(str(tmp_path))


def test_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package offers an object, or the path of a folder."""
    module = tmp_path / "offered_tools.py"
    path = folder(tmp_path / "tools")
    module.write_text(
        f"def greet(name: str) -> str:\n    return name\nwhere = {str(path)!r}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    points = [
        EntryPoint("greeter", "offered_tools:greet", "neuraxis.plugins"),
        EntryPoint("folder", "offered_tools:where", "neuraxis.plugins"),
        EntryPoint("broken", "offered_tools:nothing", "neuraxis.plugins"),
    ]

    monkeypatch.setattr(loader, "installed", lambda: points)
    assert load_plugin("greeter").spec.name == "greet"
    assert load_plugin("folder").spec.name == "tools"
    with pytest.raises(ManifestError, match="entry point broken"):
        load_plugin("broken")
    with pytest.raises(ConfigError, match="Did you mean greeter"):
        load_plugin("greter")


@pytest.mark.parametrize("name", ["~nosuchuser/x", "x" * 300, "y" * 300 + ".py"])
def test_a_name_that_no_path_can_have_is_a_name(name: str) -> None:
    """Told as one that leads nowhere, whatever the system says of it."""
    with pytest.raises(ConfigError, match="not a file, a folder or a known plugin"):
        load_plugin(name)


def test_code_that_ends_the_process_is_a_mistake(tmp_path: Path) -> None:
    """A script with `sys.exit()` at its end must not take the session with it."""
    file = tmp_path / "script.py"
    file.write_text("import sys\n\nsys.exit(3)\n", encoding="utf-8")
    _, errors = load_plugins([str(file)])
    (problem,) = errors[0].problems
    assert problem.message.startswith("importing it raised SystemExit: 3; a plugin is")
    assert problem.line == 3


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "import reqests\n",
            r"No module named 'reqests'; is it installed for .*python",
        ),
        (
            "def say_it(text): ...\ndef ad(a, b): ...\n",
            "command 'add'; there is ad: both must have one name",
        ),
        (
            "class Sums:\n    def add(self, a, b): ...\n    say_it = add\n",
            "the class Sums has it: a plugin's class must be named Plugin",
        ),
        (
            "class Plugin:\n    def add(a, b): ...\n    def say_it(self, text): ...\n",
            "takes no parameter 'a'; its first parameter must be self",
        ),
    ],
)
def test_what_the_author_may_have_meant(tmp_path: Path, code: str, words: str) -> None:
    """A message that can be acted on by somebody who writes their first plugin."""
    with pytest.raises(ManifestError, match=words):
        load_plugin(folder(tmp_path / "tools", code))


def test_a_relative_path_has_its_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python knows the file by its whole path; the author named it otherwise."""
    folder(tmp_path / "tools", "x = 1\ndef add(a, b)\n    return a\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ManifestError) as caught:
        load_plugin("tools")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(Path("tools/plugin.py")), 2)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "from .helper import x",
            "No module named 'tools.helper'; there is no helper.",
        ),
        ("from .a.b import x", "there is no a.py beside it"),
        ("from ..helper import x", "only what lies beside it can be imported: from .N"),
        ("import beside_it", "it lies beside it: write from . import beside_it"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'; is it installed"),
        ("name = input('?')", 'put what asks or ends under `if __name__ == "__main__"'),
    ],
)
def test_an_import_that_fails_says_what_to_write(
    tmp_path: Path, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file beside it, a package that is missing, a script that asks."""

    def nobody(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    path = folder(tmp_path / "tools", f"{code}\n")
    (path / "beside_it.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        load_plugin(path)
    (problem,) = caught.value.problems
    assert words in problem.message
    assert "_neuraxis_plugin_" not in problem.message
    assert problem.line == 1


def test_a_file_without_commands_says_what_there_is(tmp_path: Path) -> None:
    """A function that is not marked, a class that is: what to write."""
    file = tmp_path / "mine.py"
    begin = "from neuraxis import command\nfrom textwrap import dedent\n"
    for code, words in (
        ("def add(a, b): return a\n", r"Write @command above .* may call: add$"),
        ("x = 1\n", "Mark the functions that a model may call with @command$"),
        ("class D:\n    @command\n    def n(self): ...\n", r"hand .* plugins=\[D\]"),
    ):
        file.write_text(begin + code, encoding="utf-8")
        with pytest.raises(ConfigError, match=words):
            load_plugin(file)


def test_a_misspelt_path_is_answered_with_what_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders with a manifest and files of code, as they would be written."""
    (tmp_path / "sub").mkdir()
    folder(tmp_path / "sub" / "hello")
    (tmp_path / "sums.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for given, meant in (("sum.py", "sums.py"), ("sub/helo", "sub/hello")):
        with pytest.raises(ConfigError, match=rf"Did you mean {meant}\?"):
            load_plugin(given)


def test_a_setting_that_the_manifest_does_not_hold(tmp_path: Path) -> None:
    """A key that a constructor reads: told with those there are."""
    code = "class Plugin:\n    def __init__(self, config): self.k = config['key']\n"
    with pytest.raises(ManifestError, match=r"plugin\.py:2: .*KeyError: 'key'; in the"):
        load_plugin(folder(tmp_path / "a", code))
    code = "class Plugin:\n    def __init__(self, a, b): ...\n"
    with pytest.raises(ManifestError, match="error: the class Plugin: expected a con"):
        load_plugin(folder(tmp_path / "b", code))


def test_a_misspelt_key_is_told_with_what_came_of_it(tmp_path: Path) -> None:
    """Code and manifest do not agree since a key was not used: both are told."""
    path = folder(tmp_path / "tools", "def add(a, b): return a + b\n")
    text = (path / "config.yaml").read_text(encoding="utf-8")
    misspelt = text.replace("parameter:", "paramter:")
    assert misspelt != text
    (path / "config.yaml").write_text(misspelt, encoding="utf-8")
    with pytest.raises(ManifestError, match=r"did you mean parameter\?") as caught:
        load_plugin(path)
    assert "add() needs 'a', which the manifest does not have" in str(caught.value)


def test_a_hint_that_cannot_convert_beside_a_manifest(tmp_path: Path) -> None:
    """`dict[str]` would fail at the first call; `any` says nothing and does no harm."""
    rest = "def say_it(text): return text\n"
    fine = f"def add(a: any, b: 'int') -> any: return a + b\n{rest}"
    assert load_plugin(folder(tmp_path / "a", fine)).commands["add"].run is not None
    code = f"def add(a: dict[str], b): return a\n{rest}"
    with pytest.raises(ManifestError, match=r"'a': dict\[str\] has 1 type; write dict"):
        load_plugin(folder(tmp_path / "b", code))


def test_mistakes_in_a_file_name_the_file(tmp_path: Path) -> None:
    """Not the module that it was loaded as; a file without commands says so."""
    begin = "from neuraxis import command\n"
    file = tmp_path / "mine.py"
    file.write_text(f'{begin}@command\ndef f(a: "Nope"): ...\n', encoding="utf-8")
    with pytest.raises(ManifestError, match=r"mine\.py:2: error: f: parameter 'a': N"):
        load_plugin(file)
    twice = '@command(name="f")\ndef {}(): ...\n'
    text = begin + twice.format("a") + twice.format("b")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError, match=r"mine\.py:4: error: b: the command 'f' i"):
        load_plugin(file)
    file.write_text(f'{begin}@command(effects="reads")\ndef f(): ...\n', "utf-8")
    with pytest.raises(ManifestError, match=r"mine\.py:2: error: @command: effects"):
        load_plugin(file)
    file.write_text("def f(a: int): ...\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.py:1: error: expected functions"):
        load_plugin(file)


def test_all_mistakes_of_a_file_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its line, and the path as it was given."""
    text = """from neuraxis import command

@command(trusted_only=["x"])
def f(a: dict[str], b: "Nope", c: "Strr"): ...

@command(names_file={"a": "writ"})
def g(a: int = "one", b: [int] = 1): ...
"""
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = [line.split(": ")[:4] for line in check_plugin("mine.py")]
    assert told == [
        ["mine.py:3", "error", "f", "parameter 'b'"],
        ["mine.py:3", "error", "f", "parameter 'c'"],
        ["mine.py:6", "error", "g", "parameter 'a'"],
        ["mine.py:6", "error", "g", "parameter 'b'"],
        ["mine.py:6", "error", "g", "names_file"],
    ]
    fine = text[: text.index("@")] + "@command\ndef h(): ...\n"
    (tmp_path / "mine.py").write_text(fine, encoding="utf-8")
    assert [told.partition(" ")[0] for told in check_plugin("mine.py")] == [
        "mine.py:1:",
        "mine.py:3:",
    ]
    (tmp_path / "mine.py").write_text("class Mine: ...\n", encoding="utf-8")
    (said,) = check_plugin("mine.py")
    assert said.startswith("mine.py:1: error: expected functions marked by @command")


def test_a_manifest_of_nearly_the_right_name(tmp_path: Path) -> None:
    """`config.yml` is not read; it is told what it must be named."""
    (tmp_path / "config.yml").write_text("name: x\n", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"its config\.yml must be named config\.yaml"
    ):
        load_plugin(str(tmp_path))


def test_a_misspelt_name_of_ours_is_suggested_without_its_prefix() -> None:
    """`-p tabels` means neuraxis:tables, and no function of that name."""
    with pytest.raises(ConfigError, match="Did you mean neuraxis:tables") as raised:
        load_plugin("tabels")
    assert "In Python" not in str(raised.value)
