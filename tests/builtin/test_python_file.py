"""EXECUTE_PYTHON_FILE: the answer's shape; the sandbox has its own tests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from neuraxis.builtin.python_file import plugin, traceback_hints
from neuraxis.plugins.context import Context
from neuraxis.sandbox.process.run import probe


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """A workspace; skips where no sandbox works."""
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox works on this machine")
    return Context(workspace=tmp_path_factory.mktemp("workspace"))


def _script(context: Context, text: str) -> str:
    (context.workspace / "s.py").write_text(text, encoding="utf-8")
    return "s.py"


def test_C11_output(context: Context) -> None:
    """Standard output comes back as it was printed."""
    script = _script(context, "print('hällo')\nprint(6 * 7)\n")
    answer = plugin.run(script, context)
    assert answer.pop("sandbox") in ("bubblewrap", "landlock")
    assert {"success": True, "output": "hällo\n42\n"} == answer


def test_C12_failing_script(context: Context) -> None:
    """`success: false`, the output so far, and the last line of the traceback."""
    answer = plugin.run(_script(context, "print('so far')\n1 / 0\n"), context)
    assert (False, "so far\n") == (answer["success"], answer["output"])
    assert "ZeroDivisionError" in answer["error"]
    assert "Traceback" in answer["stderr"]


@pytest.mark.parametrize("path", ["none.py", "../s.py", "/etc/passwd", "notes.txt"])
def test_C12_what_cannot_be_run(path: str, context: Context) -> None:
    """No exception for a file that is not there or not allowed."""
    answer = plugin.run(path, context)
    assert (False, "") == (answer["success"], answer["output"])
    assert answer["error"]


def test_a_scripts_files_are_as_large_as_the_setting_says(context: Context) -> None:
    """`files.file_bytes` is of what scripts write, too; 64 MiB if it is not set."""
    script = _script(context, "open('big.md', 'w').write('x' * 2_000_000)")
    assert plugin.run(script, context)["success"]
    limited = replace(context, settings={"files.file_bytes": 1_000_000})
    assert not plugin.run(script, limited)["success"]
    assert (context.workspace / "big.md").stat().st_size <= 2_000_000


def test_written_and_run_by_one_name(context: Context) -> None:
    """C14: both tools share one root."""
    from neuraxis.builtin.files.plugin import write_file

    assert write_file("sub/hello.py", "print('hi')", context)["success"]
    assert "hi\n" == plugin.run("sub/hello.py", context)["output"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("input('Name? ')", "Nobody can type into a script"),
        ("import no_such_package.x", "'no_such_package' is not installed for scripts"),
        ("import far_module", "There is 'lib/far_module.py', but a script imports"),
        ("import random\nrandom.nope()", "'sub/random.py' of the workspace is what"),
        ("from random import nope", "'sub/random.py' of the workspace is what"),
        ("from . import x", "by its name, without dots"),
        ("open('/etc/none')", "sees the files of the workspace only"),
        ("open('/usr/x', 'w')", "can use the files of the workspace only"),
        ("raise MemoryError", "part by part"),
        ("import socket\nraise socket.gaierror('x')", "A script has no network"),
        ("import os\nos.abort()", "(the signal SIGABRT)."),
        ("import sys\nsys.exit(3)", "exit code 3."),
        ("import sys\nsys.exit('stop.')", "exit code 1: stop."),
        ("[].nope", "'list' object has no attribute 'nope'"),
    ],
)
def test_what_to_do_about_an_error_is_told(
    script: str, said: str, context: Context
) -> None:
    """What Python says of it, a model takes for a computer as it knows them."""
    (context.workspace / "lib").mkdir(exist_ok=True)
    (context.workspace / "lib/far_module.py").write_text("", encoding="utf-8")
    (context.workspace / "sub").mkdir(exist_ok=True)
    (context.workspace / "sub/random.py").write_text("", encoding="utf-8")
    (context.workspace / "sub/s.py").write_text(script, encoding="utf-8")
    answer = plugin.run("sub/s.py", context)
    assert said in str(answer["error"])
    if said.endswith("."):
        assert str(answer["error"]).endswith(said)


def test_with_a_network_its_failure_is_the_servers(context: Context) -> None:
    """The hint would be wrong."""
    said = "urllib.error.URLError: <urlopen error timed out>"
    workspace = context.workspace
    assert "no network" in traceback_hints.hint(said, "s.py", workspace, network=False)
    assert traceback_hints.hint(said, "s.py", workspace, network=True) == ""
