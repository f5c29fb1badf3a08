"""Plugins as they are named: what a model could have written is not loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuraxis import Session, command
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.loader import load_plugin
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


class Held:
    """Holds something, as a connection."""

    closed: list[str] = []  # noqa: RUF012 - shared by the objects of one test

    def __init__(self, name: str = "first") -> None:
        self.name = name

    @command(effects="read")
    def look(self) -> str:
        """Look."""
        return self.name

    def close(self) -> None:
        self.closed.append(self.name)
        if self.name == "bad":
            raise ValueError("own")


class Bad(Held):
    def __init__(self) -> None:
        super().__init__("bad")


class Commanded(Held):
    @command(effects="once")
    def close(self) -> None:
        """Close the shop."""
        self.closed.append("by nobody")


class Later(Held):
    async def close(self) -> None:  # type: ignore[override]
        self.closed.append("by nobody")


def _session(*plugins: object) -> Session:
    return Session(ScriptedModel([]), plugins=plugins)


def test_what_a_session_made_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; what was handed over belongs to the program."""
    monkeypatch.setattr(Held, "closed", closed := [])
    session = _session(Held)
    assert closed == []
    session.close()
    session.close()
    assert closed == ["first"]
    ready = load_plugin(Held)
    for given in (Held("mine"), Commanded, Later, ready):
        _session(given).close()
    assert closed == ["first"]


def test_a_class_of_a_folder_is_closed(tmp_path: Path) -> None:
    """As one that is handed over."""
    folder = tmp_path / "held"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "name: held\ninfo: {title: Held, description: Holds.}\ncommands:\n"
        "  - {command_name: look, description: Look., effects: read}\n"
    )
    (folder / "plugin.py").write_text(
        "import pathlib\nclass Plugin:\n    def look(self):\n        return 1\n"
        f"    def close(self):\n        pathlib.Path({str(tmp_path / 'closed')!r})"
        ".touch()\n"
    )
    with _session(folder):
        assert not (tmp_path / "closed").exists()
    assert (tmp_path / "closed").exists()


def test_one_that_cannot_be_closed_holds_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error comes out; the others and the journal are closed."""
    monkeypatch.setattr(Held, "closed", closed := [])
    given = {"id": "s1", "journal": tmp_path / "j.db", "plugins": [Bad, Held]}
    session = Session(ScriptedModel([]), **given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="own"):
        session.close()
    assert closed == ["bad", "first"]
    with pytest.raises(ConfigError, match="no_such"):
        _session(Held, "no_such")
    assert closed == ["bad", "first", "first"]
