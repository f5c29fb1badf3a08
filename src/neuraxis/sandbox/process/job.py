"""What goes into a sandbox and comes out: limits, the outcome, what a probe found.

Data only. The back ends (`bubblewrap`, `landlock`, `seatbelt`, `docker`) turn
a `Job` into a `Launch`; `process` starts the launch and answers with an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

MIB = 1024 * 1024
GUARDED = (".git", ".ssh", "neuraxis.toml")
"""Names at the top of a workspace that no script may change or make: what stands in
them is obeyed by programs outside the sandbox."""
HERE = "\0"
"""Stands for the workspace in a command; no argument can hold it."""


class Limits(Struct, frozen=True, kw_only=True):
    """How much a script may use before it is stopped."""

    seconds: float = 30
    """Time by the clock on the wall."""
    memory: int = 512 * MIB
    """Bytes, all processes of the script together."""
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
    """How a script ended."""

    ok: bool
    exit_code: int | None
    """None where it never started or was stopped; a signal n is 128 + n."""
    stdout: str
    stderr: str
    reason: str
    """Empty, or one sentence: why it was stopped or refused."""
    sandbox: str
    """What held it: `bubblewrap`, `landlock`, …, `limits only`, or `none: refused`."""
    seconds: float


class Probe(Struct, frozen=True, kw_only=True):
    """One kind of sandbox: whether it works on this machine, and why not."""

    kind: str
    works: bool
    detail: str


class Job(Struct, frozen=True, kw_only=True):
    """What to run, with every path real and absolute."""

    argv: tuple[str, ...]
    """The command; `HERE` stands for the folder as the script will see it."""
    roots: tuple[Path, ...]
    """Folders of the interpreter, readable inside."""
    workspace: Path
    limits: Limits
    network: bool = False
    sockets: bool = True
    """Whether UNIX sockets may be made (never where the host could be at the end)."""
    uid: int | None = None
    """The user to become first, where the runtime is root."""


class Launch(Struct, frozen=True, kw_only=True):
    """A command that runs a job inside a sandbox."""

    kind: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    fds: tuple[int, ...] = ()
    """Handed to the child and closed here once it has started."""
    status: int | None = None
    """Read end of a pipe that tells of a failed start; closed by `process`."""
    info: int | None = None
    """Read end of a pipe that tells the number of the first process in a namespace."""
    lifeline: int | None = None
    """Write end of a pipe; closing it makes the supervisor kill its tree."""
    close: Callable[[], None] | None = None
    """Removes what the launch needed (a folder, a container)."""


class CannotStart(Exception):
    """A back end cannot build or start a sandbox here; the text says why."""


def environment(workspace: str) -> dict[str, str]:
    """The whole environment of a script; nothing of the runtime's passes."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": workspace,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
