"""`--instructions` and the setting of that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_process import neuraxis
from neuraxis.errors import ConfigError
from neuraxis.settings import load


@pytest.mark.parametrize("given", ["Be brief.", "@rules.md"])
def test_the_prompt_has_them(given: str, tmp_path: Path) -> None:
    """A text, or what a file says."""
    (tmp_path / "rules.md").write_text("Be brief.", encoding="utf-8")
    done = neuraxis("prompt", "--instructions", given, "hi", cwd=tmp_path)
    assert (done.returncode, "\n\nBe brief.\n" in done.stdout) == (0, True)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """By its name."""
    done = neuraxis("prompt", "--instructions", "@none.md", "hi", cwd=tmp_path)
    assert done.returncode == 2
    assert "instructions: none.md: " in done.stderr


def test_the_users_own_file_may_set_them_and_a_projects_may_not(tmp_path: Path) -> None:
    """What the model takes for the user's word comes from the user."""
    for name in ("config", "project"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "neuraxis.toml"
        file.write_text('instructions = "Be brief."', encoding="utf-8")
    home = {"NEURAXIS_HOME": str(tmp_path)}
    assert load(None, home).get("instructions") == "Be brief."
    with pytest.raises(ConfigError, match="instructions"):
        load(tmp_path / "project", {})


def test_a_template_without_tools_is_one_line(tmp_path: Path) -> None:
    """And no traceback of a warning."""
    (tmp_path / "own.md").write_text("Hi.\n{{ message }}", encoding="utf-8")
    done = neuraxis("prompt", "--template", "own.md", "hi", cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert line.startswith("neuraxis: template own.md: it names none of the tools")
