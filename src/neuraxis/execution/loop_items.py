"""Outcome of each item of a step with `for_each`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuraxis import call_errors
from neuraxis.messages import Call, Result

_UNCERTAIN = frozenset({"outcome_unknown", "cancelled"})


def item_entry(index: int, result: Result) -> dict[str, Any]:
    """Return an item's entry in the response of its loop."""
    entry: dict[str, Any] = {"index": index, "status": result.status}
    if result.status == "done":
        entry["response"] = result.value
    elif result.error is not None:
        entry["error"] = call_errors.to_json(result.error)
    return entry


def stopped_loop(
    call: Call, items: Mapping[int, Result], total: int | None, *, again: bool
) -> Result:
    """Return the result of a loop that was stopped between its items.

    Args:
        call: the loop's call.
        items: results by index; missing items were not started.
        total: the number of items; None: not known.
        again: whether an item may run twice.
    """
    started = {
        index: items[index]
        for index in sorted(items)
        if items[index].status != "skipped"
    }
    uncertain = [
        index
        for index, result in started.items()
        if result.error is not None and result.error.code in _UNCERTAIN
    ]
    ended = sorted(started.keys() - uncertain)
    remaining: list[int] | None = None
    if total is not None:
        remaining = [index for index in range(total) if index not in started]
    return Result(
        call=call,
        status="failed",
        value=[item_entry(index, result) for index, result in started.items()],
        error=call_errors.loop_cut_off(
            call.target, ended, uncertain, remaining, again=again
        ),
    )
