"""Read a process's output pipes while it runs.

It uses `poll`, or on Windows, which has none for pipes, one thread per pipe.
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
Receive = Callable[[float], list[Piece]]
"""Wait up to some seconds and return the pieces read meanwhile."""


def pieces(pipes: Mapping[str, IO[bytes]], max_bytes: int) -> Receive:
    """Return a reader for the output of the pipes.

    Args:
        pipes: each pipe by its name.
        max_bytes: bytes of a pipe after which the process is stopped, so that reading
            may end.
    """
    return _by_poll(pipes) if os.name == "posix" else _by_threads(pipes, max_bytes)


def _by_poll(pipes: Mapping[str, IO[bytes]]) -> Receive:
    names = {stream.fileno(): name for name, stream in pipes.items()}
    poll = select.poll()
    for fd in names:
        poll.register(fd, select.POLLIN)

    def receive(seconds: float) -> list[Piece]:
        chunks: list[Piece] = []
        for fd, _ in poll.poll(seconds * 1000):
            data = os.read(fd, 65536)
            chunks.append((names[fd], data))
            if not data:
                poll.unregister(fd)
        return chunks

    return receive


def wait_until_readable(fd: int, seconds: float) -> None:
    """Wait until the descriptor is readable, or the time is up."""
    poll = select.poll()  # `select.select` takes no descriptor above 1023
    poll.register(fd, select.POLLIN)
    poll.poll(seconds * 1000)


def _by_threads(pipes: Mapping[str, IO[bytes]], max_bytes: int) -> Receive:
    arrived: queue.SimpleQueue[Piece] = queue.SimpleQueue()

    def read(name: str, stream: IO[bytes]) -> None:
        remaining = max_bytes
        # A process that wrote more is stopped, so the queue is bounded.
        while remaining >= 0:
            data = b""
            with suppress(OSError, ValueError):
                data = os.read(stream.fileno(), 65536)
            arrived.put((name, data))
            if not data:
                return
            remaining -= len(data)

    def receive(seconds: float) -> list[Piece]:
        with suppress(queue.Empty):
            return [arrived.get(timeout=seconds)]
        return []

    for name, stream in pipes.items():
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    return receive
