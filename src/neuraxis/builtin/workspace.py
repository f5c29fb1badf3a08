"""Workspace file access for the built-in plugins, with configured limits.

Every access goes through `sandbox.files`; a refusal becomes a `CommandError` for the
model.
"""

from __future__ import annotations

from pathlib import Path

from neuraxis.errors import CommandError
from neuraxis.parsing.encodings import UTF_8, text_of
from neuraxis.plugins.context import Context
from neuraxis.sandbox.files import workspace
from neuraxis.sandbox.files.call_files import CallFiles
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.sandbox.files.versions import VersionStore

NOBODY = Context(workspace=Path())
"""Context of a call outside a session; reports nothing."""


def read(context: Context, file_path: str, limit: int) -> bytes:
    """Return the content of a file of at most `limit` bytes.

    Raises:
        CommandError: it is missing, too large, or outside the workspace.
    """
    try:
        return workspace.read_bytes(context.workspace, file_path, limit=limit)
    except workspace.FileRefused as error:
        raise CommandError(str(error)) from None


def existing(context: Context, file_path: str, limit: int) -> bytes:
    """Return the content to be replaced; empty if there is none."""
    try:
        return read(context, file_path, limit)
    except CommandError:
        return b""


def read_text(context: Context, file_path: str, limit: int) -> str:
    """Return a file's text; warn if it is not UTF-8.

    Raises:
        CommandError: as `read`, or it is not a text.
    """
    data = read(context, file_path, limit)
    decoded = text_of(data)
    if decoded is None:
        raise CommandError(
            f"{file_path!r} is not a text file ({len(data)} bytes): it is not UTF-8, "
            "UTF-16, UTF-32 or Windows-1252. A picture or a table is read by a command "
            "of its own."
        )
    text, encoding = decoded
    if encoding != UTF_8:
        context.warn(
            f"{file_path!r} was read as {encoding}. What is written is in UTF-8."
        )
    return text


def write(context: Context, file_path: str, data: bytes) -> str:
    """Write a file atomically; return its path in the workspace.

    Raises:
        CommandError: the path, the place or the amount is not allowed.
    """
    try:
        return write_guarded(context, file_path, data)
    except workspace.FileRefused as error:
        raise CommandError(str(error)) from None


def write_guarded(
    context: Context,
    file_path: str,
    data: bytes,
    *,
    use: Use = "write",
    kind: str = "write",
    found: str | None = None,
) -> str:
    """Like `write`, also for parts of files; the old version is stored.

    `found`: digest of the file that the data was made of; empty: there was none.

    Raises:
        FileRefused: the path, the place or the amount is not allowed, the file is the
            user's and nobody approved it, or somebody changed it meanwhile.
    """
    written = changes(context).write(
        file_path, data, quota(context), use=use, kind=kind, found=found
    )
    context.wrote(written)
    return written


def changes(context: Context) -> CallFiles:
    """Return the call's `CallFiles`; outside a session, without limits."""
    if isinstance(context.files, CallFiles):
        return context.files
    history = FileHistory(context.workspace, VersionStore(budget=1 << 62))
    return CallFiles(
        history=history, call_id=context.call_id, warn=lambda text: None, free=True
    )


def quota(context: Context) -> workspace.Quota:
    """Return the limits of `files.file_bytes`, `.total_bytes` and `.files`."""
    usual = workspace.Quota()
    return workspace.Quota(
        file_bytes=number(context, "files.file_bytes", usual.file_bytes),
        total_bytes=number(context, "files.total_bytes", usual.total_bytes),
        files=number(context, "files.files", usual.files),
    )


def number(context: Context, key: str, usual: int) -> int:
    """Return an integer setting.

    Raises:
        CommandError: it is not an integer.
    """
    value = context.settings.get(key, usual)
    try:
        return int(value)
    # TOML has `inf`, which raises OverflowError.
    except (TypeError, ValueError, OverflowError):
        raise CommandError(
            f"The setting {key} must be a whole number, not {value!r}."
        ) from None


def ending(file_path: str) -> str:
    """Return the ending: `.csv` of `data/Prices.CSV`; empty if none."""
    name = file_path.rpartition("/")[2]
    return f".{name.rpartition('.')[2].casefold()}" if "." in name else ""
