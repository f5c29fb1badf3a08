"""Signals at any moment: commands and their processes end, the journal is closed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from neuraxis.cli import signals

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX")

_PLUGIN = '''
import asyncio, subprocess, sys, time
from pathlib import Path
from neuraxis import command

def _child(name):
    code = "import os, time; open(%r, 'w').write(str(os.getpid())); time.sleep(60)"
    return subprocess.Popen([sys.executable, "-c", code % (name + ".tmp")])

def _ready(name):
    while not Path(name + ".tmp").is_file() or not Path(name + ".tmp").read_text():
        time.sleep(0.02)
    Path(name + ".tmp").rename(name)

@command(effects="read")
def waits_for_child() -> str:
    """Starts a process and waits for it."""
    child = _child("child.pid")
    _ready("child.pid")
    child.wait()
    return "ended"

@command(effects="read")
async def swallows() -> str:
    """Does not stop."""
    _child("child.pid")
    _ready("child.pid")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

@command(effects="read")
async def waits_in_a_thread() -> str:
    """Waits in a thread that nothing can stop."""
    return await asyncio.to_thread(time.sleep, 30) or ""
'''


def _start(tmp_path: Path, tool: str, *words: str) -> subprocess.Popen[str]:
    (tmp_path / "mine.py").write_text(_PLUGIN, encoding="utf-8")
    reply = json.dumps([{"tool": tool}])
    (tmp_path / "m.yaml").write_text(json.dumps([reply, "Done."]), encoding="utf-8")
    options = [
        "--no-builtin", "-p", "mine.py", "-m", "scripted:m.yaml", "--journal", "j.db",
    ]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "neuraxis", words[0], *options, *words[1:]],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NEURAXIS_HOME": str(tmp_path / "home")},
    )


def _wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def _is_gone(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{number}/stat")
    return (
        stat.exists()
        and stat.read_bytes().decode().rpartition(")")[2].split()[0] == "Z"
    )


def _is_caught(process: int, number: int) -> bool:
    """Whether the process has a handler for the signal."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        time.sleep(2)
        return True
    mask = status.read_text(encoding="utf-8").partition("SigCgt:")[2].split()[0]
    return bool(int(mask, 16) >> (number - 1) & 1)


def _ends(tmp_path: Path) -> list[str]:
    """How the runs of the journal ended."""
    environ = {**os.environ, "NEURAXIS_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "neuraxis", "sessions"]
    listed = subprocess.run(
        [*command, "list", "--json", "--journal", "j.db"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (info,) = json.loads(listed.stdout)
    shown = subprocess.run(
        [*command, "show", info["session"], "--json", "--journal", "j.db"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    return [event["outcome"] for event in events if event["type"] == "session_finished"]


@pytest.mark.parametrize("words", [("run", "go"), ("chat",)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_R5_a_signal_during_a_command_ends_its_child_too(
    tmp_path: Path, number: signal.Signals, words: tuple[str, ...]
) -> None:
    """The child of a `def` command too; 128+n, and the end of the run is written."""
    process = _start(tmp_path, "waits_for_child", *words)
    assert process.stdin is not None
    if words[0] == "chat":
        process.stdin.write("go\n")
        process.stdin.flush()
    _wait((tmp_path / "child.pid").is_file)
    child = int((tmp_path / "child.pid").read_text())
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number, errors
    _wait(lambda: _is_gone(child), 5)
    assert "Traceback" not in errors
    assert _ends(tmp_path) == ["cancelled"]
    is_run = (number, words[0]) == (signal.SIGINT, "run")
    assert ("to continue: neuraxis sessions resume " in errors) == is_run


def test_R5_a_command_that_swallows_it_holds_no_signal_up(tmp_path: Path) -> None:
    """It is given up after a while, and its child ended."""
    process = _start(tmp_path, "swallows", "run", "go")
    _wait((tmp_path / "child.pid").is_file)
    child = int((tmp_path / "child.pid").read_text())
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 143, errors
    _wait(lambda: _is_gone(child), 5)
    assert _ends(tmp_path) == ["cancelled"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_R5_a_signal_ends_a_chat_that_waits_for_a_line(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Nothing runs there: it ends at once, with the signal's code."""
    process = _start(tmp_path, "waits_for_child", "chat")
    _wait(lambda: _is_caught(process.pid, number))
    time.sleep(0.5)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("words", [("run", "go"), ("batch", "rows.jsonl")])
def test_R5_a_limit_does_not_wait_for_a_thread(
    tmp_path: Path, words: tuple[str, str]
) -> None:
    """What a command left in a thread of asyncio's holds the end up no longer."""
    (tmp_path / "rows.jsonl").write_text('"go"\n', encoding="utf-8")
    started = time.monotonic()
    given = (words[0], "--max-seconds", "1", words[1])
    process = _start(tmp_path, "waits_in_a_thread", *given)
    _, errors = process.communicate(timeout=50)
    assert process.returncode == (3 if words[0] == "run" else 1), errors
    assert time.monotonic() - started < 20


def test_R5_what_is_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """`nohup` ignores SIGHUP, and so does the command line then."""
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signals.install()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, None)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_R5_processes_of_before_are_spared() -> None:
    """Only what was started since is ended."""
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command) as first:
        spared = signals.descendants()
        assert first.pid in spared
        with subprocess.Popen(command) as second:
            signals.end_descendants(spared)
            assert second.wait(5) == -signal.SIGTERM
        assert first.poll() is None
        first.kill()


@pytest.mark.parametrize("typed", [b"", b"half a li", b"hi\r"])
def test_R5_a_closed_terminal_ends_a_chat(tmp_path: Path, typed: bytes) -> None:
    """The signal comes while the line editor handles the terminal's end."""
    pty = pytest.importorskip("pty")
    pytest.importorskip("prompt_toolkit")
    (tmp_path / "m.yaml").write_text('["Done."]', encoding="utf-8")
    words = ("chat", "--no-builtin", "-m", "scripted:m.yaml", "--journal", "j.db")
    command = (sys.executable, "-m", "neuraxis", *words)
    env = {**os.environ, "NEURAXIS_HOME": str(tmp_path), "TERM": "xterm"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(sys.executable, command, env)
    try:
        _read_until(terminal, b"for help")
        time.sleep(0.5)  # the line editor is ready
        os.write(terminal, typed)
        os.close(terminal)
        ended: list[int] = []
        _wait(lambda: bool(ended) or _has_ended(pid, ended), 20)
        assert ended == [128 + signal.SIGHUP]
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise


def _read_until(terminal: int, wanted: bytes) -> None:
    shown = b""
    until = time.monotonic() + 60
    while wanted not in shown and time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4000)
    assert wanted in shown


def _has_ended(pid: int, codes: list[int]) -> bool:
    found, status = os.waitpid(pid, os.WNOHANG)
    if found:
        codes.append(os.waitstatus_to_exitcode(status))
    return found != 0
