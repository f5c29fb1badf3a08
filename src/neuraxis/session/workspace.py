"""Workspace and versions folder of a session, and undo."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuraxis import call_errors
from neuraxis.errors import ConfigError
from neuraxis.events import ApprovalAsked
from neuraxis.execution.nested import ParentRun
from neuraxis.execution.offload import in_thread_if
from neuraxis.formatting import check_flag
from neuraxis.journal import Journal
from neuraxis.policy.gate import Approve
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.sandbox.files.history import FileHistory, Undone
from neuraxis.sandbox.files.versions import BUDGET
from neuraxis.session.answer import StoredAsset
from neuraxis.session.event_loop import SyncLoop
from neuraxis.settings import Settings
from neuraxis.specs import Json

_LOG = logging.getLogger(__name__)
_ADDRESS = re.compile(
    r"(?:https?|ftps?|s3|gs|file):/|data:[\w/+.-]+[;,]", re.IGNORECASE
)
"""Begin of an address; a `Path` has one slash less."""


def make_workspace(workspace: Path) -> None:
    """Create the folder that commands work in.

    Raises:
        ConfigError: it is a link or a file, or cannot be created.
    """
    mode = _mode(workspace)
    if stat.S_ISDIR(mode):
        return
    if stat.S_ISLNK(mode):
        raise ConfigError(
            f"the workspace {workspace} is a link to {workspace.resolve()}: whoever "
            "made the link would choose the folder commands write to. "
            "Delete it or name the folder itself with workspace= (--workspace)"
        )
    try:
        workspace.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the workspace {workspace} cannot be made: {error.strerror or error}. "
            "Name another folder with workspace= (--workspace)"
        ) from error


def _mode(path: Path) -> int:
    """Return the mode of a path itself, or 0."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0  # creating it reports the reason


def begin_files(
    files: FileHistory, outer: ParentRun | None, *, is_resumed: bool = False
) -> None:
    """Create the workspace, and begin a run that `undo` can revert."""
    make_workspace(files.workspace)
    if outer is not None:
        return  # a nested run is part of its parent's
    if is_resumed:
        files.go_on()
    else:
        files.begin()


def is_on_disk(journal: str | Path | Journal | None) -> bool:
    """Return whether the journal outlives the process."""
    path = getattr(journal, "path", journal)
    return isinstance(path, str | Path) and path != "memory"


def budget_of(settings: Settings) -> int:
    """Return the setting `files.versions_bytes`.

    Raises:
        ConfigError: it is not a whole number.
    """
    value = settings.get("files.versions_bytes", BUDGET)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(
            f"files.versions_bytes: expected a whole number of bytes, got {value!r}"
        ) from None


def undo_last(
    files: FileHistory,
    origins: Origins,
    approve: Approve | None,
    loop: SyncLoop,
    changed_since: bool,
) -> Undone:
    """Undo the last run; ask about each file that was changed since."""
    check_flag("changed_since", changed_since)

    def agree(path: str) -> bool:
        person = approve
        if changed_since or person is None:
            return changed_since
        arguments: Json = {"file_path": path}
        reason = (
            f"{path} was changed after the run; undo replaces what it is now with "
            "what it was before the run, or with what somebody saved during it"
        )
        question = ApprovalAsked(
            id=f"undo {path}",
            call={"plugin": "", "command": "undo", "arguments": arguments},
            reason=reason,
            summary=call_errors.summary("undo", arguments, reason),
        )

        async def ask() -> bool:
            return await person(question) is True

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return loop.run(ask())
        return False  # in an event loop, the caller passes `changed_since`

    undone = files.undo(agree)
    for path in (*undone.restored, *undone.removed):
        origins.restored(path)
    return undone


def _warn_of_path(value: Any) -> None:
    """Warn of an attached text that is the name of a file."""
    if isinstance(value, str) and len(value) < 300 and "\n" not in value:
        with suppress(OSError, ValueError):
            if Path(value).is_file():
                _LOG.warning(
                    "attach(%r) stores these characters; to attach the file of that "
                    "name write attach(Path(%r))", value, value,
                )  # fmt: skip


def read_given(value: Any, description: str) -> tuple[Any, str]:
    """Read an attachment: a file, an asset, or any object.

    Raises:
        ConfigError: the file cannot be read, or does not match its suffix.
    """
    if isinstance(value, StoredAsset):
        value = value.value
    if not isinstance(value, Path):
        _warn_of_path(value)
        return value, description
    _refuse_address(str(value))
    # imported here: few sessions attach files, and it would delay a first run
    from neuraxis.assets.attachments import read_attachment

    return read_attachment(value), description or value.name


def _refuse_address(path: str) -> None:
    if _ADDRESS.match(path):
        raise ConfigError(
            f"attach: expected the path of a file, got the address {path!r:.80}, which "
            "is not fetched: download it and attach the file, or name the address in "
            "the request"
        )


async def read_item(item: Any) -> tuple[Any, str]:
    """Read an attachment of a request; a file in a thread.

    Raises:
        ConfigError: as for `read_given`.
    """
    if isinstance(item, str):
        _refuse_address(item)
    given = Path(item) if isinstance(item, str) else item
    return await in_thread_if(isinstance(given, Path), read_given, given, "")
