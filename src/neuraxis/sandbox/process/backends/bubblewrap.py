"""Bubblewrap backend: a new namespace for every run, without privileges.

It contains the system's programs and the interpreter (read-only), the workspace at
`/workspace` and small temporary folders; there is no network, no other process and no
root. If the runtime is root, `launch.py` first becomes the job's user: started by root,
bubblewrap would leave the kernel's settings writable.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from neuraxis.sandbox.process import interpreter
from neuraxis.sandbox.process.backends import seccomp
from neuraxis.sandbox.process.backends.landlock import launcher, reachable, rlimits
from neuraxis.sandbox.process.job import (
    GUARDED,
    HERE,
    CannotStart,
    Job,
    Launch,
    environment,
)

WORKSPACE = "/workspace"
OLDEST = (0, 5)
"""First version that can limit the size of a temporary folder (`--size`)."""
_SIZE = str(64 * 1024 * 1024)
_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_ETC_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl")
_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "driver")
_MASKED = ("keys", "key-users", "kcore", "kallsyms", "timer_list", "sched_debug")
_LIMITER = "/usr/bin/prlimit"


def find(workspace: Path) -> str:
    """Find the program on PATH, outside folders that scripts can write.

    Raises:
        CannotStart: there is none, or only untrusted ones.
    """
    passed: list[str] = []
    current = Path(os.path.realpath("."))
    forbidden = [Path(os.path.realpath(workspace))]
    if current != Path("/"):
        forbidden.append(current)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder) / "bwrap"
        try:
            real = Path(os.path.realpath(path, strict=True))
            entry = real.stat()
        except OSError:
            continue
        candidate = Path(os.path.normpath(path))
        if not os.path.isabs(folder) or any(
            place in form.parents for place in forbidden for form in (real, candidate)
        ):
            passed.append(f"{path} (in the workspace or the current folder)")
        elif (
            not stat.S_ISREG(entry.st_mode)
            or entry.st_uid not in (0, os.geteuid())
            or entry.st_mode & 0o002
        ):
            passed.append(f"{path} (others could have changed it)")
        elif os.access(real, os.X_OK):
            return str(real)
    passed_text = f"; not taken: {', '.join(passed)}" if passed else ""
    raise CannotStart(f"bubblewrap (the program bwrap) is not installed{passed_text}")


def _version(program: str) -> tuple[int, ...]:
    try:
        process = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
            env={},
        ).stdout.decode("ascii", "replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotStart(f"{program} does not run ({error})") from error
    numbers = re.search(r"(\d{1,6})\.(\d{1,6})", process)
    return tuple(map(int, numbers.groups())) if numbers else (0,)


def check(program: str) -> None:
    """Check that the program is new enough.

    Raises:
        CannotStart: it is not.
    """
    if (version := _version(program)) < OLDEST:
        raise CannotStart(
            f"{program} is version {'.'.join(map(str, version))}; "
            f"{'.'.join(map(str, OLDEST))} or newer is needed"
        )


def _system() -> list[str]:
    args = ["--ro-bind", "/usr", "/usr"]
    for name in _LINKED:
        place = f"/{name}"
        if os.path.islink(place):
            args += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            args += ["--ro-bind", place, place]
    return args


def _workspace(job: Job, sources: dict[Path, str]) -> list[str]:
    args = ["--bind", str(job.workspace), WORKSPACE]
    for name in GUARDED:
        place = job.workspace / name
        if place.exists() and not place.is_symlink():
            args += ["--ro-bind", str(place), f"{WORKSPACE}/{name}"]
    for root in job.roots:
        if job.workspace in root.parents:
            inner = f"{WORKSPACE}/{root.relative_to(job.workspace)}"
            args += ["--ro-bind", sources[root], inner]
    return args


def arguments(
    job: Job, sources: dict[Path, str], seccomp_fd: int, info: int
) -> list[str]:
    """Return bubblewrap's arguments, up to the command.

    Args:
        job: what to run.
        sources: where each of the interpreter's folders can be reached from.
        seccomp_fd: the filter.
        info: where bubblewrap writes the number of the first process inside.
    """
    env = {**environment(WORKSPACE), "TMPDIR": "/tmp"}
    args = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    if job.network:
        args.append("--share-net")
    args += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox"]
    args += ["--cap-drop", "ALL", "--clearenv"]
    for name, value in env.items():
        args += ["--setenv", name, value]
    args += _system()
    for path in (*_ETC, *(_ETC_NETWORK if job.network else ())):
        if os.path.exists(path):
            args += ["--ro-bind", os.path.realpath(path), path]
    args += ["--proc", "/proc", "--dev", "/dev"]
    for name in _PROC:
        if os.path.exists(f"/proc/{name}"):
            args += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    for name in _MASKED:
        if os.path.exists(f"/proc/{name}"):
            args += ["--ro-bind-try", "/dev/null", f"/proc/{name}"]
    args += ["--size", _SIZE, "--tmpfs", "/dev/shm", "--size", _SIZE, "--tmpfs", "/tmp"]
    # After /tmp, since an interpreter may live below it.
    for root in job.roots:
        args += ["--ro-bind", sources[root], str(root)]
    for link in interpreter.links():
        args += ["--ro-bind", os.path.realpath(interpreter.python()), str(link)]
    args += _workspace(job, sources)
    if not os.path.exists(_LIMITER):
        launch_program = launcher()[-1]
        args += ["--ro-bind", launch_program, "/launch.py"]
    args += ["--chdir", WORKSPACE, "--remount-ro", "/dev", "--remount-ro", "/"]
    args += ["--seccomp", str(seccomp_fd), "--info-fd", str(info)]
    return [*args, "--", *_limited(job, env)]


def _limited(job: Job, env: dict[str, str]) -> list[str]:
    """Wrap the command in limits, set inside the namespace that counts tasks."""
    limits = {**rlimits(job.limits), "NPROC": [job.limits.processes] * 2}
    command = [part.replace(HERE, WORKSPACE) for part in job.argv]
    if os.path.exists(_LIMITER):
        options = [
            f"--{name.lower()}={soft}:{hard}" for name, (soft, hard) in limits.items()
        ]
        return [_LIMITER, *options, "--", *command]
    plan = {"status": 2, "rlimits": limits, "argv": command, "env": env}
    return [interpreter.python(), "-I", "-S", "/launch.py", json.dumps(plan)]


def prepare(job: Job) -> Launch:
    """Return a launch that runs the job in its own namespaces.

    Raises:
        CannotStart: there is no bubblewrap to trust.
    """
    program = find(job.workspace)
    rules = seccomp.program(
        os.uname().machine, private=True, network=job.network, sockets=job.sockets
    )
    sources = {root: os.path.realpath(root) for root in job.roots}
    plan: dict[str, Any] = {}
    if job.uid is not None and not reachable(job.roots, job.uid):
        base = job.workspace.parent / "roots"
        base.mkdir()
        plan = {"base": str(base), "mounts": []}
        for index, root in enumerate(job.roots):
            plan["mounts"].append([sources[root], str(index)])
            sources[root] = str(base / str(index))
    info, info_writer = os.pipe()
    fd = os.memfd_create("neuraxis-seccomp") if sys.platform == "linux" else -1
    os.write(fd, rules)
    os.lseek(fd, 0, os.SEEK_SET)
    command = (program, *arguments(job, sources, fd, info_writer))
    if job.uid is None:
        return Launch(
            kind="bubblewrap",
            argv=command,
            env={},
            cwd=Path("/"),
            fds=(fd, info_writer),
            info=info,
        )
    status, report = os.pipe()
    plan |= {"uid": job.uid, "status": report, "argv": list(command), "env": {}}
    return Launch(
        kind="bubblewrap",
        argv=(*launcher(), json.dumps(plan)),
        env={},
        cwd=Path("/"),
        fds=(fd, info_writer, report),
        status=status,
        info=info,
    )
