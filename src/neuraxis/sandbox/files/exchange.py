"""Replace, delete and move files, but never what somebody saved meanwhile.

One rule: whatever is replaced or deleted is compared with what is expected to be there.
If it is something else, it stays, and `ChangedMeanwhile` says so. Only what was
compared is deleted, ever.

A file that is compared first and replaced then can be saved in between. So it is taken
from its name by one rename, compared, and put back if need be: Linux exchanges two
names at once, so that the name is never missing. Where no system call does that, a file
is compared just before it is replaced. The one thing that nobody can see is what a
program writes after all that, into a file that it had opened before.

An expected file is its digest; empty: no file; None: whatever is there.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable

from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import digest_of
from neuraxis.sandbox.files.walk import FLAGS, Folder, lstat

_NO_REPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP)
"""Errors where the kernel, the file system or a container lacks the call."""
_MOST_SAVES = 100
"""Saves of one file during one write after which the newest is not looked for."""


class ChangedMeanwhile(FileRefused):
    """Error: a file is no longer what was expected; it stays."""

    def __init__(self, path: str, done: str, kept: str = "") -> None:
        older = f" What it held in between is in {kept!r}." if kept else ""
        super().__init__(
            f"{path!r} was changed by somebody else meanwhile, so it was not {done}. "
            f"Read it again.{older}"
        )


def temporary_name() -> str:
    """Return a new name that no command lists, reads or copies."""
    return f".nx-{os.urandom(8).hex()}"


def replace(
    folder: Folder, temporary: str, name: str, expected: str | None, shown: str
) -> None:
    """Give a new file its name.

    If that is refused, the new file is deleted.

    Raises:
        ChangedMeanwhile: something else has the name.
    """
    try:
        written = _digest(folder, temporary) if expected else ""
        if not _exchanged(folder, temporary, name, expected, shown):
            return
    except (OSError, FileRefused):
        _unlink(folder, temporary)
        raise
    is_expected, kept = False, ""
    try:
        is_expected = _is_expected(folder, temporary, expected)
    finally:
        if not is_expected:
            kept = _exchange_back(folder, temporary, name, written)
    if not is_expected:
        raise ChangedMeanwhile(shown, "written", kept)
    _unlink(folder, temporary)


def remove(folder: Folder, name: str, expected: str | None, shown: str) -> None:
    """Delete a file.

    Raises:
        ChangedMeanwhile: it is another one.
    """
    if expected is not None:
        name = _take(folder, name, expected, shown, "deleted")
    os.unlink(folder.name(name), dir_fd=folder.fd)


def move(
    source: Folder, old: str, target: Folder, new: str, expected: str | None, shown: str
) -> None:
    """Rename a file in its current state.

    `shown`: its new path, for errors.

    Raises:
        ChangedMeanwhile: something else has the new name.
    """
    if expected is None:
        _plain_rename(source, old, target, new)
        return
    replaced = _take(target, new, expected, shown, "replaced") if expected else ""
    try:
        _rename_new(source, old, target, new)
    except FileExistsError:
        raise ChangedMeanwhile(shown, "replaced") from None
    except BaseException:
        if replaced:
            _give_back(target, replaced, new)
            replaced = ""
        raise
    finally:
        if replaced:  # it was compared
            _unlink(target, replaced)


def _exchanged(
    folder: Folder, temporary: str, name: str, expected: str | None, shown: str
) -> bool:
    """Give a new file its name; return whether to compare afterwards."""
    try:
        if expected == "":
            _rename_new(folder, temporary, folder, name)
            return False
        if expected and _rename(folder, temporary, folder, name, _EXCHANGE):
            return True
    except (FileExistsError, FileNotFoundError):
        raise ChangedMeanwhile(shown, "written") from None
    if expected and _digest(folder, name) != expected:
        raise ChangedMeanwhile(shown, "written")
    _plain_rename(folder, temporary, folder, name)
    return False


def _exchange_back(folder: Folder, temporary: str, name: str, written: str) -> str:
    """Put back what a new file replaced, or the newest save.

    Args:
        folder: the open folder.
        temporary: where the replaced file is.
        name: where the new file is.
        written: the new file's digest.

    Returns:
        The name of an older save, which stays: nobody stored it.
    """
    there = written
    for _ in range(_MOST_SAVES):
        back = _digest(folder, temporary)
        try:
            _rename(folder, temporary, folder, name, _EXCHANGE)
        except OSError:  # such as a file that was deleted meanwhile
            return _give_back(folder, temporary, name)
        if _digest(folder, temporary) == there:
            if not there or there != written:  # only what is known is deleted
                return temporary
            _unlink(folder, temporary)
            return ""
        there = back  # what came out was saved meanwhile: it goes back in its turn
    return temporary


def _take(folder: Folder, name: str, expected: str, shown: str, done: str) -> str:
    """Rename the expected file to a temporary name; return that."""
    taken, is_expected, kept = temporary_name(), False, ""
    try:
        _plain_rename(folder, name, folder, taken)
    except FileNotFoundError:
        raise ChangedMeanwhile(shown, done) from None
    try:
        is_expected = _is_expected(folder, taken, expected)
    finally:
        if not is_expected:
            kept = _give_back(folder, taken, name)
    if not is_expected:
        raise ChangedMeanwhile(shown, done, kept)
    return taken


def _give_back(folder: Folder, taken: str, name: str) -> str:
    """Give a file its name back; return where it stays otherwise."""
    try:
        _rename_new(folder, taken, folder, name)
    except OSError:
        return taken
    return ""


def _is_expected(folder: Folder, name: str, expected: str | None) -> bool:
    """Compare a file that was taken from its name, twice.

    A program that had opened it before, and has not written yet, has until the disk
    knows of the new names.
    """
    if not expected or _digest(folder, name) != expected:
        return False
    if folder.fd is not None:
        os.fsync(folder.fd)
    return _digest(folder, name) == expected


def _digest(folder: Folder, name: str) -> str:
    """Return a regular file's digest; empty for anything else."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | FLAGS
    try:
        file = os.open(folder.name(name), flags, dir_fd=folder.fd)
    except OSError:
        return ""
    try:
        return digest_of(file) if stat.S_ISREG(os.fstat(file).st_mode) else ""
    except OSError:
        return ""
    finally:
        os.close(file)


def _unlink(folder: Folder, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(folder.name(name), dir_fd=folder.fd)


# --- renaming ------------------------------------------------------------------


def _plain_rename(source: Folder, old: str, target: Folder, new: str) -> None:
    """Rename a file; it replaces another one."""
    os.replace(
        source.name(old), target.name(new), src_dir_fd=source.fd, dst_dir_fd=target.fd
    )


def _rename_new(source: Folder, old: str, target: Folder, new: str) -> None:
    """Rename a file to a free name.

    Raises:
        FileExistsError: the name is not free.
    """
    if _rename(source, old, target, new, _NO_REPLACE):
        return
    # what is saved under the old name after this is another file, and stays
    hidden = temporary_name()
    _plain_rename(source, old, source, hidden)
    try:
        _link(source, hidden, target, new)
    except BaseException:
        with contextlib.suppress(OSError):
            _link(source, hidden, source, old)
        raise


def _link(source: Folder, old: str, target: Folder, new: str) -> None:
    """Rename by a second name, which replaces nothing."""
    try:
        os.link(
            source.name(old), target.name(new),
            src_dir_fd=source.fd, dst_dir_fd=target.fd,
            follow_symlinks=os.link not in os.supports_follow_symlinks,
        )  # fmt: skip
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):  # a folder, or a disk without hard links
        if lstat(target, new) is not None:
            raise FileExistsError from None
        _plain_rename(source, old, target, new)
    else:
        os.unlink(source.name(old), dir_fd=source.fd)


def _rename(source: Folder, old: str, target: Folder, new: str, flags: int) -> bool:
    """Rename as only Linux can; return whether it can here."""
    renameat2 = _renameat2()
    if renameat2 is None or source.fd is None or target.fd is None:
        return False
    number = renameat2(source.fd, os.fsencode(old), target.fd, os.fsencode(new), flags)
    if number in _UNSUPPORTED:
        return False
    if number:
        raise OSError(number, os.strerror(number))
    return True


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """Return the system call as a function that returns the error's number."""
    if sys.platform != "linux":
        return None
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:  # an old C library
        return None
    call.argtypes = (
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint,
    )  # fmt: skip

    def rename(source: int, old: bytes, target: int, new: bytes, flags: int) -> int:
        return ctypes.get_errno() if call(source, old, target, new, flags) else 0

    return rename
