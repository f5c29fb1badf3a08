"""Writing, reading and listing files of the workspace, through `sandbox.files` only."""

from __future__ import annotations

import re

from neuraxis.builtin.workspace import quota
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.sandbox import files
from neuraxis.specs import Json

LISTED = 500
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
"""As an editor and `asset_lines` count: a form feed or U+2028 ends no line."""


def write_file(file_path: str, contents: str, context: Context) -> dict[str, Json]:
    """Write a file; a refusal is `success: false`, as rule C12 wants it."""
    try:
        written = files.write_text(
            context.workspace, file_path, contents, quota=quota(context)
        )
    except files.FileRefused as error:
        return {"success": False, "error": str(error)}
    context.wrote(written)
    return {"success": True}


def read_file(
    file_path: str,
    context: Context,
    start: int | None = None,
    lines: int | None = None,
) -> dict[str, Json]:
    """Read a text file, or some of its lines."""
    try:
        text = files.read_text(context.workspace, file_path)
    except files.FileRefused as error:
        raise CommandError(str(error)) from None
    every = _LINE.findall(text)
    first = (start or 1) - 1
    if first and first >= len(every):
        raise CommandError(
            f"{file_path!r} has {len(every)} lines; there is no line {start}."
        )
    last = len(every) if lines is None else first + lines
    return {"contents": "".join(every[first:last]), "total_lines": len(every)}


def list_files(
    context: Context, folder: str = "", pattern: str = ""
) -> dict[str, Json]:
    """List files, sorted; at most `LISTED`."""
    try:
        found = files.list_files(context.workspace, folder, pattern, most=LISTED)
    except files.FileRefused as error:
        raise CommandError(str(error)) from None
    listed: dict[str, Json] = {"files": list(found.files)}
    if found.more:
        listed["more"] = True
    return listed
