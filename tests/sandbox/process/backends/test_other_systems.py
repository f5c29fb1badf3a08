"""The back ends that this machine cannot run: what they would be told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import neuraxis
from neuraxis.sandbox.process import interpreter
from neuraxis.sandbox.process.backends import docker, seatbelt
from neuraxis.sandbox.process.job import HERE, CannotStart, Job, Limits
from sandbox_runs import run_script

posix = pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")


_WINDOWS = """\
import os, sys, json, pathlib
import subprocess, tempfile, shutil, signal, select, socket
for name in ('fcntl', 'resource', 'pwd', 'grp', 'termios'): sys.modules[name] = None
kept = ('RDONLY', 'WRONLY', 'CREAT', 'EXCL', 'RDWR', 'TRUNC')
# O_CLOEXEC is what `subprocess` itself needs here.
for name in dir(os):
    if name.startswith('O_') and name[2:] not in (*kept, 'CLOEXEC'): delattr(os, name)
for name in ('geteuid', 'getegid', 'getuid', 'uname', 'sysconf', 'pidfd_open', 'mkfifo',
             'fork', 'setsid', 'killpg', 'chown', 'statvfs', 'set_blocking'):
    delattr(os, name)
killed = signal.SIGKILL
for name in ('SIGKILL', 'SIGSTOP', 'SIGXCPU', 'SIGSYS', 'SIGHUP'): delattr(signal, name)
del select.select, select.poll
sys.modules[pathlib.Path.__module__].WindowsPath = pathlib.PosixPath
shutil._use_fd_functions = False
shutil._rmtree_impl = shutil._rmtree_unsafe  # the same, since Python 3.13
import neuraxis.sandbox.process.run as process
from neuraxis.sandbox.process.job import Limits
process.usage._PROC = '/nowhere'
signal.SIGKILL = killed  # which `subprocess` itself needs here
os.name = 'nt'
mode, seconds = sys.argv[1], float(sys.argv[2])
print(json.dumps(process.probe()[0].detail))
outcome = process.run_python('x.py', workspace=pathlib.Path(os.getcwd()), mode=mode,
    limits=Limits(seconds=seconds, disk=1 << 20, files=200))
print(json.dumps([outcome.exit_code, outcome.stdout, outcome.stderr, outcome.reason]))
"""
"""A run with what Windows has not taken away."""
_DOCKER = """\
import os, sys
if sys.argv[1] == 'rm': sys.exit()
words = ' '.join(sys.argv)
folder = words.split('source=')[1].split(',')[0]
assert '--user 65534:65534' in words
at = sys.argv.index('python3')
script = [word.replace('/workspace', folder) for word in sys.argv[at + 1 :]]
os.chdir(folder)
os.execv(sys.executable, [sys.executable, *script])
"""
"""A program that takes Docker's options and holds nothing."""


@pytest.fixture
def docker_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, and the stand-in for Docker on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "docker.py").write_text(_DOCKER, encoding="utf-8")
    program = folder / "docker"
    line = f'#!/bin/sh\nexec {sys.executable} {folder}/docker.py "$@"\n'
    program.write_text(line, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


def _on_windows(
    workspace: Path, script: str, mode: str = "docker", seconds: int = 20
) -> tuple[int | None, str, str, str]:
    (workspace / "x.py").write_text(script, encoding="utf-8")
    source = str(Path(neuraxis.__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", _WINDOWS, mode, str(seconds)],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    probed, told = map(json.loads, done.stdout.splitlines())
    assert probed == "not for this system"
    code, out, err, reason = told
    return code, out, err, reason


@pytest.mark.parametrize("mode", ["auto", "bubblewrap", "none", "wasi"])
def test_windows_is_told_what_to_use(tmp_path: Path, mode: str) -> None:
    """It is refused when a script is to run, not when the package is loaded."""
    *_, reason = _on_windows(tmp_path, "print(1)", mode)
    assert reason == (
        "It was not run: this system has no sandbox of its own for scripts: set "
        'sandbox.mode = "docker", or use Linux (WSL2 has it) or macOS.'
    )


@posix
def test_docker_runs_on_windows(docker_stand_in: Path) -> None:
    """With nothing that only POSIX has: output, errors, files, exit code."""
    script = (
        "import sys\nprint('out é' * 9000)\nprint('err', file=sys.stderr)\n"
        "open('made', 'w').close()\nsys.exit(7)"
    )
    code, out, err, reason = _on_windows(docker_stand_in, script)
    assert (code, out, err, reason) == (7, "out é" * 9000 + "\n", "err\n", "")
    assert (docker_stand_in / "made").exists()
    *_, reason = _on_windows(docker_stand_in, "raise SystemExit(137)")
    assert reason == "It was killed (signal 9)."


@posix
@pytest.mark.parametrize(
    ("script", "seconds", "reason"),
    [
        ("import time; time.sleep(30)", 1, "did not end within 1 second"),
        ("while True: print('x' * 65536)", 20, "more than 1,048,576 bytes of output"),
        ("open('f', 'wb').write(bytes(2 << 20))", 20, "more than 1 MiB into"),
        (
            "for n in range(400): open(f'f{n}', 'w').close()\n"
            "import time; time.sleep(9)",
            20,
            "more than 200 files",
        ),
        (
            "import os\nfor n in range(110): os.mkdir('d'); os.chdir('d')",
            20,
            "nested more than 100 folders",
        ),
    ],
    ids=["time", "output", "disk", "files", "depth"],
)
def test_the_limits_hold_on_windows(
    docker_stand_in: Path, script: str, seconds: int, reason: str
) -> None:
    """Those that the runtime watches, with the same sentences."""
    assert reason in _on_windows(docker_stand_in, script, seconds=seconds)[3]


@posix
def test_what_is_obeyed_outside_is_kept_on_windows(docker_stand_in: Path) -> None:
    """What a script makes is removed; what is there already is a refusal."""
    script = "import os; os.makedirs('.git/hooks')"
    assert "It made .git" in _on_windows(docker_stand_in, script)[3]
    assert not (docker_stand_in / ".git").exists()
    (docker_stand_in / "neuraxis.toml").touch()
    *_, reason = _on_windows(docker_stand_in, "print(1)")
    assert "neuraxis.toml in the workspace cannot be kept" in reason


@posix
def test_docker_never_gets_what_is_obeyed_outside(
    docker_stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot keep a part of its folder from a script: that runs on a copy."""
    for name in ("geteuid", "getegid"):
        monkeypatch.setattr(os, name, lambda: 65534)
    hook = docker_stand_in / ".git/hooks"
    hook.mkdir(parents=True)
    outcome = run_script(
        docker_stand_in, "import os; print(os.path.exists('.git'))", "docker"
    )
    assert outcome.stdout == "False\n", outcome


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
