"""Start-up hook of a script under Landlock: `multiprocessing` without /dev/shm.

The standard library's locks are named semaphores and its shared values files, both in
/dev/shm, which belongs to every program of the user and is not granted. Here a lock is
an event counter of the kernel, which forked processes inherit, and a shared value lies
in the script's own folder. Processes that are spawned and not forked cannot share a
lock this way; they get an error, as without it.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_RECURSIVE = 0


class SemLock:
    """Replacement for `_multiprocessing.SemLock` on an event counter."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(
        self, kind: int, value: int, maxvalue: int, name: str, unlink: bool
    ) -> None:
        self.kind = kind
        self.maxvalue = maxvalue
        self.name = None if unlink else name
        self.handle = os.eventfd(value, os.EFD_SEMAPHORE | os.EFD_NONBLOCK)
        self._times = 0
        self._owner = 0

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Acquire the lock; return False on timeout."""
        if self.kind == _RECURSIVE and self._is_mine():
            self._times += 1
            return True
        until = None if timeout is None else time.monotonic() + max(0.0, timeout)
        while not self._taken():
            remaining = None if until is None else until - time.monotonic()
            if not block or (remaining is not None and remaining <= 0):
                return False
            poller = select.poll()
            poller.register(self.handle, select.POLLIN)
            poller.poll(None if remaining is None else remaining * 1000)
        self._times += 1
        self._owner = threading.get_ident()
        return True

    def _taken(self) -> bool:
        try:
            os.eventfd_read(self.handle)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock once."""
        if self.kind == _RECURSIVE:
            if not self._is_mine():
                raise AssertionError(
                    "attempt to release recursive lock not owned by thread"
                )
            if self._times > 1:
                self._times -= 1
                return
        elif self.maxvalue == 1 and not self._is_zero():
            raise ValueError("semaphore or lock released too many times")
        os.eventfd_write(self.handle, 1)
        self._times -= 1

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *raised: object) -> None:
        self.release()

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self.handle)

    def _count(self) -> int:
        return self._times

    def _is_mine(self) -> bool:
        return self._times > 0 and self._owner == threading.get_ident()

    def _is_zero(self) -> bool:
        poller = select.poll()
        poller.register(self.handle, select.POLLIN)
        return not poller.poll(0)

    def _get_value(self) -> int:
        raise NotImplementedError  # Systems without sem_getvalue raise the same error.

    def _after_fork(self) -> None:
        self._times = 0

    @classmethod
    def _rebuild(cls, *_: object) -> SemLock:
        text = "a lock cannot be given to a process that is not forked in this sandbox"
        raise OSError(errno.ENOTSUP, text)


class _Changed(Loader):
    """Loader of a module that is changed once it is loaded."""

    def __init__(self, found: Any, change: Callable[[Any], None]) -> None:
        self._found = found
        self._change = change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._found.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._found.exec_module(module)
        self._change(module)


class _Finder(MetaPathFinder):
    """Import hook for the modules of `multiprocessing` that are changed."""

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        change = _CHANGES.get(fullname)
        if change is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = _Changed(spec.loader, change)
        return spec


def _use_temporary_folder(heap: Any) -> None:
    heap.Arena._dir_candidates = []


def _fork(context: Any) -> None:
    """Make forking the default again; since Python 3.14 a server starts processes."""
    forking = context._concrete_contexts["fork"]
    context._default_context = context.DefaultContext(forking)


_CHANGES: dict[str, Callable[[Any], None]] = {
    "multiprocessing.heap": _use_temporary_folder,
    "multiprocessing.context": _fork,
}
_locks: Any = importlib.import_module(
    "_multiprocessing"
)  # The module belongs to the standard library but has no type stubs.
_locks.SemLock = SemLock
sys.meta_path.insert(0, _Finder())
