"""Data of a sandbox run: limits, job, launch, outcome and probe.

The backends (`bubblewrap`, `landlock`, `seatbelt`, `docker`) make a `Launch` from a
`Job`; `supervise` starts it and returns an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

MIB = 1024 * 1024
GUARDED = (".git", ".ssh", "neuraxis.toml", "neuraxis.lock.json")
"""Top-level workspace names that no script may change or create.

Programs outside the sandbox obey what these files contain.
"""
HERE = "\0"
"""Placeholder for the workspace in a command; no argument can contain it."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a script; it is stopped when one is exceeded."""

    seconds: float = 30
    """Seconds of wall-clock time."""
    memory: int = 512 * MIB
    """Bytes of memory, all processes of the script together."""
    processes: int = 64
    """Processes and threads together."""
    file_bytes: int = 64 * MIB
    """Size of one file."""
    disk: int = 128 * MIB
    """Bytes by which the workspace may grow."""
    files: int = 10_000
    """Files and folders that may be added to the workspace."""
    output: int = MIB
    """Bytes of standard output, and of standard error."""
    cpu_seconds: int = 30
    """Processor time, all processes together."""


class Outcome(Struct, frozen=True, kw_only=True):
    """Outcome of a script."""

    ok: bool
    exit_code: int | None
    """Exit code: None without one; 128 + n for signal n."""
    stdout: str
    stderr: str
    reason: str
    """Empty, or one sentence that says why it was stopped or refused."""
    sandbox: str
    """Sandbox used: `bubblewrap`, `landlock`, …, `limits only`, or `none: refused`."""
    seconds: float
    not_kept: tuple[str, ...] = ()
    """Changes that could not be brought back from its copy, and why."""


class Probe(Struct, frozen=True, kw_only=True):
    """Probe result: whether one kind of sandbox works here."""

    kind: str
    works: bool
    detail: str


class Job(Struct, frozen=True, kw_only=True):
    """Script to run, with real and absolute paths."""

    argv: tuple[str, ...]
    """Command; `HERE` stands for the workspace as the script sees it."""
    roots: tuple[Path, ...]
    """Folders of the interpreter, readable inside."""
    workspace: Path
    limits: Limits
    network: bool = False
    sockets: bool = True
    """Whether UNIX sockets are allowed (never where one could reach the host)."""
    uid: int | None = None
    """User to switch to if the runtime is root."""


class Launch(Struct, frozen=True, kw_only=True):
    """A command that runs a job inside a sandbox."""

    kind: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    fds: tuple[int, ...] = ()
    """Descriptors that the child inherits; closed here after the start."""
    status: int | None = None
    """Read end of a pipe that reports a failed start."""
    info: int | None = None
    """Read end of a pipe that reports the namespace's first process id."""
    lifeline: int | None = None
    """Write end of a pipe; closing it kills the supervised tree."""
    close: Callable[[], None] | None = None
    """Remove what the launch created (a folder, a container)."""


class CannotStart(Exception):
    """Error: a backend cannot build or start a sandbox here."""


def environment(workspace: str) -> dict[str, str]:
    """Return a script's complete environment; nothing is inherited from the runtime."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": workspace,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
