"""Which bubblewrap is trusted, and what it is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuraxis.sandbox.process import interpreter, select
from neuraxis.sandbox.process.backends import bubblewrap
from neuraxis.sandbox.process.job import HERE, CannotStart, Job, Limits


def _fake(folder: Path, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\nexit 0\n", encoding="ascii")
    program.chmod(mode)
    return program


def test_S10_none_of_the_workspace_or_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake program there, a relative PATH entry and an empty one are passed over."""
    workspace, here, good = tmp_path / "ws", tmp_path / "here", tmp_path / "good"
    for folder in (workspace / "bin", here, here / "bin"):
        _fake(folder)
    monkeypatch.chdir(here)
    bad = [".", "", "bin", str(workspace / "bin"), str(here), str(here / "bin")]
    monkeypatch.setenv("PATH", os.pathsep.join(bad))
    with pytest.raises(CannotStart, match=r"not taken: .*workspace or the current"):
        bubblewrap.find(workspace)
    program = _fake(good)
    monkeypatch.setenv("PATH", os.pathsep.join([*bad, str(good)]))
    assert bubblewrap.find(workspace) == str(program)


def test_S10_no_link_that_leads_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link elsewhere to a program in the workspace, and one from it to elsewhere."""
    workspace, outside = tmp_path / "ws", tmp_path / "bin"
    outside.mkdir()
    (outside / "bwrap").symlink_to(_fake(workspace))
    monkeypatch.setenv("PATH", str(outside))
    with pytest.raises(CannotStart, match="not taken"):
        bubblewrap.find(workspace)
    (workspace / "bwrap").unlink()
    (workspace / "bwrap").symlink_to(_fake(tmp_path / "good"))
    monkeypatch.setenv("PATH", str(workspace))
    with pytest.raises(CannotStart, match="not taken"):
        bubblewrap.find(workspace)


def test_none_that_everybody_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program others could have changed is not run."""
    monkeypatch.chdir("/")
    _fake(tmp_path / "bin", 0o757)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(CannotStart, match="others could have changed"):
        bubblewrap.find(tmp_path / "ws")


def test_one_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """The version is asked for, and stands in the sentence."""
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.4.1\n", encoding="ascii")
    old.chmod(0o755)
    with pytest.raises(CannotStart, match=r"version 0\.4; 0\.5 or newer"):
        bubblewrap.check(str(old))


def _job(workspace: Path, roots: tuple[Path, ...] = ()) -> Job:
    return Job(
        argv=("python", HERE + "/s.py"),
        roots=roots,
        workspace=workspace,
        limits=Limits(),
    )


def test_an_interpreter_in_the_workspace_stays_as_it_is(tmp_path: Path) -> None:
    """Its folder is bound read only, after the workspace."""
    venv = tmp_path / ".venv"
    args = bubblewrap.arguments(_job(tmp_path, (venv,)), {venv: str(venv)}, 9, 8)
    place = args.index("/workspace/.venv")
    assert args[place - 2 : place] == ["--ro-bind", str(venv)]
    assert place > args.index("--bind")


def test_finding_8_interpreters_are_bound_after_tmp(tmp_path: Path) -> None:
    """A venv below /tmp would vanish under the fresh /tmp."""
    venv = Path("/tmp/somewhere/venv")
    args = bubblewrap.arguments(_job(tmp_path, (venv,)), {venv: str(venv)}, 9, 8)
    assert args.index(str(venv)) > args.index("/tmp")


def test_no_network_unless_asked_for(tmp_path: Path) -> None:
    """`--share-net` and the resolver's file come with the network only."""
    args = bubblewrap.arguments(_job(tmp_path), {}, 9, 8)
    assert "--share-net" not in args
    assert "/etc/resolv.conf" not in args


def test_a_home_is_never_an_interpreters_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything of such a folder could be read by a script."""
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(CannotStart, match="which a script must not read"):
        interpreter.roots()


def test_the_chain_goes_on_when_bubblewrap_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, Landlock holds the run, or nothing is run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    select._try.cache_clear()
    try:
        if not select._try("landlock", 65534).works:
            pytest.skip("no Landlock here")
        assert select.choose("auto", allow_none=False, uid=65534) == "landlock"
    finally:
        select._try.cache_clear()
