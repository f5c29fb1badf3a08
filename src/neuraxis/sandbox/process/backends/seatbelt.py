"""Seatbelt backend for macOS: `sandbox-exec` with a deny-by-default profile.

Apple deprecated `sandbox-exec` but offers no replacement.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from neuraxis.sandbox.process.backends.landlock import supervised
from neuraxis.sandbox.process.job import HERE, CannotStart, Job, Launch

PROGRAM = "/usr/bin/sandbox-exec"
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Apple",
    "/private/etc/localtime",
    "/private/var/db/timezone",
    "/private/var/db/dyld",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def _quoted(path: str) -> str:
    if any(char in path for char in '"\\\n\0'):
        raise CannotStart(f"the path {path!r} cannot be written in a sandbox profile")
    return f'"{path}"'


def profile(job: Job) -> str:
    """Return the rules in the profile language."""
    roots = [os.path.realpath(root) for root in job.roots]
    places = (*_SYSTEM, *map(str, job.roots), *roots)
    readable = " ".join(f"(subpath {_quoted(path)})" for path in places)
    devices = " ".join(f"(literal {_quoted(path)})" for path in _DEVICES)
    workspace = f"(subpath {_quoted(str(job.workspace))})"
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        f"(allow process-exec {readable})",
        f"(allow file-read* {readable} {devices} {workspace})",
        '(allow file-read-metadata (literal "/"))',
        f"(allow file-write* {workspace})",
        f"(allow file-write-data {devices})",
        "(allow sysctl-read)",
        "(allow signal (target same-sandbox))",
        "(allow ipc-posix-sem)",
    ]
    if job.network:
        lines += [
            '(allow network-outbound (remote ip "*:*"))',
            '(allow file-read* (literal "/private/etc/resolv.conf") '
            '(literal "/private/etc/hosts") (subpath "/private/etc/ssl"))',
            '(allow mach-lookup (global-name "com.apple.dnssd.service"))',
        ]
    return "\n".join(lines)


def prepare(job: Job) -> Launch:
    """Return a launch that runs the job under a profile.

    Raises:
        CannotStart: this is not macOS, or a profile cannot confine the job.
    """
    if sys.platform != "darwin" or not os.path.exists(PROGRAM):
        raise CannotStart("sandbox-exec is a part of macOS only")
    for root in job.roots:
        if root == job.workspace or job.workspace in root.parents:
            raise CannotStart(f"the Python interpreter ({root}) lies in the workspace")
    argv = [part.replace(HERE, str(job.workspace)) for part in job.argv]
    plan: dict[str, Any] = {"argv": [PROGRAM, "-p", profile(job), *argv]}
    if job.uid is not None:
        plan["uid"] = job.uid
    return supervised(job, plan, "seatbelt")
