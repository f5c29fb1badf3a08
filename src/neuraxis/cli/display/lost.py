"""Lines that a call would remove from a file of the user."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from neuraxis.formatting import counted
from neuraxis.policy.provenance.words import leaves
from neuraxis.sandbox.files import operations
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import pieces_of
from neuraxis.specs import Json

if TYPE_CHECKING:
    from pathlib import Path

    from neuraxis.session.session import Session

_BYTES = 200_000
"""Maximum size of a file whose lines are looked at."""
_LINES = 40
"""Maximum lines shown of a file; undo brings all of them back."""


def lost_lines(call: Mapping[str, Json], session: Session) -> list[str]:
    """Return the lines that no argument of the call contains.

    What a call moves is not lost.

    Args:
        call: as a question has it, with the digests of the files that it `replaces`.
        session: the one that asks; a command of another one shows nothing.
    """
    replaces = cast("dict[str, str]", call.get("replaces") or {})
    command = session.registry.named(str(call["plugin"]), str(call["command"]))
    if not replaces or command is None:
        return []
    arguments = list(leaves(call["arguments"]))
    kept = {line for _, value in arguments for line in str(value).splitlines()}
    marks, shown = command.marks, list[str]()
    loses = ("write",) if marks.moves else ("write", "remove")
    for place, name in arguments:
        is_lost = marks.file_use(place) in loses
        digest = replaces.get(name) if isinstance(name, str) and is_lost else None
        text = digest and _text(session.workspace, str(name), digest)
        lines = text.splitlines() if text else []
        gone = [line for line in lines if line.strip() and line not in kept]
        if gone:
            lost = f"{len(gone)} of {counted(len(lines), 'line')}"
            shown.append(f"lost of {name} ({lost}):")
            shown += [f"- {line}" for line in gone[:_LINES]]
            if len(gone) > _LINES:
                shown.append(f"… {counted(len(gone) - _LINES, 'more line')}")
    return shown


def _text(workspace: Path, path: str, digest: str) -> str:
    """Return the text of a file with this digest, or empty."""
    with suppress(FileRefused, OSError, UnicodeDecodeError):
        with operations.opened(workspace, path, hint=False) as fd:
            if os.fstat(fd).st_size > _BYTES:
                return ""
            data = b"".join(pieces_of(fd))
        if hashlib.sha256(data).hexdigest() == digest:
            return data.decode()
    return ""
