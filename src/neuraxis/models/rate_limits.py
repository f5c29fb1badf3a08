"""Rate limits of model servers, shared in this process.

A request over the limit waits; it never fails. A limit exists only as long as a model
uses it.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable

_MINUTE = 60.0
_REPORTED_FROM = 1.0
"""Seconds of a wait from which it is reported."""


class RateLimit:
    """Recent requests to a model, and its server's pause.

    Args:
        per_minute: maximum requests within any 60 seconds; None: only pauses apply.
        now: a clock in seconds.
    """

    def __init__(
        self, per_minute: int | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_minute = per_minute
        self._now = now
        self._lock = threading.Lock()  # sessions run in loops of several threads
        self._sent: deque[float] = deque()
        self._until = 0.0

    def pause(self, seconds: float) -> None:
        """Block all requests for these seconds."""
        with self._lock:
            self._until = max(self._until, self._now() + seconds)

    def reserve(self, *, waited: bool = False) -> float:
        """Reserve the next free slot; return the seconds until it.

        `waited`: the caller has already waited for the server's pause.
        """
        with self._lock:
            now = self._now()
            at = now if waited else max(now, self._until)
            if self._per_minute:
                while self._sent and self._sent[0] <= now - _MINUTE:
                    self._sent.popleft()
                if len(self._sent) >= self._per_minute:
                    at = max(at, self._sent[-self._per_minute] + _MINUTE)
                self._sent.append(at)
            return at - now

    async def turn(
        self, sleep: Callable[[float], Awaitable[None]], *, waited: bool = False
    ) -> AsyncGenerator[str, None]:
        """Wait for permission to send; yield a note if long."""
        wait = self.reserve(waited=waited)
        if wait >= _REPORTED_FROM:
            yield f"waits {wait:.0f} s for the rate limit that sessions share"
        if wait > 0:
            await sleep(wait)


_LIMITS: weakref.WeakValueDictionary[tuple[str, str, str, int], RateLimit] = (
    weakref.WeakValueDictionary()
)
_LOCK = threading.Lock()


def shared_limit(
    url: str, account: str, model: str, per_minute: int | None
) -> RateLimit:
    """Return the shared rate limit of a server, account and model."""
    key = (url, account, model, per_minute or 0)
    with _LOCK:
        limit = _LIMITS.get(key)
        if limit is None:
            limit = _LIMITS[key] = RateLimit(per_minute or None)
        return limit
