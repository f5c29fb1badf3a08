"""Running scripts, through the public function, in the sandboxes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

import neuraxis
from neuraxis.sandbox.process.job import Limits, Outcome
from neuraxis.sandbox.process.run import run_python
from sandbox_runs import SHORT, run_script

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has a sandbox that tests can run"
)


def test_a_script_runs_in_its_workspace(tmp_path: Path, kind: str) -> None:
    """Its output, its errors and its files are there; the outcome says what held it."""
    outcome = run_script(
        tmp_path,
        "import sys\nprint('out', sys.argv[1:])\nprint('err', file=sys.stderr)\n"
        "open('made.txt', 'w').write('x')",
        kind,
        args=["a", "b c"],
    )
    assert outcome.ok
    assert (outcome.exit_code, outcome.reason) == (0, "")
    assert outcome.stdout == "out ['a', 'b c']\n"
    assert outcome.stderr == "err\n"
    assert outcome.sandbox == kind
    made = tmp_path / "made.txt"
    assert made.read_text(encoding="utf-8") == "x"
    assert made.stat().st_uid == os.geteuid()


def test_arguments_arrive_as_they_are(tmp_path: Path, kind: str) -> None:
    """Also odd ones; what no command line can hold is refused."""
    odd = ["", " ", "--", "-c", "{workspace}", "$HOME", "a\nb", "ž🐍", "x" * 5000]
    outcome = run_script(
        tmp_path, "import sys; print(ascii(sys.argv[1:]))", kind, args=odd
    )
    assert outcome.stdout == ascii(odd) + "\n"
    for bad in ("a\0b", "\ud800"):
        refused = run_script(tmp_path, "print(1)", kind, args=[bad])
        assert "a character that no argument can" in refused.reason
    assert run_python("\ud800.py", workspace=tmp_path).sandbox == "none: refused"


def test_a_failing_script_tells_its_exit_code(tmp_path: Path, kind: str) -> None:
    """A traceback is the script's own matter: no reason of ours."""
    outcome = run_script(tmp_path, "1 / 0", kind)
    assert (outcome.ok, outcome.exit_code, outcome.reason) == (False, 1, "")
    assert "ZeroDivisionError" in outcome.stderr
    assert run_script(tmp_path, "raise SystemExit(7)", kind).exit_code == 7


def test_the_environment_is_empty(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: nothing of the runtime's environment passes."""
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("PYTHONPATH", "/of/the/runtime")
    outcome = run_script(tmp_path, "import os; print(sorted(os.environ))", kind)
    allowed = {
        *("HOME", "LANG", "LOGNAME", "PATH", "PWD", "TMPDIR", "USER", "LC_CTYPE"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    }
    assert outcome.ok
    names = {part.strip(" '[]\n") for part in outcome.stdout.split(",")}
    if kind == "landlock":  # where its Python finds locks without /dev/shm
        script = "import os; print(os.environ['PYTHONPATH'])"
        path = Path(run_script(tmp_path, script, kind).stdout.strip())
        assert [file.name for file in path.glob("*.py")] == ["sitecustomize.py"]
        allowed.add("PYTHONPATH")
    assert names <= allowed


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        ("while True: pass", Limits(seconds=0.5), "did not end within 0.5 seconds"),
        (
            "while True: pass",
            Limits(seconds=9, cpu_seconds=1),
            "more than 1 second of processor time",
        ),
        (
            "import sys\nwhile True: sys.stdout.write('x' * 65536)",
            Limits(seconds=9),
            "more than 1,048,576 bytes of output",
        ),
        (
            "b = []\nwhile True: b.append(bytearray(b'x') * 4_000_000)",
            Limits(seconds=9, memory=100 * 1024 * 1024),
            "more than 100 MiB of memory",
        ),
        (
            "for n in range(60): open(f'f{n}', 'wb').write(bytes(4_000_000))\n"
            "import time; time.sleep(3)",
            Limits(seconds=9, disk=20 * 1024 * 1024),
            "more than 20 MiB into the workspace",
        ),
        (
            "for n in range(400): open(f'f{n}', 'wb').close()\n"
            "import time; time.sleep(3)",
            Limits(seconds=9, files=100),
            "more than 100 files",
        ),
    ],
    ids=["wall", "processor", "output", "memory", "disk", "files"],
)
def test_a_limit_stops_it_and_says_which(
    tmp_path: Path, kind: str, script: str, limits: Limits, reason: str
) -> None:
    """S6: a failed outcome with one sentence, and the runtime goes on."""
    outcome = run_script(tmp_path, script, kind, limits=limits)
    assert not outcome.ok
    assert outcome.exit_code is None
    assert reason in outcome.reason
    assert outcome.seconds < 9
    assert run_script(tmp_path, "print(1)", kind).ok


def test_disk_is_bounded_after_the_end_too(tmp_path: Path, kind: str) -> None:
    """What was written between two looks is seen at the end."""
    outcome = run_script(
        tmp_path,
        "open('f', 'wb').write(bytes(9_000_000))",
        kind,
        limits=replace(SHORT, disk=4_000_000),
    )
    assert not outcome.ok
    assert "into the workspace" in outcome.reason


def test_a_grandchild_that_holds_the_output_does_not_hold_the_call(
    tmp_path: Path, kind: str
) -> None:
    """The call ends 0.2 s after the script at the latest (finding 10)."""
    outcome = run_script(
        tmp_path,
        "import subprocess\nsubprocess.Popen(['sleep', '30'])\nprint('done')",
        kind,
    )
    assert outcome.ok
    assert outcome.stdout == "done\n"
    assert outcome.seconds < 3


def test_cancelling_kills_it_at_once(tmp_path: Path, kind: str) -> None:
    """S7: the event ends the whole tree."""
    cancelled = threading.Event()
    threading.Timer(0.4, cancelled.set).start()
    outcome = run_script(
        tmp_path,
        "import os, time\nos.fork()\nprint('up', flush=True)\ntime.sleep(30)",
        kind,
        cancelled=cancelled,
        limits=Limits(seconds=20),
    )
    assert (outcome.ok, outcome.reason) == (False, "It was cancelled and stopped.")
    assert outcome.seconds < 3


def test_output_comes_as_it_is_written(tmp_path: Path, kind: str) -> None:
    """Pieces arrive while the script runs, and a character is never cut in two."""
    came: list[tuple[float, str]] = []
    begun = time.monotonic()
    outcome = run_script(
        tmp_path,
        "import time, sys\nprint('first', flush=True); time.sleep(0.6)\n"
        "sys.stdout.buffer.write('é'.encode()[:1]); sys.stdout.buffer.flush()\n"
        "time.sleep(0.1); sys.stdout.buffer.write('é'.encode()[1:])",
        kind,
        on_output=lambda text: came.append((time.monotonic() - begun, text)),
    )
    assert "".join(text for _, text in came) == outcome.stdout == "first\né"
    assert came[0][1].startswith("first")
    assert came[-1][0] - came[0][0] > 0.4


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path, kind: str) -> None:
    """Output is decoded as UTF-8; what is not is shown as U+FFFD."""
    outcome = run_script(tmp_path, "import os; os.write(1, b'a\\xff\\xfeb')", kind)
    assert outcome.stdout == "a\ufffd\ufffdb"


def test_runs_beside_each_other_do_not_meet(tmp_path: Path, kind: str) -> None:
    """S40: two sessions share no temporary file and no process."""
    script = (
        "import os, sys, time\n"
        "for folder in ('/tmp', '/dev/shm'):\n"
        "    try: open(folder + '/nx-met', 'x').close()\n"
        "    except FileExistsError: print('MET')\n"
        "    except OSError: pass\n"
        "time.sleep(0.5)\nprint('ok')"
    )
    outcomes: list[Outcome] = []
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    threads = [
        threading.Thread(
            target=lambda f=folder: outcomes.append(run_script(f, script, kind))
        )
        for folder in folders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.stdout for outcome in outcomes] == ["ok\n", "ok\n"]


def test_the_script_dies_with_the_runtime(tmp_path: Path, kind: str) -> None:
    """S8: after SIGKILL of the runtime nothing of the script lives on."""
    mark = f"nx-mark-{os.urandom(6).hex()}"
    (tmp_path / "script.py").write_text(
        "import os, sys, time\n"
        "if os.fork() == 0: os.execv('/bin/sleep', ['sleep', '31.7', ])\n"
        "print('up', flush=True)\ntime.sleep(30)",
        encoding="utf-8",
    )
    code = (
        "import pathlib, sys\n"
        "from neuraxis.sandbox.process.run import run_python, Limits\n"
        f"run_python('script.py', workspace=pathlib.Path({str(tmp_path)!r}),\n"
        f"    mode={kind!r}, args=[{mark!r}], limits=Limits(seconds=40),\n"
        "    on_output=lambda text: print(text, flush=True))"
    )
    source = str(Path(neuraxis.__file__).resolve().parent.parent)
    runtime = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert runtime.stdout is not None
    with runtime.stdout:
        assert runtime.stdout.readline() == b"up\n"
        assert _with(mark)
        runtime.send_signal(signal.SIGKILL)
        runtime.wait()
        deadline = time.monotonic() + 5
        while _with(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _with(mark) == []


def _with(mark: str) -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(folder.name)
    return found


def test_nothing_is_left_after_many_runs(tmp_path: Path, kind: str) -> None:
    """S7: no descriptor, no process, no temporary folder."""
    run_script(tmp_path, "print(1)", kind)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        assert run_script(tmp_path, "print(1)", kind).ok
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX has such descriptors")
def test_a_program_with_many_open_files_can_run_a_script(
    tmp_path: Path, kind: str
) -> None:
    """Descriptors above 1023 are no trouble: a server may have that many."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4000:
        pytest.skip("so many files cannot be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4000), hard))
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        outcome = run_script(tmp_path, "print('done')", kind)
    finally:
        for descriptor in many:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (outcome.ok, outcome.stdout) == (True, "done\n")
