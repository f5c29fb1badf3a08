"""WASI where the system is no POSIX: the same code, run here without its help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

import neuraxis
from neuraxis.sandbox.process import usage
from neuraxis.sandbox.process.backends.wasi import backend, portable
from neuraxis.sandbox.process.job import HERE, MIB, CannotStart, Job, Limits, Outcome
from wasi_home import wasi_home

pytestmark = pytest.mark.timeout(240)
LONG = Limits(seconds=20)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the compiled Python is."""
    folder = wasi_home()
    monkeypatch.setenv("NEURAXIS_HOME", str(folder))
    return folder


def _job(folder: Path, script: str, limits: Limits = LONG) -> Job:
    (folder / "script.py").write_text(script, encoding="utf-8")
    return Job(
        argv=("python", "-s", "-B", HERE + "/script.py", "a", "b c"),
        roots=backend.roots("", folder),
        workspace=folder,
        limits=limits,
    )


def _run(
    folder: Path,
    script: str,
    limits: Limits = LONG,
    cancelled: threading.Event | None = None,
    on_output: Callable[[str], None] | None = None,
) -> Outcome:
    job = _job(folder, script, limits)
    return portable.run(job, cancelled, on_output, time.monotonic())


def test_it_runs_in_its_workspace(home: Path, tmp_path: Path) -> None:
    """Output and errors apart, arguments, files, exit code, who held it."""
    came: list[str] = []
    outcome = _run(
        tmp_path,
        "import os, sys\nprint('out', sys.argv[1:])\nprint('err', file=sys.stderr)\n"
        "open('made.txt', 'w').write('x')\n"
        "sys.stdout.buffer.write('é'.encode()[:1]); sys.stdout.flush()\n"
        "import time; time.sleep(0.3)\n"
        "sys.stdout.buffer.write('é'.encode()[1:])\nsys.exit(200)",
        on_output=came.append,
    )
    assert (outcome.ok, outcome.exit_code, outcome.reason) == (False, 200, "")
    assert outcome.stdout == "out ['a', 'b c']\né"
    assert outcome.stderr == "err\n"
    assert sorted("".join(came)) == sorted(outcome.stdout + outcome.stderr)
    assert outcome.sandbox == "wasi"
    assert (tmp_path / "made.txt").read_text(encoding="utf-8") == "x"
    assert _run(tmp_path, "print(1)").ok


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        (
            "import time; time.sleep(30)",
            Limits(seconds=1),
            "did not end within 1 seconds",
        ),
        (
            "import sys\nwhile True: sys.stdout.write('x' * 65536)",
            LONG,
            "more than 1,048,576 bytes of output",
        ),
        (
            "import sys\nwhile True: sys.stderr.write('x' * 65536)",
            LONG,
            "more than 1,048,576 bytes of errors",
        ),
        (
            "for n in range(60): open(f'f{n}', 'wb').write(bytes(4_000_000))\n"
            "import time; time.sleep(9)",
            replace(LONG, disk=20 * MIB),
            "more than 20 MiB into the workspace",
        ),
        (
            "open('f', 'wb').write(bytes(9_000_000))",
            replace(LONG, disk=4 * MIB),
            "more than 4 MiB into the workspace",
        ),
        (
            "import os\nfor n in range(400): os.mkdir(f'f{n}')\n"
            "import time; time.sleep(9)",
            replace(LONG, files=100),
            "more than 100 files",
        ),
        (
            "import os\nfor n in range(150): os.mkdir('d'); os.chdir('d')",
            LONG,
            "nested more than 100 folders",
        ),
    ],
    ids=["sleep", "output", "errors", "disk", "disk after", "files", "deep"],
)
def test_a_limit_stops_it(
    home: Path, tmp_path: Path, script: str, limits: Limits, reason: str
) -> None:
    """With the same sentences; a script that is stopped is gone at once."""
    outcome = _run(tmp_path, script, limits)
    assert not outcome.ok
    assert reason in outcome.reason
    assert outcome.seconds < 20
    assert usage.usage(os.getpid()).pids == (os.getpid(),)


def test_memory_is_bounded(home: Path, tmp_path: Path) -> None:
    """By wasmtime: what is too much is a MemoryError inside."""
    outcome = _run(
        tmp_path,
        "b = []\ntry:\n    while True: b.append(bytearray(4_000_000))\n"
        "except MemoryError: n = len(b); b.clear(); print(15 < n < 25, n)",
        replace(LONG, memory=100 * MIB),
    )
    assert outcome.stdout.startswith("True "), outcome


def test_cancelling_ends_it(home: Path, tmp_path: Path) -> None:
    """At once, though it sleeps."""
    cancelled = threading.Event()
    outcome = _run(
        tmp_path,
        "import time; print('up', flush=True); time.sleep(30)",
        cancelled=cancelled,
        on_output=lambda text: cancelled.set(),
    )
    assert outcome.reason == "It was cancelled and stopped."
    assert outcome.exit_code is None


def test_what_others_obey_is_kept_from_it(home: Path, tmp_path: Path) -> None:
    """There is no copy to run it on: such a workspace is refused."""
    made = _run(tmp_path, "import os; os.makedirs('.git/hooks'); print('made')")
    assert (made.ok, made.stdout) == (False, "made\n")
    assert not (tmp_path / ".git").exists()
    (tmp_path / ".git").mkdir()
    with pytest.raises(CannotStart, match="git in the workspace cannot be kept"):
        _run(tmp_path, "print(1)")
    with pytest.raises(CannotStart, match="cannot be kept"):
        _run(home, "print(1)")


def test_what_fails_at_the_start_is_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a refusal, not as the script's own failure."""
    job = _job(tmp_path, "print(1)")
    launch = backend.plain(job)
    broken = replace(launch, argv=(*launch.argv[:-1], "{}"))
    monkeypatch.setattr(backend, "plain", lambda job: broken)
    with pytest.raises(CannotStart, match="could not be set up"):
        portable.run(job, None, None, 0)
    monkeypatch.setattr(backend, "plain", lambda job: replace(launch, argv=("/none",)))
    with pytest.raises(CannotStart, match="cannot be started"):
        portable.run(job, None, None, 0)


@pytest.mark.parametrize(
    "path", ["", "..\\s.py", "C:s.py", "../s.py", "link.py", "sub", "none.py", "l/s.py"]
)
def test_only_a_script_of_the_workspace_is_run(tmp_path: Path, path: str) -> None:
    """Signs of other folders and drives, links and folders are refused."""
    folder = tmp_path / "workspace"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path, folder, folder / "sub"):
        (place / "s.py").write_text("four", encoding="utf-8")
    (folder / "link.py").symlink_to("s.py")
    (folder / "l").symlink_to("sub")
    with pytest.raises(CannotStart):
        portable.check_script(folder, path)
    assert portable.check_script(folder, "s.py") == 4
    assert portable.check_script(folder, "sub/s.py") == 4


def test_it_dies_with_the_runtime(home: Path, tmp_path: Path) -> None:
    """Whoever holds its input open is gone, and then so is it."""
    _job(tmp_path, "import time; print('up', flush=True); time.sleep(30)")
    runtime = _elsewhere(tmp_path, "")
    assert runtime.stdout is not None
    with runtime.stdout:
        assert runtime.stdout.readline() == b"up\n"
        (inner,) = usage.usage(runtime.pid).pids[1:]
        runtime.send_signal(signal.SIGKILL)
        runtime.wait()
        deadline = time.monotonic() + 5
        while Path(f"/proc/{inner}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not Path(f"/proc/{inner}").exists()


def test_it_needs_nothing_that_only_posix_has(home: Path, tmp_path: Path) -> None:
    """Windows has none of these; a run uses none of them."""
    _job(tmp_path, "print('up'); open('made', 'w').close()")
    runtime = _elsewhere(
        tmp_path,
        "import select, signal\n"
        "from neuraxis.sandbox import tree\n"
        "tree.HAS_DIR_FDS = False\n"
        "for name in ('fcntl', 'resource', 'pwd', 'grp', 'termios'):\n"
        "    sys.modules[name] = None\n"
        "kept = ('O_RDONLY', 'O_WRONLY', 'O_CREAT', 'O_EXCL', 'O_RDWR', 'O_TRUNC',\n"
        "        'O_CLOEXEC')\n"  # which `subprocess` needs here
        "for name in dir(os):\n"
        "    if name.startswith('O_') and name not in kept: delattr(os, name)\n"
        "for name in ('geteuid', 'getuid', 'sysconf', 'pidfd_open', 'mkfifo', 'fork',\n"
        "             'setsid', 'killpg', 'chown', 'fchmod', 'fchown', 'sendfile',\n"
        "             'statvfs', 'memfd_create'):\n"
        "    delattr(os, name)\n"
        "for name in ('SIGSTOP', 'SIGXCPU', 'SIGSYS', 'SIGHUP'):\n"
        "    delattr(signal, name)\n"
        "del select.select, select.poll\n",
    )
    told, _ = runtime.communicate(timeout=60)
    assert told.splitlines() == [b"up", b"True"]
    assert (tmp_path / "made").exists()


def _elsewhere(folder: Path, before: str) -> subprocess.Popen[bytes]:
    """The script of the folder, run by a process of its own."""
    code = (
        "import os, sys, time, pathlib, platform\n"
        "from neuraxis.sandbox import portable, wasi\n"
        "from neuraxis.sandbox.process.job import HERE, Job, Limits\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "platform.machine()\n" + before + "portable.check_script(folder, 'script.py')\n"
        "job = Job(argv=('python', HERE + '/script.py'), workspace=folder,\n"
        "    roots=wasi.roots('', folder), limits=Limits(seconds=40))\n"
        "outcome = portable.run(\n"
        "    job, None, lambda text: print(text, end='', flush=True), 0)\n"
        "print(outcome.ok)"
    )
    source = str(Path(neuraxis.__file__).resolve().parent.parent)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
