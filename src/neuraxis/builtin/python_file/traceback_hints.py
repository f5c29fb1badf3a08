"""Give advice on the last line of a script's traceback.

A script has no keyboard, no screen and no package installation, and Python's messages
do not explain that to a model.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

from neuraxis.sandbox.files import workspace as files

_HINTS = (
    (
        r"EOFError",
        "Nobody can type into a script: write the values into it, or read a file.",
    ),
    (
        r"ImportError: attempted relative import",
        "A script is no part of a package: import a module by its name, without dots.",
    ),
    (
        r".*(TclError|no display|cannot connect to X|no \$DISPLAY)",
        "There is no screen: write what is to be seen into a file.",
    ),
    (
        r"MemoryError",
        "The memory of a script is bounded: work on the data part by part.",
    ),
    (
        r"(PermissionError|OSError).*(Read-only file system|denied|not permitted)",
        "A script can use the files of the workspace only, its current folder.",
    ),
    (
        r"FileNotFoundError",
        "A script sees the files of the workspace only; its current folder is the "
        "top of the workspace, wherever the script lies.",
    ),
)
_OFFLINE = re.compile(
    r".*(gaierror|URLError|ConnectError|ConnectionError|NameResolutionError"
    r"|Network is unreachable|name resolution|Max retries exceeded)"
)
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w]+)")
_HIDDEN = re.compile(
    r".*(?:module '(\w+)' has no attribute|cannot import name '\w+' from "
    r"(?:partially initialized module )?'(\w+)')"
)


def hint(message: str, script: str, workspace: Path, network: bool) -> str:
    """Return advice on an error of a script, or nothing.

    Args:
        message: the last line of the traceback.
        script: the path of the script.
        workspace: the folder of the script and its modules.
        network: whether the script had network access.
    """
    if match := _MISSING.match(message):
        return _of_missing(match[1], script, workspace)
    if match := _HIDDEN.match(message):
        return _of_hidden(match[1] or match[2], script, workspace)
    if not network and _OFFLINE.match(message):
        return "A script has no network: fetch with a command, and give it the file."
    for pattern, text in _HINTS:
        if re.match(pattern, message):
            return text
    return ""


def _of_missing(name: str, script: str, workspace: Path) -> str:
    folder = script.rpartition("/")[0]
    existing = [
        path
        for pattern in (f"**/{name}.py", f"**/{name}/__init__.py")
        for path in files.list_files(workspace, "", pattern, most=5).files
    ]
    if existing:
        return (
            f"There is {existing[0]!r}, but a script imports from its own folder "
            f"({folder or 'the top of the workspace'}): move one of them."
        )
    return (
        f"The package {name!r} is not installed for scripts, and a script cannot "
        "install one: do it with the standard library, or with a command."
    )


def _of_hidden(name: str, script: str, workspace: Path) -> str:
    """Return advice if a file such as `random.py` hides a module."""
    folder = script.rpartition("/")[0]
    path = f"{folder}/{name}.py" if folder else f"{name}.py"
    if not (workspace / path).is_file():
        return ""
    return (
        f"The file {path!r} of the workspace is what is imported as {name!r}: give it "
        "another name if the package is meant."
    )


def ended(exit_code: int | None) -> str:
    """Describe the exit code; a signal is named."""
    number = -(exit_code or 0) if (exit_code or 0) < 0 else (exit_code or 0) - 128
    try:
        by = f" (the signal {signal.Signals(number).name})"
    except ValueError:
        by = ""
    return f"The script ended with the exit code {exit_code}{by}"
