"""The copy of a workspace for one run, and what comes back."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from neuraxis.sandbox.files.removal import remove_tree
from neuraxis.sandbox.process import staging
from neuraxis.sandbox.process.copy_out import Choose
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


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The folder of all copies; removed here, since pytest's own removal recurses."""
    folder = Path(tempfile.mkdtemp(prefix="nx-places-"))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert remove_tree(folder) == ""


def _joined(top: Path) -> None:
    """Nest 1,500 folders by joining short chains, as a script can."""
    ends: list[int] = []
    for n in range(25):
        chain = top / f"c{n}" / "/".join("d" * 59)
        chain.mkdir(parents=True)
        (chain / "leaf.txt").write_text("x", encoding="utf-8")
        ends.append(os.open(chain, os.O_RDONLY))
    for n in range(24, 0, -1):
        os.rename(top / f"c{n}", f"c{n}", dst_dir_fd=ends[n - 1])
    for end in ends:
        os.close(end)


def test_D1_folders_nested_without_end_are_cut_off_and_leave_nothing(
    workspace: Path, places: Path
) -> None:
    """Twice; what lies higher comes back, and the rest is named."""
    for number in ("1", "2"):
        told: list[str] = []
        with staging.staged(workspace, None, Limits(), not_kept=told) as copy:
            _joined(copy / "sub" / "deep" if number == "1" else copy)
            (copy / "a.txt").write_text(number, encoding="utf-8")
        assert [one.endswith(": more than 100 nested folders") for one in told] == [
            True
        ]
        assert (workspace / "a.txt").read_text(encoding="utf-8") == number
        assert os.listdir(places) == []
    assert (workspace / "sub/deep/c0" / "/".join("d" * 59) / "leaf.txt").exists()
    # another run, choosing, begins with what the first two left
    with staging.staged(workspace, None, Limits(), choose=lambda *_: {}) as copy:
        assert (copy / "a.txt").read_text(encoding="utf-8") == "2"


def test_D1_a_leftover_of_any_depth_is_cleared(
    workspace: Path, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process that was killed, or of an earlier version."""
    monkeypatch.setattr(staging, "STALE", -1)
    (places / "neuraxis-run-old").mkdir()
    _joined(places / "neuraxis-run-old")
    with staging.staged(workspace, None, Limits()) as copy:
        assert os.listdir(places) == [copy.parent.name]


def test_D1_a_leftover_that_stays_fails_no_run(
    workspace: Path,
    places: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is logged, and the next ones are removed all the same."""
    monkeypatch.setattr(staging, "STALE", -1)
    for name in ("neuraxis-run-bad", "neuraxis-run-good"):
        (places / name).mkdir()

    def remove(place: Path) -> str:
        return "held" if place.name == "neuraxis-run-bad" else remove_tree(place)

    monkeypatch.setattr(staging, "remove_tree", remove)
    with staging.staged(workspace, None, Limits()) as copy:
        (copy / "new.txt").write_text("new", encoding="utf-8")
    assert "neuraxis-run-bad: held" in caplog.text
    assert os.listdir(places) == ["neuraxis-run-bad"]
    assert _tree(workspace)["new.txt"] == "new"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


@pytest.fixture(params=["no choice", "all are chosen"])
def choose(request: pytest.FixtureRequest, workspace: Path) -> Choose | None:
    """Nobody chooses, or all changes are, each with what it replaces."""
    if request.param == "no choice":
        return None
    return lambda changed, copy: {
        path: _digest(workspace / path) for path, _ in changed
    }


def test_R1_a_folder_and_a_file_change_kinds(
    workspace: Path, choose: Choose | None
) -> None:
    """Both come back as what they are now."""
    told: list[str] = []
    with staging.staged(
        workspace, None, Limits(), choose=choose, not_kept=told
    ) as copy:
        shutil.rmtree(copy / "sub")
        (copy / "sub").write_text("a file", encoding="utf-8")
        (copy / "a.txt").unlink()
        (copy / "a.txt").mkdir()
        (copy / "a.txt" / "n").write_text("new", encoding="utf-8")
    assert (_tree(workspace), told) == ({"sub": "a file", "a.txt/n": "new"}, [])


def test_R1_what_a_choice_leaves_out_keeps_its_kind(workspace: Path) -> None:
    """Nothing is deleted for it, and what was chosen is there."""
    seen: list[tuple[str, str]] = []

    def choose(changed: Sequence[tuple[str, str]], copy: Path) -> dict[str, str]:
        seen.extend(changed)
        return {"n.txt": ""}

    before = _tree(workspace)
    with staging.staged(workspace, None, Limits(), choose=choose) as copy:
        shutil.rmtree(copy / "sub")
        (copy / "sub").write_text("a file", encoding="utf-8")
        (copy / "a.txt").unlink()
        (copy / "a.txt").mkdir()
        (copy / "n.txt").write_text("new", encoding="utf-8")
    assert [(path, bool(digest)) for path, digest in seen] == [
        ("a.txt", False),
        ("n.txt", True),
        ("sub", True),
        ("sub/b.txt", False),
        ("sub/deep/c.txt", False),
    ]
    assert _tree(workspace) == {**before, "n.txt": "new"}


def test_R1_a_link_or_pipe_in_the_place_of_something_is_told(workspace: Path) -> None:
    """What was there stays, and is no deletion that somebody is asked about."""
    told: list[str] = []
    before = _tree(workspace)
    (workspace / "theirs").symlink_to("sub")
    with staging.staged(workspace, None, Limits(), choose=_none, not_kept=told) as copy:
        (copy / "a.txt").unlink()
        (copy / "a.txt").symlink_to("/etc/passwd")
        shutil.rmtree(copy / "sub")
        os.mkfifo(copy / "sub")
    assert sorted(told) == [
        '"a.txt": only files and folders are kept',
        '"sub": only files and folders are kept',
    ]
    assert _tree(workspace) == before
    assert (workspace / "theirs").is_symlink()


def _none(changed: Sequence[tuple[str, str]], copy: Path) -> dict[str, str]:
    assert not changed
    return {}


def test_R1_names_that_are_not_utf_8_come_back(workspace: Path) -> None:
    """Where nothing is chosen they are names as any others."""
    with staging.staged(workspace, None, Limits()) as copy:
        (copy / os.fsdecode(b"n\xff")).write_text("new", encoding="utf-8")
    assert (workspace / os.fsdecode(b"n\xff")).read_text(encoding="utf-8") == "new"


def test_R1_what_goes_wrong_on_the_way_back_is_told(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No exception: the script's output is still to be told."""

    def fail(*_: object) -> None:
        raise OSError(5, "the disk is broken")

    monkeypatch.setattr(staging, "bring_back", fail)
    told: list[str] = []
    with staging.staged(workspace, None, Limits(), not_kept=told):
        pass
    assert "the disk is broken" in told[0]
    assert "the disk is broken" in caplog.text
