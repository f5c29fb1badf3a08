"""Runs a Python script of the workspace inside a sandbox and tells how it ended.

A script's name and limits go in, an `Outcome` comes out; whatever the script does, this
returns in time, with its processes gone. Which sandbox holds it is decided by `mode`:
`auto` takes the strongest that works here and refuses where none does.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from neuraxis.sandbox.process import (
    interpreter,
    reserved_names,
    select,
    staging,
    supervise,
    usage,
)
from neuraxis.sandbox.process.job import (
    HERE,
    MIB,
    CannotStart,
    Job,
    Limits,
    Outcome,
    Probe,
)

__all__ = ["Limits", "Outcome", "Probe", "probe", "probe_wasi", "run_python"]

SCRIPT_BYTES = 10 * MIB
DEFAULT_UID = 65534
"""Nobody. Where other services run as this user, name one of its own."""


def probe(sandbox_uid: int = DEFAULT_UID) -> tuple[Probe, ...]:
    """Every kind of sandbox, tried once in this process by a real run."""
    return select.probe(sandbox_uid)


def probe_wasi(
    wasm: str = "", *, compile_now: bool = False, sandbox_uid: int = DEFAULT_UID
) -> Probe:
    """WASI, tried if that is quick; compiled for it (some seconds) only on request."""
    return select.probe_wasi(sandbox_uid, wasm, compile_now=compile_now)


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
    wasm: str = "",
) -> Outcome:
    """Run `script` and wait for its end.

    Args:
        script: path of a regular file, relative to the workspace.
        workspace: the only folder the script can write to; its current folder.
        limits: how much it may use.
        network: whether it may reach the network.
        mode: `auto`, `bubblewrap`, `landlock`, `seatbelt`, `docker`, `wasi` or `none`.
        cancelled: kills the script at once when it is set.
        args: the script's arguments.
        on_output: is given its output, piece by piece, as it comes.
        allow_none: the setting that, together with the environment variable
            `NEURAXIS_SANDBOX=none`, lets `mode="none"` run without isolation.
        sandbox_uid: the user that scripts run as where the runtime is root.
        wasm: for `wasi`, the file of a Python for WASI other than the known one.
    """
    limits = limits or Limits()
    start = time.monotonic()
    try:
        if sandbox_uid <= 0:
            raise CannotStart(
                f"sandbox_uid is the number of an ordinary user, given {sandbox_uid}"
            )
        kind = select.choose(mode, allow_none=allow_none, uid=sandbox_uid)
        root = Path(os.path.realpath(workspace))
        check_script(root, script)
        check_arguments(args)
        with ExitStack() as stack:
            job = Job(
                argv=(*_python(), HERE + "/" + str(PurePosixPath(script)), *args),
                roots=select.roots(kind, root, wasm),
                workspace=root,
                limits=limits,
                network=network,
                wasm=wasm,
            )
            if os.name != "posix":
                from neuraxis.sandbox.process.backends.wasi import portable

                return portable.run(job, cancelled, on_output, start)
            if kind != "none":
                job = _own_copy(stack, job, kind, sandbox_uid)
            before = usage.disk(job.workspace)
            if before.sockets or network:
                job = replace(job, sockets=False)
            launch = select.prepare(kind, job)
            run = supervise.Run(launch=launch, job=job, before=before, start=start)
            made = reserved_names.absent(job.workspace)
            outcome = supervise.follow(run, cancelled, on_output)
            return reserved_names.told(
                outcome, reserved_names.removed(job.workspace, made)
            )
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
    if not parts or not _writable(script) or script.startswith("/") or ".." in parts:
        raise CannotStart(
            f"{script!r} is no path inside the workspace; expected a relative path of "
            "a Python file"
        )
    if os.name != "posix":
        from neuraxis.sandbox.process.backends.wasi import portable

        _check_size(script, portable.check_script(workspace, script))
        return
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
    _check_size(script, entry.st_size)


def _check_size(script: str, size: int) -> None:
    if size > SCRIPT_BYTES:
        raise CannotStart(f"{script!r} is larger than {SCRIPT_BYTES // MIB} MiB")


def check_arguments(args: Sequence[str]) -> None:
    """See that a command line can hold the arguments.

    Raises:
        CannotStart: it cannot.
    """
    for arg in args:
        if not _writable(arg):
            raise CannotStart(
                f"the argument {arg[:40]!r} holds a character that no argument can "
                "(NUL, or half of a surrogate pair)"
            )


def _writable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _own_copy(stack: ExitStack, job: Job, kind: str, uid: int) -> Job:
    """The job on a copy of its workspace, where the folder itself cannot be given."""
    root = os.geteuid() == 0
    inside = [
        str(folder.relative_to(job.workspace))
        for folder in job.roots
        if job.workspace in folder.parents
    ]
    # Bubblewrap makes these read only in place, but a folder above one of them could
    # still be renamed and made anew; the other kinds cannot make an exception at all.
    nested = any("/" in path for path in inside)
    bare = kind in ("landlock", "seatbelt", "wasi")
    kept = bool(inside) or bool(reserved_names.present(job.workspace))
    if not root and not nested and not (bare and kept):
        return job
    other = uid if root else None
    copy = staging.staged(job.workspace, other, job.limits, inside)
    return replace(job, workspace=stack.enter_context(copy), uid=other)


def _python() -> tuple[str, ...]:
    # Not isolated mode (-I): a script may import the helper beside it.
    return (interpreter.python(), "-s", "-B")
