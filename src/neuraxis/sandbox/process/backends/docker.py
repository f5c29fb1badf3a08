"""Docker backend, on request only: a new container for every run.

The image must exist already; nothing is pulled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from neuraxis.sandbox.process import interpreter
from neuraxis.sandbox.process.job import HERE, CannotStart, Job, Launch, environment

IMAGE = "python:3-slim"
"""Default image, unless `NEURAXIS_SANDBOX_IMAGE` names another."""
_WORKSPACE = "/workspace"


def prepare(job: Job) -> Launch:
    """Return a launch that runs the job in a container.

    Raises:
        CannotStart: there is no docker or podman program.
    """
    program = shutil.which("docker") or shutil.which("podman")
    if program is None or not os.path.isabs(program):
        raise CannotStart("neither docker nor podman is installed")
    if job.workspace in Path(program).parents:
        raise CannotStart(f"{program} lies in the workspace and is not trusted")
    limits, name = job.limits, f"neuraxis-{os.urandom(8).hex()}"
    user = job.uid if job.uid is not None else os.geteuid()
    group = job.uid if job.uid is not None else os.getegid()
    options = [
        *("run", "--rm", "--name", name, "--pull", "never", "--read-only"),
        *("--network", "bridge" if job.network else "none"),
        *("--pids-limit", str(limits.processes), "--memory", str(limits.memory)),
        *("--memory-swap", str(limits.memory), "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--user", f"{user}:{group}"),
        *("--ulimit", f"fsize={limits.file_bytes}", "--ulimit", "core=0"),
        *("--ulimit", f"cpu={limits.cpu_seconds}", "--ulimit", "nofile=256"),
        *("--tmpfs", "/tmp:size=64m,mode=1777", "--workdir", _WORKSPACE),
        *("--mount", f"type=bind,source={job.workspace},target={_WORKSPACE}"),
    ]
    if "," in str(job.workspace):
        raise CannotStart("docker cannot mount a folder with a comma in its path")
    for key, value in environment(_WORKSPACE).items():
        if key != "PATH":
            options += ["--env", f"{key}={value}"]
    command = [part.replace(HERE, _WORKSPACE) for part in job.argv]
    if command[0] == interpreter.python():
        command[0] = "python3"
    image = os.environ.get("NEURAXIS_SANDBOX_IMAGE") or IMAGE

    def remove() -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [program, "rm", "--force", name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
                check=False,
            )

    keep = ("HOME", "PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "XDG_RUNTIME_DIR")
    keep += ("SYSTEMROOT", "USERPROFILE")  # Windows uses these instead of HOME.
    return Launch(
        kind="docker",
        argv=(program, *options, image, *command),
        env={key: os.environ[key] for key in keep if key in os.environ},
        cwd=Path("/"),
        close=remove,
    )
