"""Runs all attempts in one kind of sandbox and says which got through.

A program of its own, so that the tests can run it as another user:
`python -m escapes.runner MODE NAMES` writes one JSON object, attempt -> what was seen.
MODE is a kind of sandbox, or `plain`: a bare subprocess, the control.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from escapes import (
    attempts_files,
    attempts_network,
    attempts_processes,
    attempts_resources,
)
from escapes.attempt import Attempt, whole
from escapes.ordinary import ORDINARY, Ordinary
from escapes.world import KEY, SECRET, World, state
from neuraxis.sandbox.process import interpreter
from neuraxis.sandbox.process.backends import landlock
from neuraxis.sandbox.process.child import launch
from neuraxis.sandbox.process.job import GUARDED, Limits, Outcome
from neuraxis.sandbox.process.run import run_python

ALL: list[Attempt] = [
    *attempts_files.ATTEMPTS,
    *attempts_network.ATTEMPTS,
    *attempts_processes.ATTEMPTS,
    *attempts_resources.ATTEMPTS,
]
MIB = 1024 * 1024
LIMITS = Limits(
    seconds=1.2,
    memory=192 * MIB,
    processes=attempts_resources.PROCESSES,
    file_bytes=16 * MIB,
    disk=48 * MIB,
    files=500,
    output=256 * 1024,
    cpu_seconds=3,
)
PATIENT = replace(LIMITS, seconds=15)
"""Where something else than the time must end it, though the machine is busy."""
SCRIPT_UID = 65534
LONGEST = LIMITS.seconds + 10
"""Seconds that a call may take on a busy machine; what holds one lasts for 20."""
QUIET, HEAVY = 6, 4
"""How many attempts run side by side."""
NEVER_PLAIN = frozenset(
    {
        "proc_kill_supervisor",  # would end this program
        "kernel_message_queue",  # would leave something in the kernel
        "kernel_shared_memory",
    }
)


def _plain(
    folder: Path, mark: str, on_output: Callable[[str], None], started: list[int]
) -> Outcome:
    """The control: nothing but a time limit."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "script.py", mark],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        close_fds=False,
        start_new_session=True,
    )
    started.append(process.pid)
    taken: list[bytes] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            taken.append(line[: 1 << 21])
            on_output(line.decode("utf-8", "replace"))

    readers = [
        threading.Thread(target=read, daemon=True),
        threading.Thread(target=lambda: taken.append(_all(process)), daemon=True),
    ]
    for reader in readers:
        reader.start()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(LIMITS.seconds)
    readers[0].join(LIMITS.seconds)
    code = process.poll()
    time.sleep(0.05)
    return Outcome(
        ok=code == 0,
        exit_code=code,
        stdout=b"".join(taken).decode("utf-8", "replace"),
        stderr="",
        reason="",
        sandbox="plain",
        seconds=time.monotonic() - begun,
    )


def _all(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stderr is not None
    return process.stderr.read()


def _knock(connected: list[int]) -> Callable[[str], None]:
    """Tries each port that a script says it listens on."""

    def hear(text: str) -> None:
        for number in re.findall(r"PORT (\d+)", text):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", int(number)), 0.5).close()
                connected.append(int(number))

    return hear


def _victim_state(process: subprocess.Popen[bytes]) -> Any:
    if process.poll() is not None:
        return "dead"
    return (
        Path(f"/proc/{process.pid}/limits").read_text(encoding="ascii"),
        sorted(os.sched_getaffinity(process.pid)),
        os.getpriority(os.PRIO_PROCESS, process.pid),
    )


def one(attempt: Attempt, mode: str, world: World) -> dict[str, Any]:
    """Run one attempt and look at what it did."""
    folder, told = world.workspace(attempt.name)
    target = Path(told["target"])
    needs_victim = attempt.name.startswith("proc_")
    victim = world.victim() if needs_victim else None
    told["victim"] = victim.pid if victim else 0
    script = folder / "script.py"
    script.write_text(whole(attempt.script, told), encoding="utf-8")
    before = state(target)
    health = _victim_state(victim) if victim else None
    connected: list[int] = []
    started: list[int] = []
    if mode == "plain":
        outcome = _plain(folder, told["mark"], _knock(connected), started)
    else:
        outcome = run_python(
            "script.py",
            workspace=folder,
            limits=PATIENT if attempt.sees == "stopped" else LIMITS,
            mode=mode,
            args=(told["mark"],),
            on_output=_knock(connected),
        )
    seen = _seen(attempt, outcome, folder)
    if attempt.sees == "survivor" and _lives(told["mark"]):
        seen = "a process outlived the call"
    if attempt.sees == "target" and state(target) != before:
        seen = "its folder outside was changed"
    if attempt.sees == "listener":
        time.sleep(0.05)
        if told["token"] in world.arrived:
            seen = "its token arrived"
    if connected and attempt.sees == "connect":
        seen = "its port could be reached"
    for group in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    if victim is not None:
        if attempt.sees == "victim" and _victim_state(victim) != health:
            seen = "the foreign process was changed"
        victim.kill()
        victim.wait()
    return {
        "seen": seen,
        "sandbox": outcome.sandbox,
        "reason": outcome.reason,
        "seconds": round(outcome.seconds, 2),
        "tail": (outcome.stdout[-200:] + outcome.stderr[-300:]),
    }


@functools.cache
def _counts_exactly(mode: str) -> bool:
    """Whether the kernel counts a script's tasks by themselves, not all of a user's."""
    if mode == "bubblewrap":
        return True
    plan: dict[str, Any] = {"processes": 9, "rlimits": {}, "landlock": {}}
    if os.geteuid() == 0:
        hidden = not landlock.reachable(interpreter.roots(), SCRIPT_UID)
        plan |= {"uid": SCRIPT_UID, "read_all": hidden}
    if folder := launch.bound_tasks(plan):
        os.rmdir(folder)
    return "apart" in plan or "group" in plan


def _lives(mark: str) -> bool:
    """Whether a process with the mark is there, and not just about to be gone."""
    deadline = time.monotonic() + 0.5
    while True:
        found = False
        for place in glob.iglob("/proc/[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found |= mark.encode() in Path(place).read_bytes()
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def _seen(attempt: Attempt, outcome: Outcome, folder: Path) -> str:
    """What tells that it got through, apart from servers, targets and victims."""
    text = outcome.stdout + outcome.stderr
    if SECRET in text or KEY in text:
        return "a secret was read"
    if "FIRED" in outcome.stdout.split():
        return "it said so: " + outcome.stdout[:80]
    if attempt.sees == "survivor":
        if outcome.seconds > LONGEST:
            return f"the call took {outcome.seconds:.1f} s"
        if attempt.name.startswith("time_") and outcome.sandbox == "plain":
            return "it was still running" if outcome.exit_code is None else ""
    stopped = bool(outcome.reason) and "did not end" not in outcome.reason
    if attempt.sees == "amount" or (attempt.sees == "stopped" and not stopped):
        lines = re.findall(r"^REACHED (\d+)$", outcome.stdout, re.MULTILINE)
        numbers = [int(number) for number in lines]
        if max(numbers, default=0) > attempt.most:
            return f"it reached {max(numbers)}, more than {attempt.most:g}"
    if attempt.sees == "born":
        with contextlib.suppress(FileNotFoundError):
            born = (folder / "n").stat().st_size
            # Where only the user's tasks can be counted, those of the scripts that run
            # side by side are too.
            exact = outcome.sandbox == "plain" or _counts_exactly(outcome.sandbox)
            if born > attempt.most * (1 if exact else HEAVY):
                return f"{born} processes lived at once, more than {attempt.most:g}"
    if attempt.sees == "output_size" and len(text) > attempt.most:
        return f"{len(text)} characters of output were kept"
    return _made(folder) if attempt.sees == "workspace" else ""


def _made(folder: Path) -> str:
    for path in folder.rglob("*"):
        if path.name in GUARDED or path.name.startswith("core"):
            return f"it made {path.name}"
        if stat.S_IMODE(path.lstat().st_mode) & 0o6000:
            return "it made a file that runs as another"
    return ""


def ordinary(script: Ordinary, mode: str, world: World) -> dict[str, Any]:
    """Run one script that must work."""
    folder = world.folder / "ordinary" / script.name
    folder.mkdir(parents=True)
    (folder / "script.py").write_text(script.script, encoding="utf-8")
    for name, content in script.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    outcome = run_python("script.py", workspace=folder, mode=mode, args=script.args)
    return {
        "ok": outcome.ok,
        "output": outcome.stdout.strip(),
        "errors": outcome.stderr[-600:] + outcome.reason,
        "sandbox": outcome.sandbox,
    }


def main(mode: str, names: list[str]) -> None:
    """Run everything and write what was seen."""
    os.environ["NX_KEY"] = KEY
    leak = tempfile.TemporaryFile()  # noqa: SIM115 - inherited on purpose
    leak.write(SECRET.encode())
    leak.flush()
    os.set_inheritable(leak.fileno(), True)
    root = os.geteuid() == 0
    world = World(SCRIPT_UID if root and mode != "plain" else None)
    os.umask(0o022)
    found: dict[str, Any] = {"attempts": {}, "ordinary": {}}
    if mode != "plain":
        _counts_exactly(mode)  # it forks: now, while there are no threads
    chosen = [a for a in ALL if not names or a.name in names]
    if mode == "plain":
        chosen = [a for a in chosen if a.name not in NEVER_PLAIN]
    quiet = [a for a in chosen if a.group != "resources"]
    heavy = [a for a in chosen if a.group == "resources"]
    try:
        for group, workers in ((quiet, QUIET), (heavy, HEAVY)):
            with ThreadPoolExecutor(workers) as pool:
                results = pool.map(lambda a: one(a, mode, world), group)
                for attempt, result in zip(group, results, strict=True):
                    found["attempts"][attempt.name] = result
        if mode != "plain":
            with ThreadPoolExecutor(4) as pool:
                scripts = [s for s in ORDINARY if not names or s.name in names]
                results = pool.map(lambda s: ordinary(s, mode, world), scripts)
                for script, result in zip(scripts, results, strict=True):
                    found["ordinary"][script.name] = result
    finally:
        world.close()
        leak.close()
        for pattern in ("/dev/shm/nx-*", "/tmp/nx-escape-*"):  # of the control
            for path in glob.glob(pattern):
                with contextlib.suppress(OSError):
                    os.unlink(path)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 3:  # a secret in the command line, for whoever can read that
        sys.argv.pop()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main(sys.argv[1], [n for n in sys.argv[2].split(",") if n])
