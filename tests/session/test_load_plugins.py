"""Plugins as they are named: what a model could have written is not loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuraxis.errors import ConfigError
from neuraxis.session.load_plugins import registry_of


@pytest.mark.parametrize("name", ["~nobody-of-that-name/x", "x" * 5000, "a\0b"])
def test_a_name_that_is_no_path(name: str, tmp_path: Path) -> None:
    """It is told like any other name of nothing, and not as an error of the system."""
    with pytest.raises(ConfigError, match="no such name"):
        registry_of([name], tmp_path / "workspace", None)


def test_a_link_into_the_workspace(tmp_path: Path) -> None:
    """Where a plugin really lies counts, not where it is reached."""
    workspace = tmp_path / "workspace"
    (workspace / "mine").mkdir(parents=True)
    link = tmp_path / "plugins"
    link.symlink_to(workspace)
    for source in (link / "mine", str(link / "mine"), workspace):
        with pytest.raises(ConfigError, match="lies in the workspace"):
            registry_of([source], workspace, None)


def test_a_workspace_that_is_a_file(tmp_path: Path) -> None:
    """Told at once, and not by the first command that writes."""
    file = tmp_path / "notes.txt"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"workspace: .*: expected a folder"):
        registry_of([], file, None)
