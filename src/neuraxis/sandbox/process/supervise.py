"""Start a launch, read its output, and stop it at a limit.

`follow` returns only when all processes of the tree are gone; a process that holds an
output open cannot delay it.
"""

from __future__ import annotations

import codecs
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct, field

from neuraxis.formatting import in_seconds
from neuraxis.sandbox.process import pipes, usage
from neuraxis.sandbox.process.job import CannotStart, Job, Launch, Limits, Outcome

_log = logging.getLogger(__name__)

LINGER = 0.2
"""Seconds that output is read after the script's process ended."""
# An expensive check runs less often. Only its CPU time counts: on a busy machine
# wall-clock time would slow the watchdog just when a script is fast.
_TREE_POLL, _DISK_POLL, _TICK = 0.04, 0.025, 0.02
# Linux signal numbers, also used by Docker's containers; Windows has no names for them.
_KILLED = getattr(signal, "SIGKILL", 9)
_PROCESSOR, _CALL = getattr(signal, "SIGXCPU", 24), getattr(signal, "SIGSYS", 31)


class Run(Struct):
    """State of one run."""

    launch: Launch
    job: Job
    before: usage.Disk
    start: float = field(default_factory=time.monotonic)
    reason: str = ""
    taken: dict[str, bytearray] = field(
        default_factory=lambda: {"output": bytearray(), "errors": bytearray()}
    )


def follow(
    run: Run,
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
) -> Outcome:
    """Start the run, wait for its end, and return its outcome.

    Raises:
        CannotStart: the sandbox could not be started or set up.
    """
    launch = run.launch
    process = _start(launch)
    try:
        _watch(run, process, cancelled, on_output)
    finally:
        _end(run, process)
        failed = _read_and_close(launch.status)
    code = process.returncode
    if not failed and not run.reason:
        failed = _refusal(launch.kind, code, run.taken["errors"])
    if failed:
        raise CannotStart(f"the sandbox ({launch.kind}) could not be set up: {failed}")
    code = 128 - code if code < 0 else code
    if not run.reason and code != 0:
        run.reason = _signalled(code, run.job.limits)
    stopped = bool(run.reason)
    if not stopped:
        current = usage.disk(run.job.workspace)
        run.reason = usage.outgrown(run.before, current, run.job.limits)
    return Outcome(
        ok=code == 0 and not run.reason,
        exit_code=None if stopped else code,
        stdout=run.taken["output"].decode("utf-8", "replace"),
        stderr=run.taken["errors"].decode("utf-8", "replace"),
        reason=run.reason,
        sandbox=launch.kind,
        seconds=time.monotonic() - run.start,
    )


def _start(launch: Launch) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            launch.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            close_fds=True,
            pass_fds=launch.fds,
            start_new_session=True,
            env=dict(launch.env),
            cwd=launch.cwd,
        )
    except OSError as error:
        for fd in (launch.status, launch.info, launch.lifeline):
            if fd is not None:
                os.close(fd)
        if launch.close is not None:
            launch.close()
        raise CannotStart(f"{launch.argv[0]} cannot be started ({error})") from error
    finally:
        for fd in launch.fds:
            os.close(fd)


def _watch(
    run: Run,
    process: subprocess.Popen[bytes],
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
) -> None:
    """Read output and check limits until the script ends."""
    assert process.stdout is not None
    assert process.stderr is not None
    streams = {"output": process.stdout, "errors": process.stderr}
    come = pipes.pieces(streams, run.job.limits.output)
    # A character that is split over two reads is decoded whole.
    decoder = codecs.getincrementaldecoder("utf-8")
    decoders = {name: decoder("replace") for name in streams}
    started = time.monotonic()
    tree_at, disk_at, ended_at = started + 0.02, started + _DISK_POLL, 0.0
    pids: tuple[int, ...] = ()
    while streams or not ended_at:
        now = time.monotonic()
        if not ended_at and process.poll() is not None:
            ended_at = now
        if ended_at and now > ended_at + LINGER:
            return
        if cancelled is not None and cancelled.is_set():
            run.reason = "It was cancelled and stopped."
        elif now - started > run.job.limits.seconds:
            run.reason = (
                f"It did not end within {in_seconds(run.job.limits.seconds)} "
                "and was stopped."
            )
        elif not ended_at and now >= tree_at:
            spent = time.thread_time()
            used = usage.usage(process.pid, beyond=run.job.limits.memory)
            pids = used.pids
            run.reason = usage.exceeded(used, run.job.limits)
            spent = time.thread_time() - spent
            tree_at = now + max(_TREE_POLL, 8 * spent)
        elif not ended_at and now >= disk_at:
            spent = time.thread_time()
            run.reason = _disk(run, pids)
            spent = time.thread_time() - spent
            disk_at = now + max(_DISK_POLL, 8 * spent)
        if run.reason:
            return
        if streams:
            came = come(_TICK)
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_TICK)
            came = []
        for name, data in came:
            _take(run, name, data, decoders[name], on_output)
            if not data:
                del streams[name]


def _take(
    run: Run,
    name: str,
    data: bytes,
    decoder: codecs.IncrementalDecoder,
    on_output: Callable[[str], None] | None,
) -> None:
    """Store new output or errors; stop the run at the limit."""
    room = run.job.limits.output - len(run.taken[name])
    if len(data) > room:
        run.reason = (
            f"It wrote more than {run.job.limits.output:,} bytes of {name} "
            "and was stopped."
        )
        data = data[:room]
    run.taken[name] += data
    if on_output is not None and (text := decoder.decode(data, not data)):
        on_output(text)


def _disk(run: Run, pids: tuple[int, ...]) -> str:
    removed = 0
    with suppress(OSError):
        device = run.job.workspace.stat().st_dev
        removed = usage.removed_but_open(pids, device)
    if run.launch.kind == "bubblewrap":
        temporary = usage.temporary_files(pids)
        if temporary > run.job.limits.files:
            return (
                f"It made more than {run.job.limits.files:,} temporary files "
                "and was stopped."
            )
    current = usage.disk(run.job.workspace)
    return usage.outgrown(run.before, current, run.job.limits, removed)


def _end(run: Run, process: subprocess.Popen[bytes]) -> None:
    """Kill every process of the run."""
    launch = run.launch
    if launch.lifeline is not None:
        os.close(launch.lifeline)
        with suppress(subprocess.TimeoutExpired):
            process.wait(6)
    inner = _inner(launch.info)
    if process.poll() is None:
        if os.name == "posix":
            usage.kill(process.pid)
        else:
            process.kill()
    if inner >= 0:
        # It is reaped only after everything in its namespace.
        pipes.wait_until_readable(inner, 5)
        os.close(inner)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    if process.returncode is None:
        _log.error("process %d of a script could not be ended", process.pid)
        process.returncode = 128 + _KILLED
        run.reason = run.reason or "It could not be ended."
    if launch.close is not None:
        launch.close()


def _inner(info: int | None) -> int:
    """Return a descriptor of the namespace's first process, or -1."""
    if info is None or sys.platform != "linux":
        return -1
    text = _read_and_close(info)
    try:
        return os.pidfd_open(int(json.loads(text)["child-pid"]))
    except (ValueError, KeyError, TypeError, OSError, AttributeError):
        return -1


def _refusal(kind: str, code: int, errors: bytearray) -> str:
    """Return bubblewrap's own error; a script that fakes one fools only itself."""
    first = errors.decode("utf-8", "replace").partition("\n")[0]
    if kind != "bubblewrap" or code != 1 or not first.startswith("bwrap: "):
        return ""
    return first.removeprefix("bwrap: ")


def _read_and_close(status: int | None) -> str:
    """Return the child's report of a failed start."""
    if status is None:
        return ""
    os.set_blocking(status, False)
    try:
        return os.read(status, 4096).decode("utf-8", "replace")
    except BlockingIOError:
        return ""
    finally:
        os.close(status)


def _signalled(code: int, limits: Limits) -> str:
    """Return why a signal ended the process, if this module knows."""
    if code == 128 + _PROCESSOR:
        return (
            f"It used more than {in_seconds(limits.cpu_seconds)} of processor time "
            "and was stopped."
        )
    if code == 128 + _CALL:
        return "It made a system call that the sandbox does not allow."
    if code == 128 + _KILLED:
        return "It was killed (signal 9)."
    return ""
