"""A program of WebAssembly -> machine code that wasmtime runs as it is.

Compiled once, in a process of its own, and kept in the user's cache. It is taken only
from a folder and a file that are this user's alone, as the open file that was checked,
and is named after what it was made of.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from neuraxis.sandbox.process.backends.wasi.find import Found
from neuraxis.sandbox.process.job import CannotStart
from neuraxis.settings import user_dir

_log = logging.getLogger(__name__)

COMPILING = 600
"""Seconds that it may take."""
_FAILED = "wasi: "


def cache() -> Path:
    """The folder of what was compiled."""
    return user_dir("cache") / "wasi"


def runner() -> tuple[str, ...]:
    """The command that carries out the orders of `wasi_run`."""
    # On Windows the program of a venv only starts another one.
    python: str = getattr(sys, "_base_executable", "") or sys.executable
    program = Path(__file__).parents[2] / "child" / "wasi.py"
    return (os.path.realpath(python), "-I", "-S", str(program))


def bare_environment() -> dict[str, str]:
    """What a Python needs to begin at all."""
    needed = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    return {"LANG": "C.UTF-8", **needed}


def place(found: Found) -> Path:
    """Where its machine code is, or will be."""
    import platform

    machine = re.sub(r"\W", "", platform.machine())
    name = f"{found.digest}-{found.version}-{sys.platform}-{machine}.cwasm"
    return cache() / name


def compiled(found: Found) -> int:
    """The program as machine code: an open file that only this user could write.

    Raises:
        CannotStart: it could not be compiled, or others could have written it.
    """
    folder = _own_folder(cache())
    name, flags = place(found).name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            file = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            _put(found, folder, name)
            file = os.open(name, flags, dir_fd=folder)
        entry = os.fstat(file)
        if (
            not stat.S_ISREG(entry.st_mode)
            or entry.st_uid != os.geteuid()
            or entry.st_mode & 0o022
            or entry.st_nlink != 1
        ):
            os.close(file)
            raise CannotStart(
                f"{place(found)} is machine code that others could have written; "
                "it is not run. Remove it"
            )
    except OSError as error:
        raise CannotStart(f"{cache()} cannot be used ({error})") from error
    finally:
        os.close(folder)
    return file


def _own_folder(path: Path) -> int:
    """The folder, open; made if it is not there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(
            path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        )
    except OSError as error:
        raise CannotStart(f"{path} cannot be used ({error})") from error
    entry = os.fstat(folder)
    if entry.st_uid != os.geteuid() or entry.st_mode & 0o077:
        os.close(folder)
        raise CannotStart(
            f"{path} holds machine code that is run, and is not this user's alone "
            "(mode 0700); remove it"
        )
    return folder


def compiled_by_path(found: Found) -> Path:
    """The same where folders cannot be opened (Windows): rights of the profile hold.

    Raises:
        CannotStart: it could not be compiled.
    """
    target = place(found)
    try:
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            new = target.with_name(f".{os.urandom(8).hex()}")
            try:
                with open(new, "xb") as code:
                    _compile(found, code)
                os.replace(new, target)
            finally:
                new.unlink(missing_ok=True)
    except OSError as error:
        raise CannotStart(f"{cache()} cannot be used ({error})") from error
    return target


def _put(found: Found, folder: int, name: str) -> None:
    """Put the machine code in place, whole or not at all."""
    new = f".{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, 0o644, dir_fd=folder), "wb") as code:
            _compile(found, code)
        os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(OSError):
            os.unlink(new, dir_fd=folder)


def _compile(found: Found, code: IO[bytes]) -> None:
    """Write the machine code into a file, by a process of its own."""
    _log.info("compiling %s, once", found.wasm)
    orders = json.dumps({"site": str(found.site), "digest": found.digest})
    try:
        with open(found.wasm, "rb") as program:
            done = subprocess.run(
                [*runner(), orders],
                stdin=program,
                stdout=code,
                stderr=subprocess.PIPE,
                timeout=COMPILING,
                check=False,
                env=bare_environment(),
                cwd="/",
            )
        os.fsync(code.fileno())
    except subprocess.TimeoutExpired as error:
        raise CannotStart(f"compiling {found.wasm} took too long") from error
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise CannotStart(
            f"{found.wasm} cannot be compiled "
            f"({''.join(told).removeprefix(_FAILED) or done.returncode})"
        )
