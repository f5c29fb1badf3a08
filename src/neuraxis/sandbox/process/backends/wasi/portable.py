"""Runs a WASI job with what every system has: pipes, threads, an end by force.

For Windows. A job goes in, an `Outcome` comes out, as `running` gives it. A program of
WebAssembly starts no process, so that ending its one process ends all of it. What
there is no copy for is refused: a workspace with what others obey in it, or Python.
"""

from __future__ import annotations

import os
import queue
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO

from neuraxis.sandbox.files import walk
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.process import reserved_names, supervise, usage
from neuraxis.sandbox.process.backends.wasi import backend
from neuraxis.sandbox.process.job import CannotStart, Job, Outcome
from neuraxis.sandbox.process.supervise import Run

_TICK, _DISK_POLL, _LINGER = 0.02, 0.025, 5
_FEW = 16
"""Pieces of output that wait to be read; beyond them the script waits."""
_Pieces = queue.Queue[tuple[str, bytes]]


def run(
    job: Job,
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
    start: float,
) -> Outcome:
    """Run the job and wait for its end.

    Raises:
        CannotStart: it could not be started, or not be held.
    """
    kept = reserved_names.present(job.workspace)
    inside = [str(root) for root in job.roots if job.workspace in root.parents]
    if kept or inside:
        raise CannotStart(
            f"{', '.join((*kept, *inside))} in the workspace cannot be kept from a "
            "script on this system; use another folder as the workspace"
        )
    made = reserved_names.absent(job.workspace)
    started = Run(
        launch=backend.plain(job), job=job, before=disk(job.workspace), start=start
    )
    outcome = _follow(started, cancelled, on_output)
    return reserved_names.told(outcome, reserved_names.removed(job.workspace, made))


def check_script(workspace: Path, script: str) -> int:
    """See that `script` is a regular file below the workspace, through no link.

    Returns:
        Its size.

    Raises:
        CannotStart: it is not.
    """
    parts = PurePosixPath(script).parts
    if any(sign in script for sign in "\\:") or ".." in parts or not parts:
        raise CannotStart(f"{script!r} is no path inside the workspace")
    try:
        with walk.parent_folder(workspace, parts, create=False) as folder:
            walk.check_plain(folder.path / parts[-1], script)
            entry = (folder.path / parts[-1]).lstat()
    except (FileRefused, OSError) as error:
        raise CannotStart(f"{script!r} cannot be opened ({error})") from error
    if not stat.S_ISREG(entry.st_mode):
        raise CannotStart(f"{script!r} is no regular file")
    return entry.st_size


def _follow(
    run: Run,
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
) -> Outcome:
    launch = run.launch
    try:
        process = subprocess.Popen(
            launch.argv,
            # Held open until the end: what `wasi_run` ends with.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(launch.env),
            cwd=launch.cwd,
        )
    except OSError as error:
        raise CannotStart(f"{launch.argv[0]} cannot be started ({error})") from error
    pieces: _Pieces = queue.Queue(_FEW)
    open_ = {"output", "errors"}
    for name, stream in (("output", process.stdout), ("errors", process.stderr)):
        assert stream is not None
        threading.Thread(target=_read, args=(name, stream, pieces), daemon=True).start()
    try:
        _watch(run, process, pieces, open_, cancelled, on_output)
    finally:
        process.kill()
        code = process.wait()
        # Whoever reads a pipe that has ended must be let go.
        with suppress(queue.Empty):
            while open_:
                name, data = pieces.get(timeout=_LINGER)
                open_ -= set() if data else {name}
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if not run.reason:
        if failed := supervise.refusal(launch.kind, code, run.taken["errors"]):
            raise CannotStart(f"the sandbox (wasi) could not be set up: {failed}")
        now = disk(run.job.workspace)
        run.reason = usage.outgrown(run.before, now, run.job.limits)
        stopped = False
    else:
        stopped = True
    return Outcome(
        ok=code == 0 and not run.reason,
        exit_code=None if stopped else code,
        stdout=run.taken["output"].decode("utf-8", "replace"),
        stderr=run.taken["errors"].decode("utf-8", "replace"),
        reason=run.reason,
        sandbox=launch.kind,
        seconds=time.monotonic() - run.start,
    )


def _read(name: str, stream: IO[bytes], pieces: _Pieces) -> None:
    """Hand on what comes; nothing stands for the end."""
    while True:
        data = b""
        with suppress(OSError, ValueError):
            data = os.read(stream.fileno(), 65536)
        pieces.put((name, data))
        if not data:
            return


def _watch(
    run: Run,
    process: subprocess.Popen[bytes],
    pieces: _Pieces,
    open_: set[str],
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
) -> None:
    """Read output and look at the limits until it ends or must be stopped."""
    decoders = {name: supervise.decoder() for name in run.taken}
    begun = time.monotonic()
    disk_at = begun + _DISK_POLL
    while (open_ or process.poll() is None) and not run.reason:
        now = time.monotonic()
        if cancelled is not None and cancelled.is_set():
            run.reason = "It was cancelled and stopped."
        elif now - begun > run.job.limits.seconds:
            run.reason = (
                f"It did not end within {run.job.limits.seconds:g} seconds "
                "and was stopped."
            )
        elif now >= disk_at:
            found = disk(run.job.workspace)
            run.reason = usage.outgrown(run.before, found, run.job.limits)
            disk_at = time.monotonic() + max(_DISK_POLL, 8 * (time.monotonic() - now))
        if run.reason:
            return
        with suppress(queue.Empty):
            name, data = pieces.get(timeout=_TICK)
            supervise.taken(run, name, data, decoders, on_output)
            open_ -= set() if data else {name}


def _leads_away(about: os.stat_result) -> bool:
    """A junction, which is a folder otherwise."""
    attributes = getattr(about, "st_file_attributes", 0)
    return bool(attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT)


def disk(folder: Path) -> usage.Disk:
    """What the folder holds, by paths; links and junctions count as themselves."""
    used, files, hidden, deepest = 0, 0, 0, 0
    waiting = [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth > usage.DEEPEST:
            continue
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    with suppress(OSError):
                        # Not the entry's own: Windows keeps old sizes there.
                        about = os.lstat(entry.path)
                        used += about.st_size
                        files += 1
                        if stat.S_ISDIR(about.st_mode) and not _leads_away(about):
                            waiting.append((entry.path, depth + 1))
        except OSError:
            hidden += 1
    return usage.Disk(
        used=used,
        files=files,
        sockets=0,
        hidden=hidden,
        deep=deepest > usage.DEEPEST,
    )
