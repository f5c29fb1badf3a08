"""The example programs run, say what their twins say, and are no longer."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import neuraxis

_ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((_ROOT / "examples").glob("*.py"))
NEEDS = {"data_analysis": ("polars", "matplotlib", "PIL")}


def _done(
    program: Path, folder: Path, *before: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program as a person does."""
    source = str(Path(neuraxis.__file__).resolve().parents[1])
    return subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*before, source]),
            "PYTHONWARNINGS": "",
            "MPLCONFIGDIR": str(folder),
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=55,
        check=False,
    )


def _run(program: Path, folder: Path) -> str:
    """Return what a program prints."""
    folder.mkdir()
    done = _done(program, folder)
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def _lines(program: Path) -> int:
    """Count the lines of code: neither blank nor comment."""
    said = program.read_text(encoding="utf-8").splitlines()
    return sum(bool(line.strip()) and line.strip()[0] != "#" for line in said)


def test_each_has_a_twin() -> None:
    """Data analysis, a support bot, a batch, typed extraction."""
    names = {path.stem for path in EXAMPLES}
    assert names == {"batch", "data_analysis", "support_bot", "typed_extraction"}


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_what_its_twin_says(program: Path, tmp_path: Path) -> None:
    """Ours and the one for pydantic-ai do the same, and ours has no more lines."""
    for package in (*NEEDS.get(program.stem, ()), "pydantic_ai"):
        pytest.importorskip(package)
    twin = program.parent / "pydantic_ai" / program.name
    assert _lines(program) <= _lines(twin)
    ours, theirs = _run(program, tmp_path / "ours"), _run(twin, tmp_path / "theirs")
    assert ours.splitlines()[-1] == theirs.splitlines()[-1]
    for line in theirs.splitlines():
        if not line.startswith("waiting"):  # each shows a question in its own way
            assert line in ours.splitlines()


@pytest.mark.parametrize(
    ("lacking", "extra"), [("polars", "tables"), ("matplotlib", "plots")]
)
def test_a_package_that_lacks_is_told(lacking: str, extra: str, tmp_path: Path) -> None:
    """With the line that installs it, and without a traceback."""
    for package in NEEDS["data_analysis"]:
        pytest.importorskip(package)
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys; sys.modules[{lacking!r}] = None", encoding="utf-8"
    )
    program = _ROOT / "examples" / "data_analysis.py"
    done = _done(program, tmp_path, str(tmp_path))
    assert done.returncode == 1
    assert f"pip install 'neuraxis[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_index_names_what_each_needs() -> None:
    """The extras, in one line that can be copied."""
    index = (_ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for program in EXAMPLES:
        (row,) = [line for line in index.splitlines() if f"({program.name})" in line]
        source = program.read_text(encoding="utf-8")
        extras = re.findall(r"neuraxis:(tables|plots|images)", source)
        assert all(extra in row for extra in extras)
        assert ("pydantic" in source) == ("pip install pydantic" in row)
