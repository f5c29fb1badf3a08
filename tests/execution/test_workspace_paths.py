"""A file has another name in another workspace, or none (rule D12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuraxis.execution.nested import (
    translate_event,
    translate_path,
    translate_paths,
    workspace_paths,
)


@pytest.mark.parametrize(
    ("here", "there", "name", "found"),
    [
        ("w", "w", "a.txt", "a.txt"),
        ("w/sub", "w", "a.txt", "sub/a.txt"),
        ("w/sub/../sub", "w", "x/a.txt", "sub/x/a.txt"),
        ("w", "w/sub", "sub/a.txt", "a.txt"),
        ("w", "w/sub", "a.txt", None),
        ("w", "v", "a.txt", None),
        ("link", "w", "a.txt", "sub/a.txt"),
        ("w", "v", "../v/a.txt", "a.txt"),
        ("w/sub", "w", "..a.txt", "sub/..a.txt"),
    ],
)
def test_D12_a_file_by_its_name_there(
    here: str, there: str, name: str, found: str | None, tmp_path: Path
) -> None:
    """Below, above, beside, and by a link to it."""
    (tmp_path / "w" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "w" / "sub")
    by = workspace_paths(tmp_path / here, tmp_path / there)
    assert translate_path(name, by) == found
    assert translate_paths([name], by) == ([] if found is None else [found])


def test_D12_an_event_names_its_files_as_there(tmp_path: Path) -> None:
    """Of a session inside of one inside, too; the event itself stays as it was."""
    ended = {"type": "call_finished", "wrote": ["a.txt"]}
    told = {"type": "inside", "event": {"type": "inside", "event": ended}}
    by = workspace_paths(tmp_path / "w" / "sub", tmp_path / "w")
    moved_to = {"type": "call_finished", "wrote": ["sub/a.txt"]}
    assert translate_event(told, by) == {
        "type": "inside",
        "event": {"type": "inside", "event": moved_to},
    }
    assert ended["wrote"] == ["a.txt"]
    finished = {"type": "session_finished", "files": ["b.txt"], "text": "x"}
    assert translate_event(finished, by) == {**finished, "files": ["sub/b.txt"]}
