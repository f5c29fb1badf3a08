"""What somebody types who uses it for the first time: told what to type instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli_process import neuraxis
from neuraxis import Session, command
from neuraxis.errors import ConfigError, StorageError
from neuraxis.journal import open_journal
from neuraxis.models.scripted import ScriptedModel

MANIFEST = """\
name: hello
info: {title: Hello, description: Says hello.}
commands:
  - command_name: greet
    description: Greet a person.
    effects: none
    parameter: {type: {person: {type: string, description: who}}}
    response: {type: {greeting: {type: string, description: the greeting}}}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with plugins whose code is wrong in each its own way."""
    for name, code in (
        ("right", "return {'greeting': person}"),
        ("wrong", "return None"),
        ("raises", "raise KeyError(person)"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(MANIFEST, encoding="utf-8")
        text = f"def greet(person):\n    {code}\n"
        (tmp_path / name / "plugin.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("new", "mine"), 2, "Did you mean: neuraxis plugins new"),
        (("fetch",), 2, "Did you mean: neuraxis models fetch"),
        (("plugins", "new", "1st"), 2, "with no digit first"),
        (("run", "-m", "http://[::1/v1#x", "hi"), 2, "not a URL: Invalid IPv6 URL"),
        (("plugins", "add", "http://[::1/x"), 2, "http://[::1/x: not a URL: "),
        (("plugins", "add", "--mcp", "http://[::1/x"), 2, "and a host, got"),
        (("run", "-m", "vertex:x", "hi"), 2, "vertex.project or GOOGLE_CLOUD_PROJECT"),
        (("run", "-p", "", "hi"), 2, 'plugin "": not a file, a folder or a known'),
        (("call", "-p", "right", "greet", "Ada"), 2, "such as --person Ada"),
        (("call", "-p", "right", "greet", "person=Ada"), 2, "such as --person Ada"),
        (
            ("call", "-p", "right", "greet", '{"person": "Ada L", "n": 2}'),
            2,
            "such as --person 'Ada L' --n 2",
        ),
        (
            ("call", "-p", "wrong", "greet", "--person", "Ada"),
            0,
            "warning: hello.greet returned a value that its description does not allow",
        ),
        (
            ("call", "-p", "raises", "greet", "--person", "Ada"),
            1,
            "plugin.py:2, in greet)",
        ),
        (
            ("call", "-p", "right", "-p", "wrong", "greet"),
            2,
            "the plugin name 'hello' is taken by right/config.yaml; write another",
        ),
        (
            ("run", "-m", "local:nope", "--journal", "memory", "hi"),
            2,
            "expected the path of a model file",
        ),
        (
            ("call", "-p", "right", "--journal", ".", "greet", "--person", "Ada"),
            5,
            "the journal . cannot be opened: it is a folder. Name a file in it",
        ),
        (
            ("call", "-p", "right", "-w", "right/plugin.py", "greet"),
            2,
            "plugin.py: expected a folder, or a path where there is nothing yet",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_beginner_types(
    here: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    """A sentence that says what to type, no fault of ours and no traceback."""
    told = neuraxis(*words, cwd=here)
    assert said in told.stderr, told.stderr
    assert "Traceback" not in told.stderr
    assert "internal error" not in told.stderr
    assert told.returncode == code


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    """Nor is an empty path, which is the current folder."""
    for path in ("", ".", tmp_path):
        with pytest.raises(StorageError, match="it is a folder"):
            open_journal(path)


def test_two_python_plugins_of_one_name() -> None:
    """They have no manifest to set a name in."""

    @command
    def greet() -> None: ...

    @command(name="greet")
    def other() -> None: ...

    with pytest.raises(ConfigError, match=r"write @command\(name=\.\.\.\) above one"):
        Session(model=ScriptedModel([]), plugins=[greet, other])


def test_a_plugin_that_is_listed_twice() -> None:
    """It was told to give one of them another name."""

    @command
    def greet() -> None: ...

    for plugin, name in ((greet, "greet"), ("neuraxis:files", "'neuraxis:files'")):
        with pytest.raises(ConfigError, match=f"plugins: {name}: it is listed twice"):
            Session(model=ScriptedModel([]), plugins=[plugin, plugin])


def test_what_is_no_plugin_of_a_session() -> None:
    """A name in quotes, and a function whose values have no names."""
    with pytest.raises(ConfigError, match=r"goes without quotes: plugins=\[greet\]"):
        Session(model=ScriptedModel([]), plugins=["greet"])
    with pytest.raises(ConfigError, match=r"print: \*args: .* calls print"):
        Session(model=ScriptedModel([]), plugins=[print])


def test_an_attached_file_that_is_missing(tmp_path: Path) -> None:
    """The planner does not introduce itself before."""
    done = neuraxis("run", "--attach", "nope.csv", "hi", cwd=tmp_path)
    assert done.stderr == "neuraxis: nope.csv: cannot be read: there is no such file\n"
    assert done.returncode == 2


def test_a_request_without_quotes_is_told_of_them(tmp_path: Path) -> None:
    """It was "unexpected extra argument (there)"."""
    done = neuraxis("run", "hi", "there", cwd=tmp_path)
    assert done.returncode == 2
    assert 'Put the request in quotes: neuraxis run "hi there"' in done.stderr


def test_a_plugin_of_a_file_is_told_with_the_file(tmp_path: Path) -> None:
    """With two files, a variable and `-p`, nobody knew which one named it."""
    text = 'plugins = ["nope", "neuraxis:nope"]\n'
    for name in ("nope", "neuraxis:nope"):
        (tmp_path / "neuraxis.toml").write_text(text, encoding="utf-8")
        done = neuraxis("run", "hi", cwd=tmp_path)
        assert "neuraxis.toml: plugin " in done.stderr, name
        assert name in done.stderr
        assert done.returncode == 2
        text = text.replace('"nope", ', "")
    done = neuraxis("run", "-p", "other", "hi", cwd=tmp_path)
    assert 'neuraxis: plugin "other": ' in done.stderr


def test_a_folder_that_was_deleted_is_told(tmp_path: Path) -> None:
    """It was "system error: [Errno 2] No such file or directory"."""
    text = 'mkdir gone; cd gone; rmdir ../gone; "$0" -m neuraxis run hi'
    done = subprocess.run(
        ["sh", "-c", text, sys.executable],
        cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert "the current folder does not exist any more" in done.stderr
    assert done.returncode == 5


def test_what_a_failed_call_returned_is_shown(tmp_path: Path) -> None:
    """Of a script that failed there was its exit code, not what it had written."""
    (tmp_path / "neuraxis-workspace").mkdir()
    code = "print('half way')\n1/0\n"
    (tmp_path / "neuraxis-workspace/z.py").write_text(code, encoding="utf-8")
    call = ("call", "--journal", "memory", "EXECUTE_PYTHON_FILE", "--file_path", "z.py")
    done = neuraxis(*call, cwd=tmp_path)
    assert "half way" in done.stdout
    assert "ZeroDivisionError" in done.stderr
    assert done.returncode == 1
