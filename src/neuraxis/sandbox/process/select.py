"""Select a sandbox: the strongest that works here, or a refusal.

`choose` maps a mode to one kind; `prepare` returns its launch; `probe` tries each kind
once with a real run of `true` and stores the result.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from neuraxis.sandbox.process import interpreter, staging, supervise, usage
from neuraxis.sandbox.process.backends import bubblewrap, docker, landlock, seatbelt
from neuraxis.sandbox.process.job import (
    MIB,
    CannotStart,
    Job,
    Launch,
    Limits,
    Outcome,
    Probe,
)

_log = logging.getLogger(__name__)

AUTOMATIC = ("bubblewrap", "landlock", "seatbelt")
"""Kinds that `auto` considers, strongest first."""
ON_REQUEST = ("docker",)
MODES = ("auto", *AUTOMATIC, *ON_REQUEST, "none")
VARIABLE = "NEURAXIS_SANDBOX"
_BACK_ENDS = {
    "bubblewrap": bubblewrap.prepare,
    "landlock": landlock.prepare,
    "seatbelt": seatbelt.prepare,
    "docker": docker.prepare,
    "none": landlock.limits_only,
}


def choose(mode: str, *, allow_none: bool, uid: int) -> str:
    """Return the kind of sandbox for the next run.

    Raises:
        CannotStart: none works here; or the mode is unknown, or not allowed.
    """
    if os.name != "posix" and mode not in ON_REQUEST:
        raise CannotStart(
            "this system has no sandbox of its own for scripts: set "
            'sandbox.mode = "docker", or use Linux (WSL2 has it) or macOS'
        )
    if mode == "none":
        if not allow_none or os.environ.get(VARIABLE) != "none":
            raise CannotStart(
                'running without a sandbox needs the settings sandbox.mode = "none" '
                "and sandbox.allow_none = true, and the environment variable "
                f"{VARIABLE}=none"
            )
        _log.warning("a script runs without a sandbox: %s=none", VARIABLE)
        return "none"
    if mode in ON_REQUEST:
        return mode
    if mode != "auto" and mode not in AUTOMATIC:
        modes = ", ".join(MODES)
        raise CannotStart(f"{mode!r} is no kind of sandbox; expected one of {modes}")
    tried: list[str] = []
    for kind in AUTOMATIC if mode == "auto" else (mode,):
        probe_result = _try(kind, uid)
        if probe_result.works:
            return kind
        tried.append(f"{kind}: {probe_result.detail}")
    raise CannotStart(
        "no sandbox works on this machine, and scripts are never run without one. "
        f"Tried {'; '.join(tried)}. Install bubblewrap, use a kernel with Landlock, or "
        'set sandbox.mode = "docker"'
    )


def prepare(kind: str, job: Job) -> Launch:
    """Return the job's launch for that kind of sandbox.

    Raises:
        CannotStart: it cannot be built.
    """
    return _BACK_ENDS[kind](job)


def roots(kind: str) -> tuple[Path, ...]:
    """Return the folders that a script can read but not change.

    Raises:
        CannotStart: it lies where a script must not be.
    """
    return () if kind == "none" else interpreter.roots()


def probe(uid: int) -> tuple[Probe, ...]:
    """Return the probe results of every kind that `auto` considers."""
    return tuple(_try(kind, uid) for kind in AUTOMATIC)


@functools.cache
def _try(kind: str, uid: int) -> Probe:
    """Run `true` in the sandbox, once per process."""
    if os.name != "posix":
        return Probe(kind=kind, works=False, detail="not for this system")
    limits = Limits(seconds=10, memory=256 * MIB)
    try:
        with ExitStack() as stack:
            folder = Path(
                os.path.realpath(
                    stack.enter_context(tempfile.TemporaryDirectory(prefix="neuraxis-"))
                )
            )
            job = Job(
                argv=(_true(),),
                roots=roots(kind),
                workspace=folder,
                limits=limits,
            )
            if os.geteuid() == 0:
                nothing = (interpreter.python(), "-I", "-S", "-c", "")
                copy = stack.enter_context(staging.staged(folder, uid, limits))
                job = replace(job, argv=nothing, workspace=copy, uid=uid)
            if kind == "bubblewrap":
                bubblewrap.check(bubblewrap.find(job.workspace))
            outcome = _run(kind, job)
    except CannotStart as error:
        return Probe(kind=kind, works=False, detail=str(error))
    if outcome.ok:
        return Probe(kind=kind, works=True, detail=_praise(kind))
    detail = outcome.reason or outcome.stderr.strip().splitlines()[-1:] or ["no reason"]
    text = detail if isinstance(detail, str) else detail[0]
    return Probe(kind=kind, works=False, detail=text.rstrip("."))


def _run(kind: str, job: Job) -> Outcome:
    before = usage.disk(job.workspace)
    run = supervise.Run(launch=prepare(kind, job), job=job, before=before)
    return supervise.follow(run, None, None)


def _true() -> str:
    return "/bin/true" if os.path.exists("/bin/true") else "/usr/bin/true"


def _praise(kind: str) -> str:
    if kind == "landlock":
        return f"Landlock version {landlock.abi()}"
    if kind == "bubblewrap" and sys.platform == "linux":
        return "separate namespaces, system call filter"
    return "works"
