"""The copy of a workspace for one run, and what comes back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from neuraxis.sandbox.process import staging
from neuraxis.sandbox.process.job import CannotStart, Limits


def _tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a few files."""
    folder = tmp_path / "ws"
    (folder / "sub" / "deep").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_changes_come_back(workspace: Path) -> None:
    """New, changed and removed files and folders."""
    with staging.staged(workspace, None, Limits()) as copy:
        assert _tree(copy) == _tree(workspace)
        (copy / "a.txt").write_text("changed", encoding="utf-8")
        (copy / "new").mkdir()
        (copy / "new" / "n.txt").write_text("new", encoding="utf-8")
        (copy / "sub" / "deep" / "c.txt").unlink()
        (copy / "sub" / "deep").rmdir()
    assert _tree(workspace) == {
        "a.txt": "changed",
        "new/n.txt": "new",
        "sub/b.txt": "sub/b.txt",
    }
    assert not (workspace / "sub" / "deep").exists()
    assert not copy.exists()


def test_a_change_with_its_time_set_back_comes_back_too(workspace: Path) -> None:
    """What a script can set (size, times) does not decide."""
    with staging.staged(workspace, None, Limits()) as copy:
        file = copy / "a.txt"
        times = file.stat()
        file.write_text("A.TXT", encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert _tree(workspace)["a.txt"] == "A.TXT"


def test_what_changed_meanwhile_outside_stays(workspace: Path) -> None:
    """Files the script left alone are not written back."""
    with staging.staged(workspace, None, Limits()):
        (workspace / "a.txt").write_text("by another", encoding="utf-8")
        (workspace / "theirs.txt").write_text("x", encoding="utf-8")
    assert _tree(workspace)["a.txt"] == "by another"
    assert "theirs.txt" in _tree(workspace)


def test_L_a_git_that_a_person_makes_meanwhile_stays(workspace: Path) -> None:
    """Their folder is no script's; one that the script makes does not come back."""
    with staging.staged(workspace, None, Limits()) as copy:
        for place, text in ((workspace, "theirs"), (copy, "the script's")):
            (place / ".git").mkdir()
            (place / ".git" / "config").write_text(text, encoding="utf-8")
    assert (workspace / ".git" / "config").read_text(encoding="utf-8") == "theirs"


def test_S11_only_files_and_folders_come_back(workspace: Path, tmp_path: Path) -> None:
    """No link, no pipe, no socket; and none is followed on the way."""
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    with staging.staged(workspace, None, Limits()) as copy:
        (copy / "link").symlink_to(secret)
        os.mkfifo(copy / "pipe")
        (copy / "a.txt").unlink()
        (copy / "a.txt").symlink_to(secret)
        os.replace(copy / "sub" / "b.txt", copy / "b.txt")
        (copy / "sub" / "b.txt").symlink_to(secret)
    assert "secret" not in _tree(workspace).values()
    assert not (workspace / "link").is_symlink()
    assert not (workspace / "pipe").exists()


def test_S11_a_link_in_the_workspace_is_not_written_through(
    workspace: Path, tmp_path: Path
) -> None:
    """A file of a link's name replaces the link; a folder of it is refused."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f.txt").write_text("original", encoding="utf-8")
    with staging.staged(workspace, None, Limits()) as copy:
        (copy / "file").write_text("new", encoding="utf-8")
        (copy / "folder").mkdir()
        (copy / "folder" / "f.txt").write_text("new", encoding="utf-8")
        (workspace / "file").symlink_to(outside / "f.txt")
        (workspace / "folder").symlink_to(outside)
    assert (outside / "f.txt").read_text(encoding="utf-8") == "original"
    assert (workspace / "file").read_text(encoding="utf-8") == "new"


def test_copies_of_killed_processes_are_removed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A copy in use is locked and stays; a forgotten one goes."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(staging, "STALE", -1)
    forgotten = tmp_path / "neuraxis-run-old"
    forgotten.mkdir()
    with staging.staged(workspace, None, Limits()) as first:
        assert not forgotten.exists()
        with staging.staged(workspace, None, Limits()) as second:
            assert first.exists()
            assert second.exists()


def test_removing_a_folder_spares_what_was_left_out(workspace: Path) -> None:
    """And what came into it meanwhile."""
    with staging.staged(workspace, None, Limits(), ["sub/deep"]) as copy:
        (workspace / "sub" / "theirs.txt").write_text("x", encoding="utf-8")
        shutil.rmtree(copy / "sub")
        (copy / "sub").write_text("a file now", encoding="utf-8")
    assert _tree(workspace) == {
        "a.txt": "a.txt",
        "sub/b.txt": "sub/b.txt",
        "sub/deep/c.txt": "sub/deep/c.txt",
        "sub/theirs.txt": "x",
    }
    with staging.staged(workspace, None, Limits(), ["sub/deep"]) as copy:
        shutil.rmtree(copy / "sub")
    assert sorted(_tree(workspace)) == ["a.txt", "sub/deep/c.txt"]


def test_guarded_names_stay_out(workspace: Path) -> None:
    """They are neither copied nor brought back."""
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("original", encoding="utf-8")
    with staging.staged(workspace, None, Limits(), ["sub"]) as copy:
        assert sorted(os.listdir(copy)) == ["a.txt"]
        (copy / ".git").mkdir()
        (copy / ".git" / "config").write_text("changed", encoding="utf-8")
        (copy / "neuraxis.toml").write_text("x = 1", encoding="utf-8")
        (copy / "sub").mkdir()
        (copy / "sub" / "b.txt").write_text("changed", encoding="utf-8")
    found = _tree(workspace)
    assert found[".git/config"] == "original"
    assert found["sub/b.txt"] == "sub/b.txt"
    assert "neuraxis.toml" not in found


def test_no_more_comes_back_than_the_limits_allow(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes (sparse ones too) and files; the log says what is missing."""
    limits = Limits(disk=1000, files=50)
    with staging.staged(workspace, None, limits) as copy:
        (copy / "large").write_bytes(b"")
        os.truncate(copy / "large", 5000)
        (copy / "small").write_bytes(b"x" * 500)
    assert (workspace / "small").exists()
    assert not (workspace / "large").exists()
    assert "not brought back" in caplog.text


def test_a_workspace_too_large_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence says what to do."""
    monkeypatch.setattr(staging, "MOST_FILES", 2)
    with (
        pytest.raises(CannotStart, match="use a folder with less in it"),
        staging.staged(workspace, None, Limits()),
    ):
        raise AssertionError("it was copied")


def test_m7_a_script_neither_reads_nor_writes_settings_at_any_depth(
    workspace: Path,
) -> None:
    """M7: `.env`, hooks, and settings of editors stay as they are; others come."""
    names = (".env", ".envrc", ".vscode/tasks.json", "sub/.git/hooks/pre-commit")
    for name in names:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("mine")
    (workspace / ".gitignore").write_text("mine")
    with staging.staged(workspace, None, Limits()) as copy:
        assert not [name for name in names if (copy / name).exists()]
        for name in (*names, ".gitlab-ci.yml", "sub/.github/ci.yml", ".gitignore"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text("theirs")
    assert {(workspace / name).read_text() for name in names} == {"mine"}
    assert not (workspace / ".gitlab-ci.yml").exists()
    assert not (workspace / "sub/.github").exists()
    assert (workspace / ".gitignore").read_text() == "theirs"
