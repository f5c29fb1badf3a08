"""What is refused, what is kept from scripts, and which sandbox is chosen."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from neuraxis.sandbox.process import run, select, supervise
from neuraxis.sandbox.process.backends import bubblewrap, landlock
from neuraxis.sandbox.process.run import probe, run_python
from sandbox_runs import run_script

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has a sandbox that tests can run"
)


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
    monkeypatch.setattr(supervise, "follow", lambda *given: started.append(given))
    monkeypatch.setattr(
        select,
        "_try",
        lambda kind, uid: run.Probe(kind=kind, works=False, detail=f"no {kind}!"),
    )
    outcome = run_script(tmp_path, "print(1)")
    assert not outcome.ok
    assert started == []
    assert "scripts are never run without one" in outcome.reason
    for kind in select.AUTOMATIC:
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
    outcome = run_script(tmp_path, "print(1)", "none", allow_none=allowed)
    if allowed and variable:
        assert (outcome.ok, outcome.sandbox) == (True, "limits only")
        assert "without a sandbox" in caplog.text
    else:
        assert (outcome.ok, outcome.sandbox) == (False, "none: refused")
        # all three are named: with two of them it would be refused again
        assert 'sandbox.mode = "none" and sandbox.allow_none = true' in outcome.reason
        assert "NEURAXIS_SANDBOX=none" in outcome.reason


def test_auto_is_never_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2: the variable alone changes nothing for `auto`."""
    monkeypatch.setenv("NEURAXIS_SANDBOX", "none")
    assert run_script(tmp_path, "print(1)", allow_none=True).sandbox != "limits only"


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    """The kinds there are stand in the sentence."""
    outcome = run_script(tmp_path, "print(1)", "chroot")
    assert "'chroot' is no kind of sandbox; expected one of auto" in outcome.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_root_runs_nothing_itself(tmp_path: Path, kind: str) -> None:
    """S9: inside and outside it is an ordinary user, and root as user is refused."""
    outcome = run_script(
        tmp_path,
        "import os; print(os.getresuid(), os.getgroups())\n"
        "print(os.stat('/proc/self').st_uid if os.path.exists('/proc/self') else '')",
        kind,
    )
    assert outcome.ok, outcome
    assert outcome.stdout.startswith("(65534, 65534, 65534)")
    refused = run_script(tmp_path, "print(1)", kind, sandbox_uid=0)
    assert "sandbox_uid is the number of an ordinary user" in refused.reason


def test_files_that_are_obeyed_outside_are_kept(tmp_path: Path, kind: str) -> None:
    """A script neither changes nor makes `.git`, the settings and the lock file."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("original", encoding="utf-8")
    outcome = run_script(
        tmp_path,
        "import os\n"
        "os.makedirs('.git', exist_ok=True)\n"
        "try: open('.git/config', 'w').write('changed')\n"
        "except OSError: pass\n"
        "open('neuraxis.toml', 'w').write('x = 1')\n"
        "open('neuraxis.lock.json', 'w').write('{}')",
        kind,
    )
    assert not (tmp_path / "neuraxis.toml").exists()
    assert not (tmp_path / "neuraxis.lock.json").exists()
    config = tmp_path / ".git" / "config"
    assert config.read_text(encoding="utf-8") == "original"
    assert not outcome.ok
    assert "It made " in outcome.reason


@pytest.mark.parametrize("place", [".venv", "env/venv"])
def test_an_interpreter_in_the_workspace_cannot_be_changed(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A venv of the workspace stays as it is, and scripts run all the same."""
    venv = tmp_path / place
    venv.mkdir(parents=True)
    (venv / "lib.py").write_text("original", encoding="utf-8")
    monkeypatch.setattr("sys.exec_prefix", str(venv))
    outcome = run_script(
        tmp_path,
        "import os\n"
        f"place = {place!r}\n"
        f"for path in ({str(venv / 'lib.py')!r}, place + '/lib.py'):\n"
        "    try: open(path, 'w').write('changed')\n"
        "    except OSError: pass\n"
        "top = place.split('/')[0]\n"
        "try:\n"
        "    os.rename(top, 'old'); os.makedirs(place)\n"
        "    open(place + '/lib.py', 'w').write('changed')\n"
        "except OSError: pass\n"
        "print('ran')",
        kind,
    )
    assert (outcome.ok, outcome.stdout) == (True, "ran\n"), outcome
    assert (venv / "lib.py").read_text(encoding="utf-8") == "original"


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
        outcome = run_script(
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
    outcome = run_script(
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
    outcome = run_script(
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
    assert tuple(entry.kind for entry in found) == select.AUTOMATIC
    assert all(entry.detail for entry in found)
