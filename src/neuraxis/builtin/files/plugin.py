"""Writing, reading and listing files of the workspace, through `sandbox.files` only."""

from __future__ import annotations

from neuraxis.builtin import workspace
from neuraxis.errors import CommandError
from neuraxis.plugins.context import Context
from neuraxis.sandbox.files import workspace as files
from neuraxis.specs import Json

LISTED = 500
"""Names where the call says no other number."""
READ_BYTES = 100_000_000


def write_file(file_path: str, contents: str, context: Context) -> dict[str, Json]:
    """Write a file; a refusal is `success: false`, as rule C12 wants it."""
    try:
        written = files.write_text(
            context.workspace, file_path, contents, quota=workspace.quota(context)
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
    limit = workspace.number(context, "files.read_bytes", READ_BYTES)
    text = workspace.read_text(context, file_path, limit)
    # as an editor and `asset_lines` count: a form feed or U+2028 ends no line
    total = text.count("\n") + (not text.endswith("\n") and bool(text))
    first = (start or 1) - 1
    if first and first >= total:
        raise CommandError(
            f"{file_path!r} has {total} lines; there is no line {start}."
        )
    begin = _after(text, 0, first)
    end = len(text) if lines is None else _after(text, begin, lines)
    return {"contents": text[begin:end], "total_lines": total}


def _after(text: str, at: int, lines: int) -> int:
    """Where so many lines from `at` on end."""
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def list_files(
    context: Context, folder: str = "", pattern: str = "", most: int = LISTED
) -> dict[str, Json]:
    """List files, sorted; that there are more is told, since a loop sees only names."""
    try:
        found = files.list_files(context.workspace, folder, pattern, most=most)
    except files.FileRefused as error:
        raise CommandError(str(error)) from None
    listed: dict[str, Json] = {"files": list(found.files)}
    if found.more:
        listed["more"] = True
        context.warn(
            f"There are more than {most} files, and only {most} are listed: what is "
            "done with each of them leaves the others out. For all, list again with a "
            "larger most, or folder by folder."
        )
    return listed
