"""Show the lines that a text file would lose and gain."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
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
    heading = call_errors.lost_of(path, len(lost), len(lines), blank)
    return [heading, *_shown("-", visible)]


def new_lines(path: str, old: str, new: str) -> list[str]:
    """Return the lines that a text gains, formatted for display.

    Args:
        path: the file's path for the user.
        old: its current content.
        new: the content that it would have.
    """
    known = set(old.splitlines())
    gained = [line for line in new.splitlines() if line.strip() and line not in known]
    if not gained:
        return []
    return [call_errors.new_in(path, len(gained)), *_shown("+", gained)]


def _shown(sign: str, lines: Sequence[str]) -> list[str]:
    shown: list[str] = []
    for line in lines[:_LINES]:
        cut = len(line) - _CHARACTERS
        rest = f"… {cut:,} more characters" if cut > 0 else ""
        shown.append(f"{sign} {line[:_CHARACTERS]}{rest}")
    if len(lines) > _LINES:
        shown.append(call_errors.more_lines(len(lines) - _LINES))
    return shown
