"""Read a process's output pipes while it runs.

By `select`; on Windows, which has none for pipes, by a thread for each.
"""

from __future__ import annotations

import os
import queue
import select
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO

Piece = tuple[str, bytes]
"""Name of a pipe and bytes read; empty at its end."""
Come = Callable[[float], list[Piece]]
"""Wait up to some seconds and return the pieces read meanwhile."""


def pieces(named: Mapping[str, IO[bytes]], most: int) -> Come:
    """Return a reader for the output of the pipes.

    Args:
        named: each pipe by its name.
        most: bytes of one after which the process is stopped, so that none need be
            read any more.
    """
    return _by_select(named) if os.name == "posix" else _by_threads(named, most)


def _by_select(named: Mapping[str, IO[bytes]]) -> Come:
    names = {stream.fileno(): name for name, stream in named.items()}

    def come(seconds: float) -> list[Piece]:
        ready, _, _ = select.select(list(names), [], [], seconds)
        found = [(fd, os.read(fd, 65536)) for fd in ready]
        return [(names[fd] if data else names.pop(fd), data) for fd, data in found]

    return come


def _by_threads(named: Mapping[str, IO[bytes]], most: int) -> Come:
    came: queue.SimpleQueue[Piece] = queue.SimpleQueue()

    def read(name: str, stream: IO[bytes]) -> None:
        left = most
        # A process that wrote more is stopped: no more than this ever waits here.
        while left >= 0:
            data = b""
            with suppress(OSError, ValueError):
                data = os.read(stream.fileno(), 65536)
            came.put((name, data))
            if not data:
                return
            left -= len(data)

    def come(seconds: float) -> list[Piece]:
        with suppress(queue.Empty):
            return [came.get(timeout=seconds)]
        return []

    for name, stream in named.items():
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    return come
