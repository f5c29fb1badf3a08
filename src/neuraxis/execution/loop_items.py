"""Outcome of each item of a step with `for_each`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuraxis import call_errors
from neuraxis.messages import Call, Result

_UNSURE = frozenset({"outcome_unknown", "cancelled"})


def entry_of(index: int, result: Result) -> dict[str, Any]:
    """Return what the loop's response says of one item."""
    entry: dict[str, Any] = {"index": index, "status": result.status}
    if result.status == "done":
        entry["response"] = result.value
    elif result.error is not None:
        entry["error"] = call_errors.to_json(result.error)
    return entry


def cut_off_loop(
    call: Call, items: Mapping[int, Result], total: int | None, *, again: bool
) -> Result:
    """Return the result of a loop that was stopped between its items.

    Args:
        call: of the loop.
        items: results by index; those that are not there were not begun.
        total: items of the list; None: that is not known.
        again: whether an item may run twice.
    """
    begun = {at: items[at] for at in sorted(items) if items[at].status != "skipped"}
    unsure = [
        at
        for at, result in begun.items()
        if result.error is not None and result.error.code in _UNSURE
    ]
    ended = sorted(begun.keys() - unsure)
    left = None if total is None else [at for at in range(total) if at not in begun]
    return Result(
        call=call,
        status="failed",
        value=[entry_of(at, result) for at, result in begun.items()],
        error=call_errors.loop_cut_off(call.target, ended, unsure, left, again=again),
    )
