"""Show the lines that a change would remove from a text file."""

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
"""Maximum size of a file whose lines are examined."""
_LINES, _CHARACTERS = 40, 500
"""Maximum lines of a file, and characters of a line, that are shown; undo brings all
of them back."""


def text_of(folder: Path, path: str, digest: str = "") -> str:
    """Return a file's text; empty: not a text, or too long.

    Args:
        folder: the folder that the path is relative to.
        path: path of a regular file.
        digest: the digest that its content must have; empty: any.
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
    """Return the lines that a text loses, formatted for display.

    Args:
        path: the file's path for the user.
        text: its current content.
        kept: the lines of the new content.
    """
    lines = text.splitlines()
    lost = [line for line in lines if line not in kept]
    visible = [line for line in lost if line.strip()]
    if not visible:
        return []
    blank = len(lost) - len(visible)
    lines_ = [call_errors.lost_of(path, len(lost), len(lines), blank)]
    for line in visible[:_LINES]:
        cut = len(line) - _CHARACTERS
        rest = f"… {cut:,} more characters" if cut > 0 else ""
        lines_.append(f"- {line[:_CHARACTERS]}{rest}")
    if len(visible) > _LINES:
        lines_.append(call_errors.more_lines(len(visible) - _LINES))
    return lines_
