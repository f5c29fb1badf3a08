"""Delete a session: its events, its objects and old versions of files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from neuraxis.errors import ConfigError, NoSuchSession, StorageError
from neuraxis.formatting import describe_given, did_you_mean, file_name, nearest
from neuraxis.journal import Journal
from neuraxis.sandbox.files.versions import versions_root
from neuraxis.session.past.waiting import opened_journal


# A folder named like the session may hold other files: only Neuraxis's own are deleted.
def _is_object(name: str) -> bool:
    return name.endswith(".nxb") or (name.startswith(".") and name.endswith(".part"))


def _is_version(name: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{64}|\.[0-9a-f]{16}", name) is not None


def delete_session(
    journal: str | Path | Journal,
    id: str,
    *,
    asset_folder: str | Path | None = None,
    versions_folder: str | Path | None = None,
) -> None:
    """Delete a session: its events, stored objects and old versions of files.

    The bytes of its events are overwritten in the journal's file. What its commands
    wrote stays, and so does the list of their paths and digests by which later
    sessions know them.

    Args:
        journal: a SQLite file's path, or a `Journal`.
        id: the session's id.
        asset_folder: as in the session's `Options`; its objects lie there.
        versions_folder: as in the session's `Options`.

    Raises:
        NoSuchSession: the journal holds no session of this id.
        ConfigError: there is no such journal, or it cannot delete.
        SessionBusy: the session is open, here or in another process.
        StorageError: something cannot be deleted; the events are the last to go.
    """
    with opened_journal(journal, "delete_session") as opened:
        if not callable(getattr(opened, "delete", None)):
            raise ConfigError(
                "delete_session: expected a journal with a method `delete`, got "
                f"{describe_given(opened)}"
            )
        ids = [info.session for info in opened.sessions()]
        if id not in ids:
            raise NoSuchSession(
                f"delete_session: there is no session {id!r} in the journal."
                f"{did_you_mean(nearest(id, ids))}"
            )
        opened.claim(id)
        try:
            if asset_folder is not None:
                _delete_files(Path(asset_folder) / file_name(id), _is_object)
            versions = versions_root(opened, asset_folder, versions_folder)
            if versions is not None:
                _delete_files(versions / file_name(id), _is_version)
            opened.delete(id)
        finally:
            opened.release(id)


def _delete_files(folder: Path, is_ours: Callable[[str], bool]) -> None:
    """Delete matching files, and the folder if it is empty."""
    try:
        names = [path.name for path in folder.iterdir()]
        for name in filter(is_ours, names):
            (folder / name).unlink(missing_ok=True)
        if all(map(is_ours, names)):
            folder.rmdir()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageError(
            f"{folder}: what is stored there cannot be deleted: "
            f"{error.strerror or error}; the session is still in the journal"
        ) from error
