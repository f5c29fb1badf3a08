"""The kernel holds the number of a script's processes: no speed of ours is needed.

The watchdog is put out of action here, so that what holds is the kernel alone.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from neuraxis.sandbox.process import interpreter, usage
from neuraxis.sandbox.process.backends import landlock
from neuraxis.sandbox.process.child import launch
from neuraxis.sandbox.process.job import Limits, Outcome
from neuraxis.sandbox.process.run import run_python

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the ways of Linux to count tasks"
)
MOST = 24
LIMITS = Limits(seconds=40, cpu_seconds=40, processes=MOST)
FORKS = """\
import os, time
print('ready', flush=True)
time.sleep({wait})
made = 0
for _ in range({forks}):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError:
        break
    made += 1
print('made', made, flush=True)
time.sleep({stay})
"""


@pytest.fixture(autouse=True)
def no_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours looks at the tree."""

    def exceeded(_now: usage.Usage, _limits: Limits) -> str:
        return ""

    monkeypatch.setattr(usage, "exceeded", exceeded)


def _run(
    folder: Path,
    kind: str,
    *,
    forks: int = 3 * MOST,
    wait: float = 0,
    stay: float = 0,
    cancelled: threading.Event | None = None,
    on_output: Callable[[str], None] | None = None,
) -> Outcome:
    folder.mkdir()
    script = FORKS.format(forks=forks, wait=wait, stay=stay)
    (folder / "script.py").write_text(script, encoding="utf-8")
    return run_python(
        "script.py",
        workspace=folder,
        mode=kind,
        limits=LIMITS,
        cancelled=cancelled,
        on_output=on_output,
        allow_none=True,
    )


def _made(outcome: Outcome) -> int:
    lines = outcome.stdout.split()
    assert "made" in lines, outcome
    return int(lines[lines.index("made") + 1])


def _only(monkeypatch: pytest.MonkeyPatch, *removed: str) -> None:
    """Let the launcher do without some of its ways."""
    folder = str(Path(launch.__file__).parent)
    code = f"import os, sys; sys.path.insert(0, {folder!r}); import launch\n"
    code += "".join(f"launch.{name} = lambda _: ''\n" for name in removed)
    code += "os._exit(launch.main())"
    command = (os.path.realpath(sys.executable), "-I", "-S", "-c", code)
    monkeypatch.setattr(landlock, "launcher", lambda: command)


def test_finding_2_no_more_than_allowed(tmp_path: Path, kind: str) -> None:
    """A few fewer than the limit: the sandbox's own count too."""
    assert MOST - 4 <= _made(_run(tmp_path / "w", kind)) < MOST


def test_finding_2_each_run_is_counted_by_itself(tmp_path: Path, kind: str) -> None:
    """What another script of the same user has, or leaves, is none of its own."""
    if kind == "landlock" and not _counts_apart(tmp_path):
        pytest.skip("nothing here counts a tree by itself under Landlock")
    there, done = threading.Event(), threading.Event()

    def hold() -> None:
        _run(
            tmp_path / "other",
            kind,
            forks=15,
            stay=60,
            cancelled=done,
            on_output=lambda text: there.set() if "made" in text else None,
        )

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert there.wait(30)
        beside = _run(tmp_path / "beside", kind)
        after = _run(
            tmp_path / "after", kind, wait=1, on_output=lambda _text: done.set()
        )
    finally:
        done.set()
        other.join()
    assert MOST - 4 <= _made(beside) < MOST
    assert MOST - 4 <= _made(after) < MOST


def _counts_apart(folder: Path) -> bool:
    """Whether the limit is exact: a neighbour would otherwise be allowed for."""
    return _made(_run(folder / "probe", "landlock")) == MOST - 1


@pytest.fixture
def landlock_works() -> None:
    """Skip where the kernel has none."""
    if landlock.abi() < landlock.LEAST_ABI:
        pytest.skip("the kernel offers no Landlock")


@pytest.mark.usefixtures("landlock_works")
def test_a_user_namespace_counts_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others may read the interpreter, a namespace is enough, also for root."""
    system = Path("/usr/bin/python3")
    if os.geteuid() == 0 and not system.exists():
        pytest.skip("no Python here that any user can read")
    if os.geteuid() == 0:
        monkeypatch.setattr(interpreter, "python", lambda: str(system))
        monkeypatch.setattr(interpreter, "roots", lambda: ())
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                launch.become(65534, read_all=False)
            launch.count_apart()
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        pytest.skip("user namespaces are not allowed here")
    _only(monkeypatch, "_control_group")
    assert _made(_run(tmp_path / "w", "landlock")) == MOST - 1


@pytest.mark.usefixtures("landlock_works")
def test_a_control_group_counts_exactly_and_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's way where there is no namespace."""
    folder = launch._control_group(4)  # pyright: ignore[reportPrivateUsage]
    if not folder:
        pytest.skip("no control group can be made here")
    os.rmdir(folder)
    _only(monkeypatch, "_can_count_apart")
    before = set(Path(folder).parent.glob("neuraxis-*"))
    assert _made(_run(tmp_path / "w", "landlock")) == MOST - 1
    monkeypatch.setenv("NEURAXIS_SANDBOX", "none")
    assert _made(_run(tmp_path / "none", "none")) == MOST - 1
    assert set(Path(folder).parent.glob("neuraxis-*")) <= before


@pytest.mark.usefixtures("landlock_works")
def test_with_neither_the_users_tasks_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last way, as in a container: all of the user's tasks, these and 2 more."""
    _only(monkeypatch, "_can_count_apart", "_control_group")
    assert _made(_run(tmp_path / "w", "landlock", forks=1000)) < 1000
