"""Runs a Python script of the workspace inside a sandbox and tells how it ended.

A script's name and limits go in, an `Outcome` comes out; whatever the script does, this
returns in time, with its processes gone. Which sandbox holds it is decided by `mode`:
`auto` takes the strongest that works here and refuses where none does.
"""

from __future__ import annotations

import codecs
import logging
import os
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from neuraxis.sandbox import chain, interpreter, staging, watchdog
from neuraxis.sandbox.limits import (
    MIB,
    CannotStart,
    Job,
    Launch,
    Limits,
    Outcome,
    Probe,
)

__all__ = ["Limits", "Outcome", "Probe", "probe", "run_python"]

_log = logging.getLogger(__name__)

LINGER = 0.2
"""Seconds that output is still read after the script's own process has ended."""
_TREE_POLL, _DISK_POLL = 0.05, 0.1
SCRIPT_BYTES = 10 * MIB
DEFAULT_UID = 65534


def probe() -> tuple[Probe, ...]:
    """Every kind of sandbox, tried once in this process by a real run."""
    return chain.probe()


def run_python(
    script: str,
    *,
    workspace: Path,
    limits: Limits | None = None,
    network: bool = False,
    mode: str = "auto",
    cancelled: threading.Event | None = None,
    args: Sequence[str] = (),
    on_output: Callable[[str], None] | None = None,
    allow_none: bool = False,
    sandbox_uid: int = DEFAULT_UID,
) -> Outcome:
    """Run `script` and wait for its end.

    Args:
        script: path of a regular file, relative to the workspace.
        workspace: the only folder the script can write to; its current folder.
        limits: how much it may use.
        network: whether it may reach the network.
        mode: `auto`, `bubblewrap`, `landlock`, `seatbelt`, `docker`, or `none`.
        cancelled: kills the script at once when it is set.
        args: the script's arguments.
        on_output: is given its output, piece by piece, as it comes.
        allow_none: the setting that, together with the environment variable
            `NEURAXIS_SANDBOX=none`, lets `mode="none"` run without isolation.
        sandbox_uid: the user that scripts run as where the runtime is root.
    """
    limits = limits or Limits()
    start = time.monotonic()
    try:
        root = Path(os.path.realpath(workspace))
        check_script(root, script)
        kinds = chain.choose(mode, allow_none=allow_none)
        with ExitStack() as stack:
            job = _job(root, script, args, limits, network, kinds[0])
            if kinds[0] != "none" and os.geteuid() == 0:
                job = stack.enter_context(_as_other(job, sandbox_uid))
            before = watchdog.disk(job.workspace)
            if before.sockets or network:
                job = replace(job, sockets=False)
            launch = chain.prepare(kinds, job)
            run = _Run(launch=launch, job=job, start=start, before=before)
            return _follow(run, cancelled, on_output)
    except CannotStart as error:
        return Outcome(
            ok=False,
            exit_code=None,
            stdout="",
            stderr="",
            reason=f"It was not run: {error}.",
            sandbox="none: refused",
            seconds=time.monotonic() - start,
        )


def check_script(workspace: Path, script: str) -> None:
    """See that `script` is a regular file below the workspace, through no link.

    Raises:
        CannotStart: it is not.
    """
    parts = PurePosixPath(script).parts
    if not parts or "\0" in script or script.startswith("/") or ".." in parts:
        raise CannotStart(
            f"{script!r} is no path inside the workspace; expected a relative path of "
            "a Python file"
        )
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    here = -1
    try:
        here = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            below = os.open(part, flags | (0 if last else os.O_DIRECTORY), dir_fd=here)
            os.close(here)
            here = below
        entry = os.fstat(here)
    except OSError as error:
        raise CannotStart(
            f"{script!r} cannot be opened in the workspace ({error.strerror})"
        ) from error
    finally:
        if here >= 0:
            os.close(here)
    if not stat.S_ISREG(entry.st_mode):
        raise CannotStart(f"{script!r} is no regular file")
    if entry.st_size > SCRIPT_BYTES:
        raise CannotStart(f"{script!r} is larger than {SCRIPT_BYTES // MIB} MiB")


def _job(
    workspace: Path,
    script: str,
    args: Sequence[str],
    limits: Limits,
    network: bool,
    kind: str,
) -> Job:
    inside = str(PurePosixPath(script))
    return Job(
        argv=(interpreter.python(), "-s", "-B", "{workspace}/" + inside, *args),
        roots=() if kind == "none" else interpreter.roots(),
        workspace=workspace,
        limits=limits,
        network=network,
    )


@contextmanager
def _as_other(job: Job, uid: int) -> Iterator[Job]:
    """Root runs nothing itself: a copy of the workspace, owned by another user."""
    if uid <= 0:
        raise CannotStart(f"sandbox_uid must be the number of an ordinary user: {uid}")
    with staging.staged(job.workspace, uid) as folder:
        yield replace(job, workspace=folder, uid=uid)


@dataclass(slots=True)
class _Run:
    """One run while it lasts."""

    launch: Launch
    job: Job
    start: float
    before: watchdog.Disk
    reason: str = ""
    taken: dict[str, bytearray] = field(
        default_factory=lambda: {"output": bytearray(), "errors": bytearray()}
    )


def _follow(
    run: _Run,
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
) -> Outcome:
    launch = run.launch
    process: subprocess.Popen[bytes] | None = None
    try:
        try:
            process = subprocess.Popen(
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
            raise CannotStart(f"{launch.argv[0]} cannot be started ({error})") from error
        finally:
            for fd in launch.fds:
                os.close(fd)
        _watch(run, process, cancelled, on_output)
    finally:
        _end(run, process)
    failed = _told(launch.status)
    code = process.returncode
    if failed:
        raise CannotStart(f"the sandbox ({launch.kind}) could not be set up: {failed}")
    code = 128 - code if code < 0 else code
    if not run.reason and code != 0:
        run.reason = _signalled(code, run.job.limits)
    elif not run.reason:
        now = watchdog.disk(run.job.workspace)
        run.reason = watchdog.outgrown(run.before, now, run.job.limits)
    stopped = bool(run.reason) and code <= 128
    return Outcome(
        ok=code == 0 and not run.reason,
        exit_code=None if stopped else code,
        stdout=run.taken["output"].decode("utf-8", "replace"),
        stderr=run.taken["errors"].decode("utf-8", "replace"),
        reason=run.reason,
        sandbox=launch.kind,
        seconds=time.monotonic() - run.start,
    )


def _watch(
    run: _Run,
    process: subprocess.Popen[bytes],
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
) -> None:
    """Read output and look at the limits until the script ends or must be stopped."""
    assert process.stdout is not None
    assert process.stderr is not None
    streams = {
        process.stdout.fileno(): "output",
        process.stderr.fileno(): "errors",
    }
    decoders = {name: _decoder() for name in run.taken}
    begun = time.monotonic()
    tree_at, disk_at, ended_at = begun + 0.02, begun + _DISK_POLL, 0.0
    pids: tuple[int, ...] = ()
    while streams or not ended_at:
        now = time.monotonic()
        if not ended_at and process.poll() is not None:
            ended_at = now
        if ended_at and now > ended_at + LINGER:
            return
        if cancelled is not None and cancelled.is_set():
            run.reason = "It was cancelled and stopped."
        elif now - begun > run.job.limits.seconds:
            run.reason = (
                f"It did not end within {run.job.limits.seconds:g} seconds "
                "and was stopped."
            )
        elif not ended_at and now >= tree_at:
            used = watchdog.usage(process.pid, beyond=run.job.limits.memory)
            pids = used.pids
            run.reason = watchdog.exceeded(used, run.job.limits)
            spent = time.monotonic() - now
            tree_at = now + max(_TREE_POLL, 8 * spent)
        elif not ended_at and now >= disk_at:
            run.reason = _disk(run, pids)
            spent = time.monotonic() - now
            disk_at = now + max(_DISK_POLL, 8 * spent)
        if run.reason:
            return
        if streams:
            ready, _, _ = select.select(list(streams), [], [], 0.02)
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
            ready = []
        for fd in ready:
            _take(run, fd, streams, decoders, on_output)


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


def _take(
    run: _Run,
    fd: int,
    streams: dict[int, str],
    decoders: dict[str, codecs.IncrementalDecoder],
    on_output: Callable[[str], None] | None,
) -> None:
    name = streams[fd]
    data = os.read(fd, 65536)
    if not data:
        del streams[fd]
    room = run.job.limits.output - len(run.taken[name])
    if len(data) > room:
        run.reason = (
            f"It wrote more than {run.job.limits.output:,} bytes of {name} "
            "and was stopped."
        )
        data = data[:room]
    run.taken[name] += data
    if on_output is not None and (text := decoders[name].decode(data, not data)):
        on_output(text)


def _disk(run: _Run, pids: tuple[int, ...]) -> str:
    removed = 0
    with suppress(OSError):
        device = run.job.workspace.stat().st_dev
        removed = watchdog.removed_but_open(pids, device)
    now = watchdog.disk(run.job.workspace)
    return watchdog.outgrown(run.before, now, run.job.limits, removed)


def _end(run: _Run, process: subprocess.Popen[bytes] | None) -> None:
    """See every process of the run dead, whatever happened before."""
    launch = run.launch
    if launch.lifeline is not None:
        os.close(launch.lifeline)
    if process is not None:
        if launch.lifeline is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(6)
        if process.poll() is None:
            watchdog.kill(process.pid)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        if process.returncode is None:
            _log.error("process %d of a script could not be ended", process.pid)
            run.reason = run.reason or "It could not be ended."
    if launch.close is not None:
        launch.close()


def _told(status: int | None) -> str:
    """What the child wrote about a failed start."""
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
    """Why a process that ended by a signal did, where that is ours to say."""
    if code == 128 + signal.SIGXCPU:
        return (
            f"It used more than {limits.cpu_seconds:g} seconds of processor time "
            "and was stopped."
        )
    if code == 128 + signal.SIGSYS:
        return "It made a system call that the sandbox does not allow."
    if code == 128 + signal.SIGKILL:
        return "It was killed (signal 9)."
    return ""


