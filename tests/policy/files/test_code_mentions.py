"""Files of a workspace that may run a script by its name."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from neuraxis.policy.files.code_mentions import is_mentioned


def is_data(name: str) -> bool:
    """Whether a file runs nothing, by its name."""
    return name.endswith((".md", ".csv"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.py", "import helper"),
        ("bin/report", "#!/usr/bin/env python3\nimport helper\n"),
        ("Procfile", "web: gunicorn helper:app"),
        ("crontab", "0 * * * * python -m helper"),
        ("worker.service", "ExecStart=/usr/bin/python -m helper"),
        ("Jenkinsfile", "sh 'python -m helper'"),
        ("fast.pyx", "from helper import sums"),
        ("start.ps1", "python -m helper"),
        ("run.py", "import ｈｅｌｐｅｒ"),
        ("big.py", f"{'#' * 2_000_000}\nimport helper"),
        ("bell.py", "# \x01 rings\nimport helper"),
    ],
)
def test_what_may_run_a_script_names_it(tmp_path: Path, name: str, text: str) -> None:
    """Whatever its ending is, as Python reads letters."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    assert is_mentioned("helper", tmp_path, is_data)
    assert not is_mentioned("sums_of_may", tmp_path, is_data)


@pytest.mark.parametrize("name", ["notes.md", "helper.py", "helper.csv"])
def test_documents_and_the_script_itself_run_nothing(tmp_path: Path, name: str) -> None:
    """The script is the one that would be written again."""
    (tmp_path / name).write_text("helper", encoding="utf-8")
    assert not is_mentioned("helper", tmp_path, is_data)


def test_more_text_than_is_read_counts_as_naming_it(tmp_path: Path) -> None:
    """Looking through it would take too long."""
    with (tmp_path / "dump.sql").open("wb") as file:
        file.write(b"x\n")
        file.truncate(60_000_000)
    assert is_mentioned("helper", tmp_path, is_data)


def test_attack16_b9_a_workspace_in_a_virtual_environment_is_searched(
    tmp_path: Path,
) -> None:
    """Packages are not searched, but the person's own scripts are."""
    (tmp_path / "pyvenv.cfg").touch()
    (tmp_path / "run.py").write_text("import helper")
    inner = tmp_path / "env"
    inner.mkdir()
    (inner / "pyvenv.cfg").touch()
    (inner / "package.py").write_text("import sums")
    assert is_mentioned("helper", tmp_path, is_data)
    assert not is_mentioned("sums", tmp_path, is_data)


@pytest.mark.parametrize(
    ("name", "counts"), [("lib", True), ("node_modules", False), ("env", False)]
)
def test_attack16_b9_a_linked_folder_counts_as_naming_it(
    tmp_path: Path, name: str, counts: bool
) -> None:
    """It is not searched; installed packages need not be."""
    elsewhere, work = tmp_path / "elsewhere", tmp_path / "work"
    elsewhere.mkdir()
    work.mkdir()
    if name == "env":
        (elsewhere / "pyvenv.cfg").touch()
    (work / name).symlink_to(elsewhere)
    assert is_mentioned("helper", work, is_data) is counts


def test_a_script_with_data_behind_it_is_text(tmp_path: Path) -> None:
    """An archive that unpacks itself."""
    script = b"#!/bin/sh\npython helper.py\nexit\n" + Random(1).randbytes(20_000)
    (tmp_path / "installer").write_bytes(script)
    assert is_mentioned("helper", tmp_path, is_data)


def test_random_bytes_are_no_text(tmp_path: Path) -> None:
    """A picture or program is not read for names."""
    for seed in range(100):
        content = Random(seed).randbytes(2_000) + b"helper"
        (tmp_path / f"{seed}.bin").write_bytes(content)
    assert not is_mentioned("helper", tmp_path, is_data)
