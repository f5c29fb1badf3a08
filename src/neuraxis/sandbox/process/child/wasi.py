"""The child's side of `wasi`: a plan in JSON -> a WASI program run by wasmtime.

A program of its own (`python -I -S wasi_run.py PLAN`), so that a script is ended by
ending a process: no interrupt of wasmtime's reaches a host call that blocks. Imports
nothing of this package. What it cannot do it tells on standard error behind `wasi: `,
with the exit code 125.

Plan keys: `site` (the folder of the package wasmtime), and either `digest` (compile
what comes on standard input, if that is its SHA-256, to standard output) or all of
`module` (a descriptor, or a path, of what was compiled), `code` (where that is, to be
told), `argv`, `env`, `memory`, `uid` (whom to become before the program begins, or
null), and perhaps `lifeline` (end with standard input). The current folder is the
only one that the program can open.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import threading
from typing import Any

FAILED = 125
KILLED, TRAPPED = 137, 134
"""As of a process that was killed, and of one that was aborted: the program did what
no program may."""
WORKSPACE = "/workspace"
_PREVIEW = "wasi_snapshot_preview1"


class Ended(Exception):
    """The program ended itself, with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def compiled(wasmtime: Any, digest: str) -> None:
    """Write machine code for the program that was read, and was the right one."""
    program = sys.stdin.buffer.read()
    if hashlib.sha256(program).hexdigest() != digest:
        raise ValueError("the file changed while it was read")
    code = wasmtime.Module(wasmtime.Engine(), program).serialize()
    sys.stdout.buffer.write(code)
    sys.stdout.buffer.flush()


def loaded(wasmtime: Any, engine: Any, module: int | str) -> Any:
    """What was compiled; by a descriptor it is the very file that was checked."""
    if isinstance(module, str):
        return wasmtime.Module.deserialize_file(engine, module)
    if os.path.exists(f"/dev/fd/{module}"):
        try:
            return wasmtime.Module.deserialize_file(engine, f"/dev/fd/{module}")
        except wasmtime.WasmtimeError:
            pass  # a system where that is no file; read it instead
    os.lseek(module, 0, os.SEEK_SET)
    with os.fdopen(module, "rb", closefd=False) as file:
        return wasmtime.Module.deserialize(engine, file.read())


def become(uid: int) -> None:
    """Give up root for good, and with it every right that root has."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    if 0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid()):
        raise OSError("root could not be given up")


def end_with_input() -> None:
    """Let this process end as soon as nobody holds its standard input open."""

    def wait() -> None:
        while os.read(0, 512):
            pass
        os._exit(KILLED)

    threading.Thread(target=wait, daemon=True).start()


def run(wasmtime: Any, plan: dict[str, Any]) -> int:
    """Run the program to its end; gives its exit code."""
    engine = wasmtime.Engine()
    try:
        module = loaded(wasmtime, engine, plan["module"])
    except wasmtime.WasmtimeError as error:
        # Of another machine that shares this home, or broken.
        raise ValueError(f"{error}; remove {plan['code']}") from error
    if plan["uid"] is not None:
        become(plan["uid"])
    linker = wasmtime.Linker(engine)
    linker.allow_shadowing = True
    linker.define_wasi()

    def end(code: int) -> None:
        raise Ended(code & 0xFF)

    # wasmtime's own takes no code above 125, and scripts use them.
    number = wasmtime.ValType.i32()
    linker.define_func(_PREVIEW, "proc_exit", wasmtime.FuncType([number], []), end)
    store = wasmtime.Store(engine)
    store.set_limits(memory_size=plan["memory"], instances=1, memories=1)
    config = wasmtime.WasiConfig()
    config.argv = plan["argv"]
    config.env = list(plan["env"].items())
    # The root too: a program begins there, and names files as it likes.
    for place in (WORKSPACE, "/"):
        config.preopen_dir(".", place)
    config.inherit_stdout()
    config.inherit_stderr()
    store.set_wasi(config)
    start = linker.instantiate(store, module).exports(store)["_start"]
    try:
        start(store)
    except Ended as end_:
        return end_.code
    except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
        # The last of its causes, which it numbers.
        told = str(error).strip().rpartition("\n")[2].lstrip(" 0123456789:")
        os.write(2, f"{told}\n".encode())
        return TRAPPED
    return 0


def main() -> int:
    """Carry out the plan given as the only argument."""
    try:
        plan: dict[str, Any] = json.loads(sys.argv[1])
        # Last: nothing there stands in for the standard library.
        sys.path.append(plan["site"])
        wasmtime: Any = importlib.import_module("wasmtime")
        if plan.get("lifeline"):
            end_with_input()
        if "digest" not in plan:
            return run(wasmtime, plan)
        compiled(wasmtime, plan["digest"])
    except Exception as error:  # noqa: BLE001 - none of it is a result of the script's
        told = " ".join(str(error).split())[:500]
        os.write(2, f"wasi: {told or type(error).__name__}\n".encode())
        return FAILED
    return 0


if __name__ == "__main__":
    # Not by the usual way: nothing waits for wasmtime's own threads.
    os._exit(main())
