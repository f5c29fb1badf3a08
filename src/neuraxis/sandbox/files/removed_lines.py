"""Lines that a change would remove from a text file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from neuraxis import call_errors
from neuraxis.sandbox.files import operations
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import pieces_of

_BYTES = 200_000
"""Maximum size of a file whose lines are looked at."""
_LINES, _CHARACTERS = 40, 500
"""Maximum lines of a file, and characters of a line, that are shown; undo brings all
of them back."""


def text_of(folder: Path, path: str, digest: str = "") -> str:
    """Return a file's text; empty: none, or a long one.

    Args:
        folder: what the path is relative to.
        path: of a regular file.
        digest: which content it must have; empty: any.
    """
    with suppress(FileRefused, OSError, UnicodeDecodeError):
        with operations.opened(folder, path, hint=False) as fd:
            if os.fstat(fd).st_size > _BYTES:
                return ""
            data = b"".join(pieces_of(fd))
        if not digest or hashlib.sha256(data).hexdigest() == digest:
            return data.decode()
    return ""


def lost_lines(path: str, text: str, kept: Collection[str] = ()) -> list[str]:
    """Return the lines that a text loses, as they are shown.

    Args:
        path: of the file, as a person knows it.
        text: what stands in it.
        kept: the lines that stay or come.
    """
    lines = text.splitlines()
    gone = [line for line in lines if line not in kept]
    told = [line for line in gone if line.strip()]
    if not told:
        return []
    blank = len(gone) - len(told)
    shown = [call_errors.lost_of(path, len(gone), len(lines), blank)]
    for line in told[:_LINES]:
        cut = len(line) - _CHARACTERS
        more = f"… {cut:,} more characters" if cut > 0 else ""
        shown.append(f"- {line[:_CHARACTERS]}{more}")
    if len(told) > _LINES:
        shown.append(call_errors.more_lines(len(told) - _LINES))
    return shown
