"""Landlock backend: kernel rules on files, ports and signals.

`launch.py` applies the rules, the system call filter and the limits in the child and
stays
as its supervisor. Needs no program and no privilege.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuraxis.sandbox.process import usage
from neuraxis.sandbox.process.backends import seccomp
from neuraxis.sandbox.process.job import (
    HERE,
    MIB,
    CannotStart,
    Job,
    Launch,
    Limits,
    environment,
)

_CREATE_RULESET, _VERSION = 444, 1
LEAST_ABI = 1
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_CHAR, _BLOCK = 1 << 6, 1 << 11
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_TCP = 0b11
_SCOPED = 0b11
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin")
_ETC = (
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives"),
    "/etc/mime.types",  # `mimetypes` reads it, and so does openpyxl
)
_ETC_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def abi() -> int:
    """Return the kernel's Landlock version; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version: int = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(version, 0)


def _handled(version: int, network: bool) -> list[int]:
    """Return the access rights that the rule set governs.

    A governed right is refused unless a rule grants it.
    """
    files = (1 << 13) - 1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
        files |= right if version >= since else 0
    handled = [files]
    if version >= 4:
        handled.append(0 if network else _TCP)
    if version >= 6:
        handled.append(_SCOPED)
    return handled


def _rules(job: Job, files: int) -> list[list[Any]]:
    readable: list[str] = [*_SYSTEM, *_ETC, *map(str, job.roots)]
    if job.network:
        readable += _ETC_NETWORK
    work = files & ~(_EXECUTE | _CHAR | _BLOCK | _IOCTL)
    granted = [(path, _EXECUTE | _READ | _LIST) for path in readable]
    granted += [(path, _READ | _WRITE | _IOCTL | _TRUNCATE) for path in _DEVICES]
    granted.append((str(job.workspace), work))
    rules: list[list[Any]] = []
    for path, rights in granted:
        real = os.path.realpath(path)
        if not os.path.lexists(real):
            continue
        allowed = rights if os.path.isdir(real) else rights & _OF_FILES
        rules.append([real, allowed & files])
    return rules


def rlimits(limits: Limits) -> dict[str, list[int]]:
    """Return resource limits of one process; the watchdog adds up the tree."""
    # The address space exceeds the memory in use: stacks, arenas, libraries.
    space = 2 * limits.memory + 256 * MIB
    return {
        "AS": [space, space],
        "FSIZE": [limits.file_bytes, limits.file_bytes],
        "NOFILE": [256, 256],
        "CPU": [limits.cpu_seconds, limits.cpu_seconds + 1],
        "CORE": [0, 0],
    }


def supervised(job: Job, plan: dict[str, Any], kind: str) -> Launch:
    """Return a launch whose `launch.py` stays to supervise the tree.

    Args:
        job: what to run.
        plan: additions to, and replacements in, the usual plan of `launch.py`.
        kind: the sandbox name in the outcome.
    """
    lifeline, hold = os.pipe()
    status, report = os.pipe()
    env = environment(str(job.workspace))
    plan = {
        "lifeline": lifeline,
        "status": report,
        "supervise": True,
        "processes": job.limits.processes,
        "cwd": str(job.workspace),
        "argv": [part.replace(HERE, str(job.workspace)) for part in job.argv],
        "env": env,
        **plan,
    }
    limits = rlimits(job.limits)
    owner = os.geteuid() if job.uid is None else job.uid
    if owner != 0:
        # Only used where `launch.py` cannot count this tree alone.
        max_tasks = usage.tasks_of_user(owner) + job.limits.processes + 2
        limits["NPROC"] = [max_tasks, max_tasks]
    plan["rlimits"] = limits
    return Launch(
        kind=kind,
        argv=(*launcher(), json.dumps(plan)),
        env=env,
        cwd=Path("/"),
        fds=(lifeline, report),
        status=status,
        lifeline=hold,
    )


def launcher() -> tuple[str, ...]:
    """Return the command that carries out a plan."""
    program = Path(__file__).parents[1] / "child" / "launch.py"
    return (os.path.realpath(sys.executable), "-I", "-S", str(program))


def reachable(paths: Iterable[Path], uid: int) -> bool:
    """Check whether another, unprivileged user can traverse every parent folder."""
    for path in paths:
        for folder in (path, *path.parents):
            with suppress(OSError):
                entry = folder.stat()
                bit = 0o100 if entry.st_uid == uid else 0o001
                if folder.is_dir() and not entry.st_mode & bit:
                    return False
    return True


def prepare(job: Job) -> Launch:
    """Return a launch that runs the job under Landlock.

    Raises:
        CannotStart: the kernel has no Landlock, or it cannot confine the job.
    """
    plan = _walls(job)
    site_folder = str(Path(__file__).parents[1] / "child" / "site")
    plan["env"] = {**environment(str(job.workspace)), "PYTHONPATH": site_folder}
    return supervised(job, plan, "landlock")


def _walls(job: Job) -> dict[str, Any]:
    """Return the plan's isolation: Landlock rules, seccomp filter and user."""
    version = abi()
    if version < LEAST_ABI:
        raise CannotStart("the kernel offers no Landlock")
    for root in job.roots:
        if root == job.workspace or job.workspace in root.parents:
            raise CannotStart(
                f"the Python interpreter ({root}) lies in the workspace, where a "
                "script could change it"
            )
    handled = _handled(version, job.network)
    plan: dict[str, Any] = {
        "landlock": {"handled": handled, "rules": _rules(job, handled[0])},
        "seccomp": seccomp.program(
            os.uname().machine,
            private=False,
            network=job.network,
            signals=version >= 6,
            truncate=version >= 3,
        ).hex(),
    }
    if job.uid is not None:
        plan["uid"] = job.uid
        plan["read_all"] = not reachable(job.roots, job.uid)
    return plan


def limits_only(job: Job) -> Launch:
    """Return a launch that only limits resources, without isolation."""
    plan: dict[str, Any] = {}
    if job.uid is not None:
        plan["uid"] = job.uid
    return supervised(job, plan, "limits only")
