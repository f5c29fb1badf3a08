"""Who looks at events as they happen: a `watch` flows in, one that is safe flows out.

It is a program's own function and may raise. That ends the run and comes out as it is;
it is no fault of the command that the event tells of.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from neuraxis.errors import StorageError
from neuraxis.events import Event

Watch = Callable[[Event], None]
"""Sees every event as it happens."""
P = ParamSpec("P")
T = TypeVar("T")


class _WatchFailed(StorageError):
    """What watches raised: like a journal that is broken it ends the run at once.

    It must not be taken for the failure of the command that it was told of.
    """

    def __init__(self, watch: Watch, raised: Exception) -> None:
        super().__init__(f"what watches the run raised {raised!r}")
        self.watch, self.raised = watch, raised


def guard_watch(watch: Watch | None) -> Watch | None:
    """`watch`, for what is `watched`."""
    if watch is None:
        return None

    def tell(event: Event) -> None:
        try:
            watch(event)
        except _WatchFailed:
            raise
        except Exception as raised:
            raise _WatchFailed(watch, raised) from raised

    return tell


def reraise_watch_errors(
    work: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Raise what the `watch` that was given raised, and which ended the work, as it is.

    That of a session around this one ends that one, too.
    """

    @wraps(work)
    async def worked(*args: P.args, **named: P.kwargs) -> T:
        try:
            return await work(*args, **named)
        except _WatchFailed as failed:
            if failed.watch is named.get("watch", args[2] if len(args) > 2 else None):
                raise failed.raised from None
            raise

    return worked
