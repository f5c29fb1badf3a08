"""Read, write, change, move, find and list files, through `sandbox.files` only."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeVar

from neuraxis.assets.json_view import to_json_value
from neuraxis.builtin import workspace
from neuraxis.builtin.files import editing
from neuraxis.call_errors import file_was_made
from neuraxis.errors import CommandError
from neuraxis.formatting import counted, type_name
from neuraxis.parsing.encodings import text_of
from neuraxis.plugins.context import Context
from neuraxis.sandbox.files import workspace as files
from neuraxis.specs import Json

LISTED = 500
"""Default maximum number of listed names."""
READ_BYTES = 100_000_000
_TABLES = (".csv", ".tsv", ".parquet", ".ndjson", ".jsonl")
_PICTURES = (".png", ".jpg", ".jpeg", ".webp")
_NO_TEXTS = (
    *(".xlsx", ".xls", ".ods", ".docx", ".doc", ".odt", ".pptx", ".ppt", ".odp"),
    *(".pdf", ".zip", ".gz", ".gif", ".bmp", ".tif", ".tiff", ".ico"),
)
"""Endings of files that are never a text: a program would call one damaged."""
_SHOWN = 300
"""Maximum characters shown of a found line."""
T = TypeVar("T")


def write_file(file_path: str, contents: str, context: Context) -> dict[str, Json]:
    """Write a file; a refusal is `success: false` (rule C12)."""
    try:
        data = contents.encode()
    except UnicodeEncodeError as error:
        half = "The contents hold half a character (unpaired surrogate) at position"
        return {"success": False, "error": f"{half} {error.start}; leave it out."}
    try:
        workspace.write_guarded(context, file_path, data)
    except files.FileRefused as error:
        return {"success": False, "error": str(error)}
    return {"success": True}


def append_file(
    file_path: str, text: str, context: Context, own_line: bool = True
) -> dict[str, Json]:
    """Append a text; a missing file is created, with a warning."""
    similar: tuple[str, ...] | None = None
    try:
        old = files.read_bytes(context.workspace, file_path, limit=_limit(context))
        found = sha256(old).hexdigest()
    except files.FileRefused as error:
        if error.near is None:
            raise CommandError(str(error)) from None
        old, found, similar = b"", "", error.near
    data = editing.appended(old, text, file_path, own_line=own_line)
    result = _changed(context, file_path, data, "append", found)
    if similar is not None:
        context.warn(file_was_made(file_path, similar))
    return result


def replace_in_file(
    file_path: str, old: str, new: str, context: Context, every: bool = False
) -> dict[str, Json]:
    """Replace a passage that occurs once in a file, or every one."""
    whole = workspace.read(context, file_path, _limit(context))
    data = editing.replaced(whole, old, new, file_path, every=every)
    return _changed(context, file_path, data, "edit", sha256(whole).hexdigest())


def copy_file(file_path: str, new_path: str, context: Context) -> dict[str, Json]:
    """Copy a file, byte for byte."""
    data = workspace.read(context, file_path, _limit(context))
    result = _guarded(
        lambda: workspace.write_guarded(context, new_path, data, kind="copy")
    )
    return {"file_path": result, "bytes": len(data)}


def move_file(file_path: str, new_path: str, context: Context) -> dict[str, Json]:
    """Rename a file, or move it into another folder."""
    result = _guarded(lambda: workspace.changes(context).move(file_path, new_path))
    context.wrote(result)
    return {"file_path": result}


def delete_file(file_path: str, context: Context) -> dict[str, Json]:
    """Delete a file, or an empty folder."""
    _guarded(lambda: workspace.changes(context).delete(file_path))
    return {"deleted": file_path}


def make_folder(folder: str, context: Context) -> dict[str, Json]:
    """Make a folder and its missing parents."""
    result = _guarded(lambda: workspace.changes(context).make_folder(folder))
    return {"folder": result}


def save_result(value: Any, file_path: str, context: Context) -> dict[str, Json]:
    """Write a result to a file in the format of its ending."""
    replaced = workspace.existing(context, file_path, _limit(context))
    data = as_file(value, workspace.ending(file_path), replaced)
    return {
        "file_path": workspace.write(context, file_path, data),
        "bytes": len(data),
    }


def find_in_files(
    text: str, context: Context, folder: str = "", pattern: str = "", most: int = 100
) -> dict[str, Json]:
    """Find the lines that contain a text, ignoring case."""
    listing = _listing(context, folder, pattern, 20_000)
    folded, matches = text.casefold(), list[Json]()
    for name in listing.files:
        try:
            data = files.read_bytes(context.workspace, name, limit=_limit(context))
        except files.FileRefused:
            continue
        read = text_of(data)
        if read is None or folded not in read[0].casefold():
            continue
        for number, line in enumerate(read[0].split("\n"), 1):
            if folded in line.casefold():
                if len(matches) == most:
                    context.warn(
                        f"More than {most} lines hold it; these are the first."
                    )
                    return {"found": matches, "more": True}
                line_text = line.rstrip("\r")
                matches.append(
                    {"file": name, "line": number, "text": line_text[:_SHOWN]}
                )
    return {"found": matches}


def _changed(
    context: Context, file_path: str, data: bytes, kind: str, found: str
) -> dict[str, Json]:
    result = _guarded(
        lambda: workspace.write_guarded(
            context, file_path, data, use="change", kind=kind, found=found
        )
    )
    return {"file_path": result, "bytes": len(data)}


def _guarded(change: Callable[[], T]) -> T:
    try:
        return change()
    except files.FileRefused as error:
        raise CommandError(str(error)) from None


def _limit(context: Context) -> int:
    return workspace.number(context, "files.read_bytes", READ_BYTES)


def as_file(value: Any, ending: str, replaces: bytes = b"") -> bytes:
    """Return the value in the format of a file ending.

    Args:
        value: the value to write.
        ending: the ending of the file's name.
        replaces: the file that it replaces.

    Raises:
        CommandError: the format cannot represent it.
    """
    # each library is imported only if it is used
    if isinstance(value, bytes):
        return value
    package = type(value).__module__.partition(".")[0]
    is_frame = package in ("polars", "pandas", "pyarrow")
    if ending in _TABLES or (ending == ".json" and is_frame):
        from neuraxis.builtin.tables import frames

        return frames.written(frames.frame_of(value), ending, replaces)
    if ending in _PICTURES and not is_frame:
        from neuraxis.builtin.images import pillow

        return pillow.encoded(pillow.picture_of(value), ending, 90)
    is_text = ending not in _NO_TEXTS
    if isinstance(value, str) and is_text and ending != ".json":
        return value.encode()
    is_json, plain = to_json_value(value)
    if not is_json or not is_text or is_frame:
        raise CommandError(
            f"A {ending or 'file without an ending'} cannot hold {type_name(value)}; "
            "write a table to .csv, .parquet or .json, a picture to .png or .jpg, a "
            "text to .txt or .md."
        )
    return (json.dumps(plain, ensure_ascii=False, indent=2) + "\n").encode()


def read_file(
    file_path: str,
    context: Context,
    start: int | None = None,
    lines: int | None = None,
) -> dict[str, Json]:
    """Read a text file, or some of its lines."""
    text = workspace.read_text(context, file_path, _limit(context))
    # lines as in editors and `asset_lines`: a form feed or U+2028 ends no line
    total = text.count("\n") + (not text.endswith("\n") and bool(text))
    first = (start or 1) - 1
    if first and first >= total:
        raise CommandError(
            f"{file_path!r} has {counted(total, 'line')}; there is no line {start}."
        )
    begin = _after(text, 0, first)
    end = len(text) if lines is None else _after(text, begin, lines)
    return {"contents": text[begin:end], "total_lines": total}


def _after(text: str, at: int, lines: int) -> int:
    """Return the position after a number of lines from `at`."""
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def list_files(
    context: Context, folder: str = "", pattern: str = "", most: int = LISTED
) -> dict[str, Json]:
    """List files, sorted; a note says if there are more."""
    listing = _listing(context, folder, pattern, most)
    result: dict[str, Json] = {"files": list(listing.files)}
    if listing.more:
        result["more"] = True
        context.warn(
            f"There are more than {most} files, and only {most} are listed: what is "
            "done with each of them leaves the others out. For all, list again with a "
            "larger most, or folder by folder."
        )
    return result


def _listing(context: Context, folder: str, pattern: str, most: int) -> files.Listing:
    """List files; warn of those whose names cannot be used."""
    listing = _guarded(
        lambda: files.list_files(context.workspace, folder, pattern, most=most)
    )
    if listing.unusable:
        context.warn(
            f"Left out: {counted(listing.unusable, 'more name')} of files or folders "
            "there, which no command takes, since they hold a character such as : or "
            "?, or are too long. The user can rename them."
        )
    return listing
