"""Folders and links that a script's Python interpreter needs.

They are read-only, and none may be a home folder or the root of the file system, since
a script can read all of it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from neuraxis.sandbox.process.job import CannotStart

SYSTEM = (Path("/usr"), Path("/lib"), Path("/lib64"), Path("/bin"), Path("/sbin"))


def python() -> str:
    """Return the interpreter's start path, which identifies a virtual environment."""
    return os.path.abspath(sys.executable)


def _inside(path: Path, folders: tuple[Path, ...] | list[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)


def roots() -> tuple[Path, ...]:
    """Return the interpreter's folders outside the system's own, with their real paths.

    Raises:
        CannotStart: the interpreter is in a folder that scripts must not read.
    """
    folders: list[Path] = []
    prefixes = (sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix)
    # This package too: its checkout may be the workspace, and it starts sandboxes.
    package = Path(__file__).parents[2]
    for prefix in (*prefixes, package):
        path = Path(os.path.abspath(prefix))
        for form in (path, Path(os.path.realpath(path))):
            if not _inside(form, [*SYSTEM, *folders]):
                folders.append(form)
    homes = {
        Path("/"),
        Path("/home"),
        Path("/root"),
        Path(os.path.expanduser("~")),
        Path("/tmp"),
    }
    for form in folders:
        if form in homes:
            raise CannotStart(
                f"the Python interpreter's folder is {form}, which a script must not "
                "read; use a Python, or a venv, in a folder of its own"
            )
    return tuple(folders)


def links() -> tuple[Path, ...]:
    """Return the symbolic links from the interpreter's path to its file."""
    covered = [*roots(), *SYSTEM]
    symlinks: list[Path] = []
    path = Path(python())
    for _ in range(20):
        if not _inside(path, covered):
            symlinks.append(path)
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
    return tuple(symlinks)
