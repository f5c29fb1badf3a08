"""The example programs run, say what their twins say, and are no longer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import neuraxis

_ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((_ROOT / "examples").glob("*.py"))
NEEDS = {"data_analysis": ("polars", "matplotlib", "PIL")}


def _run(program: Path, folder: Path) -> str:
    """Run a program as a person does; return what it prints."""
    folder.mkdir()
    source = str(Path(neuraxis.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": source,
            "PYTHONWARNINGS": "",
            "MPLCONFIGDIR": str(folder),
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=55,
        check=False,
    )
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
