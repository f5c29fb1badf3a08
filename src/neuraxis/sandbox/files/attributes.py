"""Attributes that a new file gets from the one that it replaces.

Its owner, group, permissions, access list and labels: whoever could use the old file
can use the new one, and nobody else.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from neuraxis.sandbox.files.walk import FLAGS, lstat

if TYPE_CHECKING:
    from neuraxis.sandbox.files.walk import Folder

_LISTS = ("user.", "system.posix_acl_access")
"""Begins of the extended attributes that are copied: labels, the access list."""


def hand_on(folder: Folder, name: str, new: int, *, bits: int = 0o777) -> None:
    """Give a new file the attributes of the replaced one.

    Args:
        folder: the open folder.
        name: the replaced file.
        new: descriptor of the new file.
        bits: permissions that it may have.
    """
    old = lstat(folder, name) if os.name == "posix" else None
    if old is None:
        return
    mode = old.st_mode & bits
    if _set_owner(new, old):
        _copy_lists(folder, name, new)
    else:
        mode &= ~0o070  # the group is another one
    with contextlib.suppress(OSError):  # a disk without permissions
        os.fchmod(new, mode)


def _set_owner(new: int, old: os.stat_result) -> bool:
    """Set owner and group; return whether the group is kept."""
    is_now = os.fstat(new)
    if (is_now.st_uid, is_now.st_gid) == (old.st_uid, old.st_gid):
        return True
    for owner in (old.st_uid, -1):  # only root can give a file away
        with contextlib.suppress(OSError):
            os.fchown(new, owner, old.st_gid)
            return True
    return False


def _copy_lists(folder: Folder, name: str, new: int) -> None:
    if not hasattr(os, "listxattr"):  # macOS
        return
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | FLAGS
    with contextlib.suppress(OSError):
        old = os.open(folder.name(name), flags, dir_fd=folder.fd)
        try:
            for attribute in os.listxattr(old):
                if attribute.startswith(_LISTS):
                    with contextlib.suppress(OSError):
                        os.setxattr(new, attribute, os.getxattr(old, attribute))
        finally:
            os.close(old)
