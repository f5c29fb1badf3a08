"""The back ends that this machine cannot run: what they would be told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from neuraxis.sandbox.process import interpreter
from neuraxis.sandbox.process.backends import docker, seatbelt
from neuraxis.sandbox.process.job import HERE, CannotStart, Job, Limits


def test_windows_can_import_it() -> None:
    """There it is refused when a script is to run, not when the package is loaded."""
    code = (
        "import os, sys\n"
        "import subprocess, tempfile, shutil, signal, select, socket\n"
        "for name in ('fcntl', 'resource', 'pwd', 'grp'): sys.modules[name] = None\n"
        "for name in dir(os):\n"
        "    if name.startswith('O_') and name not in "
        "('O_RDONLY', 'O_WRONLY', 'O_CREAT', 'O_EXCL', 'O_RDWR', 'O_TRUNC'):\n"
        "        delattr(os, name)\n"
        "for name in ('geteuid', 'uname', 'sysconf', 'pidfd_open', 'mkfifo'):\n"
        "    delattr(os, name)\n"
        "for name in ('SIGKILL', 'SIGSTOP', 'SIGXCPU', 'SIGSYS'):\n"
        "    delattr(signal, name)\n"
        "import neuraxis.sandbox.process.run as process, pathlib\n"
        "folder = pathlib.Path(os.getcwd())\n"
        "os.name = 'nt'\n"
        "print(process.run_python('x.py', workspace=folder).reason)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("It was not run: there is no sandbox"), done.stderr


def _job(workspace: Path, *, network: bool = False) -> Job:
    return Job(
        argv=(interpreter.python(), HERE + "/s.py"),
        roots=(Path("/opt/python"),),
        workspace=workspace,
        limits=Limits(),
        network=network,
    )


def test_the_profile_refuses_what_it_does_not_name(tmp_path: Path) -> None:
    """macOS: writing in the workspace only, no network unless asked for."""
    text = seatbelt.profile(_job(tmp_path))
    assert text.splitlines()[:2] == ["(version 1)", "(deny default)"]
    assert f'(allow file-write* (subpath "{tmp_path}"))' in text
    assert "network" not in text
    assert "network-outbound" in seatbelt.profile(_job(tmp_path, network=True))


def test_a_path_cannot_end_the_profile(tmp_path: Path) -> None:
    """A quotation mark in a folder's name would open the rules."""
    with pytest.raises(CannotStart, match="cannot be written"):
        seatbelt.profile(_job(tmp_path / 'a") (allow default) ("'))


@pytest.mark.skipif(sys.platform == "darwin", reason="this is macOS")
def test_seatbelt_is_for_macos(tmp_path: Path) -> None:
    """Elsewhere it is refused with that reason."""
    with pytest.raises(CannotStart, match="macOS only"):
        seatbelt.prepare(_job(tmp_path))


def test_docker_is_told_every_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network, no privileges, nothing pulled; the container has a name to remove."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    workspace = tmp_path / "ws"
    launch = docker.prepare(_job(workspace))
    words = " ".join(launch.argv)
    for part in (
        "--network none",
        "--read-only",
        "--pull never",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--pids-limit 64",
        "--memory 536870912 --memory-swap 536870912",
        f"type=bind,source={workspace},target=/workspace",
    ):
        assert part in words
    assert launch.argv[-3:] == (docker.IMAGE, "python3", "/workspace/s.py")
    assert launch.close is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStart, match="neither docker nor podman"):
        docker.prepare(_job(workspace))
