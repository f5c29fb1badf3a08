"""Show the lines that a text file would lose and gain."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from neuraxis import call_errors
from neuraxis.formatting import size_text
from neuraxis.parsing import encodings
from neuraxis.sandbox.files import operations
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import pieces_of

_BYTES = 5_000_000
"""Maximum size of a file whose lines are examined."""
_FILES = 10
"""Maximum files of a script whose lines are shown."""
_LINES, _CHARACTERS = 40, 500
"""Maximum lines of a file, and characters of a line, that are shown; undo brings all
of them back."""


def text_of(folder: Path, path: str) -> tuple[str, str]:
    """Return a file's text, else why it is not shown.

    Both are empty if there is no such regular file.

    Args:
        folder: the folder that the path is relative to.
        path: path of the file.
    """
    with suppress(FileRefused, OSError):
        with operations.opened(folder, path, hint=False) as fd:
            size = os.fstat(fd).st_size
            if size > _BYTES:
                return "", size_text(size)
            data = b"".join(pieces_of(fd))
        if found := encodings.text_of(data):
            return found[0], ""
        return "", f"it is no text ({size_text(len(data))})"
    return "", ""


def changed_lines(
    root: Path, copy: Path, deleted: Sequence[str], changed: Sequence[str]
) -> list[str]:
    """Return the lines that files lose, and gain, through a script.

    Args:
        root: the workspace.
        copy: the folder in which the script worked.
        deleted: the files that are gone.
        changed: the files that have other content.
    """
    paths, lines = [*deleted, *changed], list[str]()
    for path in paths[:_FILES]:
        (old, why), (new, why_new) = text_of(root, path), text_of(copy, path)
        if why or why_new:
            why = why or f"as the script left it: {why_new}"
            lines.append(call_errors.lines_not_shown(path, why))
            continue
        lines += lost_lines(path, old, new.splitlines())
        lines += new_lines(path, old, new)
    if len(paths) > _FILES:
        lines.append(call_errors.more_files(paths[_FILES:]))
    return lines


def lost_lines(path: str, text: str, kept: Iterable[str] = ()) -> list[str]:
    """Return the lines that a text loses, formatted for display.

    Args:
        path: the file's path for the user.
        text: its current content.
        kept: the lines of the new content; a line that is there once is kept once.
    """
    lines = text.splitlines()
    lost = _beyond(lines, kept)
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
    beyond = _beyond(new.splitlines(), old.splitlines())
    gained = [line for line in beyond if line.strip()]
    if not gained:
        return []
    return [call_errors.new_in(path, len(gained)), *_shown("+", gained)]


def _beyond(lines: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the lines beyond as many equal known ones."""
    left = Counter(known)
    found: list[str] = []
    for line in lines:
        if left[line] > 0:
            left[line] -= 1
        else:
            found.append(line)
    return found


def _shown(sign: str, lines: Sequence[str]) -> list[str]:
    shown: list[str] = []
    for line in lines[:_LINES]:
        cut = len(line) - _CHARACTERS
        rest = f"… {cut:,} more characters" if cut > 0 else ""
        shown.append(f"{sign} {line[:_CHARACTERS]}{rest}")
    if len(lines) > _LINES:
        shown.append(call_errors.more_lines(len(lines) - _LINES))
    return shown
