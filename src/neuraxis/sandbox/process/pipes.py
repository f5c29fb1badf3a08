"""The pipes that a process writes to, read piece by piece while it runs.

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
"""The name of the pipe and what came; no bytes at its end."""
Come = Callable[[float], list[Piece]]
"""Waits for at most so many seconds and gives what came meanwhile."""


def pieces(named: Mapping[str, IO[bytes]], most: int) -> Come:
    """What comes out of the pipes.

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
        # Who wrote more is stopped: no more than that ever waits here.
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
