"""Process large values in a thread, not in the event loop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from neuraxis.engines.threads import THREADS
from neuraxis.execution.runtime import Runtime
from neuraxis.planning.plan import Step, refs_of

_MOST_ITEMS = 2000
_MOST_CHARACTERS = 100_000
_SCALARS = frozenset(
    {int, float, bool, type(None), date, datetime, time, timedelta, Decimal, UUID}
)
T = TypeVar("T")


async def in_thread_if(large: bool, work: Callable[..., T], /, *args: Any) -> T:
    """Call `work`, in a thread if its values are large."""
    if not large:
        return work(*args)
    return await THREADS.run(partial(work, *args), bounded=False)


def is_large(value: Any) -> bool:
    """Check whether a full traversal of a value may take long.

    Objects of other classes count as large, since they are copied and saved.
    """
    remaining, waiting = _MOST_ITEMS, [value]
    while waiting:
        item = waiting.pop()
        kind = item.__class__
        if kind is str:
            if len(item) > _MOST_CHARACTERS:
                return True
        elif kind is dict or kind is list or kind is tuple:
            remaining -= len(item)
            if remaining < 0:
                return True
            waiting += item.values() if kind is dict else item
        elif kind not in _SCALARS:
            return True
    return False


def leads_to_object(step: Step, runtime: Runtime) -> bool:
    """Check whether a step's arguments refer to a stored object."""
    if step.item is not None and is_large(step.item.value):
        return True
    if not (step.bindings or step.asset_refs or step.loop):
        return False
    refs = refs_of(step) + ([] if step.loop is None else refs_of(step.loop))
    return any(runtime.assets.is_asset(ref.asset_id) for ref in refs)
