"""EXECUTE_PYTHON_FILE: the answer's shape; the sandbox has its own tests."""

from __future__ import annotations

import pytest

from neuraxis.builtin.python_file import plugin
from neuraxis.plugins.context import Context
from neuraxis.sandbox.process import probe


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


def test_written_and_run_by_one_name(context: Context) -> None:
    """C14: both tools share one root."""
    from neuraxis.builtin.files.plugin import write_file

    assert write_file("sub/hello.py", "print('hi')", context)["success"]
    assert "hi\n" == plugin.run("sub/hello.py", context)["output"]
