"""Run a Python script of the workspace inside a sandbox.

The call returns within its time limit with all processes of the script gone. `mode`
selects the sandbox: `auto` selects the strongest that works here and refuses if none
does.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from neuraxis.sandbox.files import walk
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.process import (
    interpreter,
    reserved_names,
    select,
    staging,
    supervise,
    usage,
)
from neuraxis.sandbox.process.copy_out import Choose
from neuraxis.sandbox.process.job import (
    HERE,
    MIB,
    CannotStart,
    Job,
    Limits,
    Outcome,
    Probe,
)

__all__ = ["Limits", "Outcome", "Probe", "probe", "run_python"]

SCRIPT_BYTES = 10 * MIB
DEFAULT_UID = 65534
"""User id of `nobody`; choose another if services run as this user."""


def probe(sandbox_uid: int = DEFAULT_UID) -> tuple[Probe, ...]:
    """Probe every kind of sandbox with a real run, once per process."""
    return select.probe(sandbox_uid)


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
    choose: Choose | None = None,
) -> Outcome:
    """Run `script` and wait for its end.

    Args:
        script: path of a regular file, relative to the workspace.
        workspace: the only folder the script can write to; its current folder.
        limits: how much it may use.
        network: whether it may reach the network.
        mode: `auto`, `bubblewrap`, `landlock`, `seatbelt`, `docker` or `none`.
        cancelled: kills the script at once when it is set.
        args: the script's arguments.
        on_output: receives its output piece by piece.
        allow_none: the setting that, together with the environment variable
            `NEURAXIS_SANDBOX=none`, lets `mode="none"` run without isolation.
        sandbox_uid: the user that scripts run as if the runtime is root.
        choose: chooses which changes are brought back; the script then works on a copy
            of the workspace. None: all.
    """
    limits = limits or Limits()
    start = time.monotonic()
    try:
        _check_user(sandbox_uid)
        kind = select.choose(mode, allow_none=allow_none, uid=sandbox_uid)
        root = Path(os.path.realpath(workspace))
        check_script(root, script)
        check_arguments(args)
        job = Job(
            argv=(*_python(), HERE + "/" + str(PurePosixPath(script)), *args),
            roots=select.roots(kind),
            workspace=root,
            limits=limits,
            network=network,
        )
        not_kept: list[str] = []
        with _own_copy(job, kind, sandbox_uid, choose, not_kept) as job:
            outcome = _supervised(job, kind, start, cancelled, on_output)
        return replace(outcome, not_kept=tuple(not_kept))
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


def _check_user(uid: int) -> None:
    if uid <= 0:
        raise CannotStart(f"sandbox_uid is the number of an ordinary user, given {uid}")


def _supervised(
    job: Job,
    kind: str,
    start: float,
    cancelled: threading.Event | None,
    on_output: Callable[[str], None] | None,
) -> Outcome:
    """Launch and supervise the job; remove reserved names it made."""
    before = usage.disk(job.workspace)
    if before.sockets or job.network:
        job = replace(job, sockets=False)
    launch = select.prepare(kind, job)
    run = supervise.Run(launch=launch, job=job, before=before, start=start)
    absent = reserved_names.absent(job.workspace)
    outcome = supervise.follow(run, cancelled, on_output)
    return reserved_names.with_note(
        outcome, reserved_names.removed(job.workspace, absent)
    )


def check_script(workspace: Path, script: str) -> None:
    """Check that `script` is a regular file below the workspace, without links.

    Raises:
        CannotStart: it is not.
    """
    parts = PurePosixPath(script).parts
    # The last two are path separators on Windows.
    away = script.startswith("/") or ".." in parts or any(c in script for c in "\\:")
    if not parts or not _writable(script) or away:
        raise CannotStart(
            f"{script!r} is no path inside the workspace; expected a relative path of "
            "a Python file"
        )
    try:
        with walk.parent_folder(workspace, parts, create=False) as folder:
            walk.check_plain(folder.path / parts[-1], script)
            entry = walk.lstat(folder, parts[-1])
    except (FileRefused, OSError) as error:
        text = str(error).rstrip(".")
        raise CannotStart(
            f"{script!r} cannot be opened in the workspace ({text})"
        ) from error
    if entry is None or not stat.S_ISREG(entry.st_mode):
        raise CannotStart(f"{script!r} is no regular file")
    if entry.st_size > SCRIPT_BYTES:
        raise CannotStart(f"{script!r} is larger than {SCRIPT_BYTES // MIB} MiB")


def check_arguments(args: Sequence[str]) -> None:
    """Check that the arguments fit on a command line.

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


@contextmanager
def _own_copy(
    job: Job, kind: str, uid: int, choose: Choose | None, not_kept: list[str]
) -> Generator[Job]:
    """Yield the job, on a copy of its workspace if needed."""
    if kind == "none" and choose is None:
        yield job
        return
    roots = [
        str(folder.relative_to(job.workspace))
        for folder in job.roots
        if job.workspace in folder.parents
    ]
    guarded = [*roots, *reserved_names.present(job.workspace)]
    if os.name != "posix":
        if guarded:
            raise CannotStart(
                f"{', '.join(guarded)} in the workspace cannot be kept from a script "
                "on this system; use another folder as the workspace"
            )
        yield replace(job, uid=uid)
        return
    # Bubblewrap makes these read-only in place, but a folder above one of them could
    # still be renamed and recreated; the other kinds cannot make exceptions at all.
    nested = any("/" in path for path in roots)
    root = os.geteuid() == 0
    reserved = guarded and kind not in ("bubblewrap", "none")
    if not root and not nested and not reserved and choose is None:
        yield job
        return
    copy_uid = uid if root and kind != "none" else None
    with staging.staged(
        job.workspace, copy_uid, job.limits, roots, choose, not_kept
    ) as workspace:
        yield replace(job, workspace=workspace, uid=copy_uid)


def _python() -> tuple[str, ...]:
    # Not isolated mode (-I): a script may import modules next to it.
    return (interpreter.python(), "-s", "-B")
