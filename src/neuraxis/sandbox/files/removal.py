"""Remove a folder of any depth, with any content.

No path is built and no link followed, and folders deeper than `_LEVELS` are moved up
into the removed folder. So a few descriptors and little memory are enough for any tree,
even one with thousands of nested folders.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path

from neuraxis.sandbox.files.walk import FLAGS, HAS_DIR_FDS

_LEVELS = 16
"""Maximum nested folders that are open at a time."""


def remove_tree(place: Path) -> str:
    """Remove a folder with its content; return an error or ""."""
    if not HAS_DIR_FDS:
        with suppress(RecursionError):
            shutil.rmtree(place, ignore_errors=True)
        return f"{place.name} could not be emptied" if os.path.lexists(place) else ""
    try:
        above = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return str(error)
    try:
        top = _open_unlocked(above, place.name)
        try:
            while _removed_any(top, top, _LEVELS):
                pass
        finally:
            os.close(top)
        os.rmdir(place.name, dir_fd=above)
    except OSError as error:
        return str(error)
    finally:
        os.close(above)
    return ""


def _removed_any(folder: int, top: int, levels: int) -> bool:
    """Empty a folder; return whether anything was removed.

    Args:
        folder: the open folder.
        top: the open folder that deeper folders are moved to.
        levels: how deep to go.
    """
    progress = False
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=folder)
                elif levels == 0:
                    _move_up(folder, entry.name, top)
                else:
                    subfolder = _open_unlocked(folder, entry.name)
                    try:
                        progress |= _removed_any(subfolder, top, levels - 1)
                    finally:
                        os.close(subfolder)
                    os.rmdir(entry.name, dir_fd=folder)
                progress = True
    return progress


def _move_up(folder: int, name: str, top: int) -> None:
    # moving a folder requires write permission on it, too
    os.close(_open_unlocked(folder, name))
    os.rename(name, f".{secrets.token_hex(12)}", src_dir_fd=folder, dst_dir_fd=top)


def _open_unlocked(above: int, name: str) -> int:
    """Open a folder, after giving its owner all rights."""
    mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        if (
            sys.platform == "linux"
        ):  # macOS and Linux cannot chmod without following a link
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=above)
            try:
                os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IRWXU)
            finally:
                os.close(descriptor)
        else:
            os.chmod(name, stat.S_IRWXU, dir_fd=above, follow_symlinks=False)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | FLAGS, dir_fd=above)
