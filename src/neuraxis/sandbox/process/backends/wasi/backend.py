"""WASI, on request only: a Python for WebAssembly, run by wasmtime in a process.

A job in, a launch out. The script's Python is a program of WebAssembly that reaches
the workspace and nothing else: no network, no processes, no threads, no other folder.
Where the kernel has Landlock it is put around the process as a second wall.

`wasi_parts` finds wasmtime and that Python, `wasi_code` compiles it and keeps what
came of it, `wasi_run` is the process.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from neuraxis.sandbox.process import interpreter
from neuraxis.sandbox.process.backends import landlock
from neuraxis.sandbox.process.backends.wasi import compile, find
from neuraxis.sandbox.process.backends.wasi.find import Found
from neuraxis.sandbox.process.job import HERE, CannotStart, Job, Launch, environment

WORKSPACE = "/workspace"


def roots(wasm: str, workspace: Path) -> tuple[Path, ...]:
    """What no script may change: the interpreter's folders and ours.

    Raises:
        CannotStart: something is missing, or the workspace is one of them.
    """
    found = find.find(wasm)
    cache = Path(os.path.realpath(compile.cache()))
    kept = tuple(dict.fromkeys((*interpreter.roots(), found.site, found.wasm, cache)))
    if workspace in kept:
        raise CannotStart(f"{workspace} is a folder of Python's own, and no workspace")
    return kept


def prepare(job: Job) -> Launch:
    """A launch that runs the job's Python command as a WASI program.

    Raises:
        CannotStart: something is missing, or what is compiled cannot be trusted.
    """
    found = find.find(job.wasm)
    orders = _orders(job, found)
    module = compile.compiled(found)
    orders["module"] = module
    try:
        launch = landlock.supervised(
            job,
            {
                **_walls(job),
                "argv": [*compile.runner(), json.dumps(orders)],
                "env": _environment(),
            },
            "wasi",
            # Address space is what it keeps a program in: far more than is used.
            without=("AS",),
        )
    except BaseException:
        os.close(module)
        raise
    return replace(launch, fds=(*launch.fds, module))


def plain(job: Job) -> Launch:
    """The same where the system is no POSIX: a process, and nothing around it.

    Raises:
        CannotStart: as for `prepare`.
    """
    found = find.find(job.wasm)
    module = str(compile.compiled_by_path(found))
    orders = {**_orders(job, found), "module": module, "lifeline": True}
    return Launch(
        kind="wasi",
        argv=(*compile.runner(), json.dumps(orders)),
        env=_environment(),
        cwd=job.workspace,
    )


def _orders(job: Job, found: Found) -> dict[str, Any]:
    argv = ["python", *(part.replace(HERE, WORKSPACE) for part in job.argv[1:])]
    try:
        "\0".join(argv).encode()
    except UnicodeEncodeError as error:
        raise CannotStart("a WASI program takes UTF-8 arguments only") from error
    return {
        "site": str(found.site),
        "code": str(compile.place(found)),
        "argv": argv,
        "env": {**environment(WORKSPACE), "TMPDIR": WORKSPACE},
        "memory": job.limits.memory,
        "uid": job.uid,
    }


def _environment() -> dict[str, str]:
    # Wasmtime would else start a thread for each processor.
    return {**compile.bare_environment(), "TOKIO_WORKER_THREADS": "1"}


def _walls(job: Job) -> dict[str, Any]:
    """What else holds the process, where the kernel has it."""
    if landlock.abi() < landlock.LEAST_ABI:
        return {}
    walls = landlock.walls(replace(job, network=False, uid=None))
    # `wasi_run` becomes the other user itself, once it has read what it needs; that
    # user is unknown in a namespace of root's own.
    return walls if job.uid is None else {**walls, "apart": False}
