"""Running scripts, through the public function, in the sandbox this machine has."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import neuraxis
from neuraxis.sandbox import bubblewrap, chain, landlock, process, running
from neuraxis.sandbox.process import Limits, Outcome, probe, run_python

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has a sandbox that tests can run"
)
KINDS = ("bubblewrap", "landlock")
SHORT = Limits(seconds=5, cpu_seconds=5)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of sandbox that works here."""
    for found in probe():
        if found.kind == request.param and not found.works:
            pytest.skip(f"{found.kind}: {found.detail}")
    return str(request.param)


def _run(folder: Path, script: str, kind: str = "auto", **options: object) -> Outcome:
    (folder / "script.py").write_text(script, encoding="utf-8")
    given = {"limits": SHORT, "mode": kind, **options}
    return run_python("script.py", workspace=folder, **given)  # type: ignore[arg-type]


def test_a_script_runs_in_its_workspace(tmp_path: Path, kind: str) -> None:
    """Its output, its errors and its files are there; the outcome says what held it."""
    outcome = _run(
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
    outcome = _run(tmp_path, "import sys; print(ascii(sys.argv[1:]))", kind, args=odd)
    assert outcome.stdout == ascii(odd) + "\n"
    for bad in ("a\0b", "\ud800"):
        refused = _run(tmp_path, "print(1)", kind, args=[bad])
        assert "a character that no argument can" in refused.reason
    assert run_python("\ud800.py", workspace=tmp_path).sandbox == "none: refused"


def test_a_failing_script_tells_its_exit_code(tmp_path: Path, kind: str) -> None:
    """A traceback is the script's own matter: no reason of ours."""
    outcome = _run(tmp_path, "1 / 0", kind)
    assert (outcome.ok, outcome.exit_code, outcome.reason) == (False, 1, "")
    assert "ZeroDivisionError" in outcome.stderr
    assert _run(tmp_path, "raise SystemExit(7)", kind).exit_code == 7


def test_the_environment_is_empty(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5: nothing of the runtime's environment passes."""
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    outcome = _run(tmp_path, "import os; print(sorted(os.environ))", kind)
    allowed = {
        *("HOME", "LANG", "LOGNAME", "PATH", "PWD", "TMPDIR", "USER", "LC_CTYPE"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    }
    assert outcome.ok
    names = {part.strip(" '[]\n") for part in outcome.stdout.split(",")}
    assert names <= allowed


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        ("while True: pass", Limits(seconds=0.5), "did not end within 0.5 seconds"),
        (
            "while True: pass",
            Limits(seconds=9, cpu_seconds=1),
            "more than 1 seconds of processor time",
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
    outcome = _run(tmp_path, script, kind, limits=limits)
    assert not outcome.ok
    assert outcome.exit_code is None
    assert reason in outcome.reason
    assert outcome.seconds < 9
    assert _run(tmp_path, "print(1)", kind).ok


def test_disk_is_bounded_after_the_end_too(tmp_path: Path, kind: str) -> None:
    """What was written between two looks is seen at the end."""
    outcome = _run(
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
    outcome = _run(
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
    outcome = _run(
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
    outcome = _run(
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
    outcome = _run(tmp_path, "import os; os.write(1, b'a\\xff\\xfeb')", kind)
    assert outcome.stdout == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    "name",
    ["", ".", "../x.py", "/etc/passwd", "sub/../../x.py", "none.py", "a\0b", "folder"],
)
def test_only_files_of_the_workspace_run(tmp_path: Path, name: str) -> None:
    """S13: no path that leads out, no folder, nothing that is not there."""
    (tmp_path / "folder").mkdir()
    outcome = run_python(name, workspace=tmp_path)
    assert (outcome.ok, outcome.sandbox) == (False, "none: refused")
    assert outcome.reason.startswith("It was not run: ")


def test_links_and_pipes_do_not_run(tmp_path: Path) -> None:
    """S13: a link, a folder that is a link, a pipe."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "s.py").write_text("print(1)", encoding="utf-8")
    (tmp_path / "link.py").symlink_to("real/s.py")
    (tmp_path / "folder").symlink_to("real")
    os.mkfifo(tmp_path / "pipe.py")
    for name in ("link.py", "folder/s.py", "pipe.py"):
        assert run_python(name, workspace=tmp_path).sandbox == "none: refused", name


def test_no_sandbox_is_a_refusal_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1: nothing is run, and each kind that was tried is named with its reason."""
    started: list[object] = []
    monkeypatch.setattr(running, "follow", lambda *given: started.append(given))
    monkeypatch.setattr(
        chain,
        "_try",
        lambda kind, uid: process.Probe(kind=kind, works=False, detail=f"no {kind}!"),
    )
    outcome = _run(tmp_path, "print(1)")
    assert not outcome.ok
    assert started == []
    assert "scripts are never run without one" in outcome.reason
    for kind in chain.AUTOMATIC:
        assert f"no {kind}!" in outcome.reason


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("variable", ["", "none"])
def test_none_needs_the_setting_and_the_variable(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    allowed: bool,
    variable: str,
) -> None:
    """S2: either alone is refused; both together are logged and shown."""
    if variable:
        monkeypatch.setenv("NEURAXIS_SANDBOX", variable)
    outcome = _run(tmp_path, "print(1)", "none", allow_none=allowed)
    if allowed and variable:
        assert (outcome.ok, outcome.sandbox) == (True, "limits only")
        assert "without a sandbox" in caplog.text
    else:
        assert (outcome.ok, outcome.sandbox) == (False, "none: refused")


def test_auto_is_never_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2: the variable alone changes nothing for `auto`."""
    monkeypatch.setenv("NEURAXIS_SANDBOX", "none")
    assert _run(tmp_path, "print(1)", allow_none=True).sandbox != "limits only"


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    """The kinds there are stand in the sentence."""
    outcome = _run(tmp_path, "print(1)", "chroot")
    assert "'chroot' is no kind of sandbox; expected one of auto" in outcome.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_root_runs_nothing_itself(tmp_path: Path, kind: str) -> None:
    """S9: inside and outside it is an ordinary user, and root as user is refused."""
    outcome = _run(
        tmp_path,
        "import os; print(os.getresuid(), os.getgroups())\n"
        "print(os.stat('/proc/self').st_uid if os.path.exists('/proc/self') else '')",
        kind,
    )
    assert outcome.ok, outcome
    assert outcome.stdout.startswith("(65534, 65534, 65534)")
    refused = _run(tmp_path, "print(1)", kind, sandbox_uid=0)
    assert "sandbox_uid is the number of an ordinary user" in refused.reason


def test_files_that_are_obeyed_outside_are_kept(tmp_path: Path, kind: str) -> None:
    """A script neither changes nor makes `.git` and the settings file."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("original", encoding="utf-8")
    outcome = _run(
        tmp_path,
        "import os\n"
        "os.makedirs('.git', exist_ok=True)\n"
        "try: open('.git/config', 'w').write('changed')\n"
        "except OSError: pass\n"
        "open('neuraxis.toml', 'w').write('x = 1')",
        kind,
    )
    assert not (tmp_path / "neuraxis.toml").exists()
    config = tmp_path / ".git" / "config"
    assert config.read_text(encoding="utf-8") == "original"
    assert not outcome.ok
    assert "It made " in outcome.reason


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
        threading.Thread(target=lambda f=folder: outcomes.append(_run(f, script, kind)))
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
        "from neuraxis.sandbox.process import run_python, Limits\n"
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
    _run(tmp_path, "print(1)", kind)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        assert _run(tmp_path, "print(1)", kind).ok
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_only_when_asked_for(
    tmp_path: Path, kind: str, network: bool
) -> None:
    """S4: loopback stands for it; sockets of this machine's programs stay closed."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
    ):
        name = f"nx-{os.urandom(6).hex()}"
        local.bind("\0" + name)
        local.listen()
        outcome = _run(
            tmp_path,
            "import socket\n"
            "def reach(what, place):\n"
            "    try: socket.socket(what).connect(place); print('reached')\n"
            "    except OSError: print('not')\n"
            f"reach(socket.AF_INET, ('127.0.0.1', {server.getsockname()[1]}))\n"
            f"reach(socket.AF_UNIX, '\\0{name}')",
            kind,
            network=network,
        )
    assert outcome.stdout.split() == ["reached" if network else "not", "not"]


def test_limits_hold_without_the_program_prlimit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where util-linux is missing, the launcher sets them inside."""
    if not probe()[0].works:
        pytest.skip("no bubblewrap here")
    monkeypatch.setattr(bubblewrap, "_LIMITER", "/nowhere/prlimit")
    outcome = _run(
        tmp_path,
        "import resource\n"
        "print(resource.getrlimit(resource.RLIMIT_NPROC),\n"
        "      resource.getrlimit(resource.RLIMIT_NOFILE), __file__)",
        "bubblewrap",
    )
    assert outcome.stdout == "(64, 64) (256, 256) /workspace/script.py\n"


@pytest.mark.parametrize("version", range(1, 8))
def test_older_versions_of_landlock_hold_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """What a kernel does not know is not asked for, and the filter makes up for it."""
    if landlock.abi() < version:
        pytest.skip("this kernel's Landlock is older")
    monkeypatch.setattr(landlock, "abi", lambda: version)
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    secret = outside / "secret"
    secret.write_text("secret", encoding="utf-8")
    tmp_path.chmod(0o755)
    workspace = tmp_path / "ws"
    workspace.mkdir()
    outcome = _run(
        workspace,
        "import os, socket\n"
        f"for act in (lambda: print(open({str(secret)!r}).read()),\n"
        f"            lambda: open({str(outside / 'new')!r}, 'w').close(),\n"
        f"            lambda: os.truncate({str(secret)!r}, 0),\n"
        f"            lambda: os.link({str(secret)!r}, 'mine'),\n"
        "            lambda: socket.socket(),\n"
        f"            lambda: os.kill({os.getpid()}, 0)):\n"
        "    try: act(); print('DONE')\n"
        "    except OSError: pass\n"
        "os.makedirs('a/b'); open('a/f', 'w').write('x'); os.rename('a/f', 'a/g')\n"
        "print('worked')",
        "landlock",
    )
    assert outcome.stdout == "worked\n", outcome
    assert secret.read_text(encoding="utf-8") == "secret"
    assert sorted(os.listdir(outside)) == ["secret"]


def test_probe_tells_of_every_kind() -> None:
    """`doctor` shows each kind with what came of trying it."""
    found = probe()
    assert tuple(entry.kind for entry in found) == chain.AUTOMATIC
    assert all(entry.detail for entry in found)
