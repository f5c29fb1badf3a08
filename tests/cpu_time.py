"""The processor's time of a piece of work, held against a limit whatever the load.

The time is that of the calling thread alone, the least of several attempts, and the
limit is stretched by how much slower than a machine of its own this one is just now: a
loop that is always the same is timed beside each attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

YARDSTICK = 0.010
"""Seconds of `_yardstick` on a machine of its own."""


def within(seconds: float, work: Callable[[], T], attempts: int = 12) -> T:
    """What `work` gives; fails where no attempt of it stays within the seconds."""
    least = loop = float("inf")
    for _ in range(attempts):
        loop = min(loop, _timed(_yardstick)[0])
        took, given = _timed(work)
        least = min(least, took)
        limit = seconds * max(1.0, loop / YARDSTICK)
        if least < limit:
            return given
    raise AssertionError(f"took {least:.3f} s at the least, expected {limit:.3f}")


def least(work: Callable[[], object], attempts: int = 5) -> float:
    """Seconds in the quickest of so many attempts, to be held against other work's."""
    return min(_timed(work)[0] for _ in range(attempts))


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.thread_time()
    given = work()
    return time.thread_time() - started, given


def _yardstick() -> int:
    number = 0
    for index in range(200_000):
        number = (number * 31 + index) & 0xFFFF
    return number
