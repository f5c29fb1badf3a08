"""Result of a call as the journal recorded it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.describe import json_size
from neuraxis.assets.store import INLINE_BYTES, AssetStore, ReferenceLost
from neuraxis.events import CallFinished, CallStarted
from neuraxis.execution.loop_items import stopped_loop
from neuraxis.messages import Call, CallError, Message, Result
from neuraxis.specs import Json


def result_of(
    call: Call, begun: CallStarted | None, end: CallFinished | None
) -> Result:
    """Return the result of a call from its events.

    Without an end its outcome is unknown; without a start it did not run.
    """
    if end is not None:
        return Result(
            call=call,
            status=end.status,
            plugin=end.plugin or None,
            command=end.command,
            value=end.value,
            stored=end.asset is not None,
            error=_error(end.error),
            warnings=end.warnings,
            seconds=end.seconds,
            shown=end.shown,
        )
    if begun is not None:
        return Result(
            call=call,
            status="failed",
            plugin=begun.plugin,
            command=begun.command,
            error=call_errors.outcome_unknown(
                call.target, changes=begun.effects not in ("none", "read")
            ),
        )
    error = call_errors.not_begun(call.target)
    return Result(call=call, status="skipped", error=error)


_CUT_OFF_CODES = ("cancelled", "outcome_unknown", "skipped")
"""Error codes of a loop that was stopped by the end of its run or by a question."""


class LoopItems(Struct, kw_only=True):
    """Events of a step with `for_each`, and of its items."""

    begun: CallStarted | None = None
    """None: an earlier version stored it without the number of items."""
    started: dict[str, CallStarted] = {}
    ended: dict[str, CallFinished] = {}

    def record(self, event: CallStarted | CallFinished) -> None:
        """Store an event of the step or of one of its items."""
        if isinstance(event, CallFinished):
            self.ended[event.id] = event
        elif event.part_of:
            self.started[event.id] = event
        else:
            self.begun = event

    def cut_off(self, call: Call) -> Result:
        """Return the result of a step whose own end was not recorded."""
        items: dict[int, Result] = {}
        for item_id in self.started | self.ended:
            index = item_id.rpartition(".")[2]
            if index.isdecimal():
                item = replace(call, id=item_id)
                recorded = (self.started.get(item_id), self.ended.get(item_id))
                items[int(index)] = result_of(item, *recorded)
        first = self.begun or next(iter(self.started.values()), None)
        again = first is not None and first.effects != "once"
        total = None if self.begun is None else self.begun.items
        result = stopped_loop(call, items, total, again=again)
        return replace(
            result,
            plugin=None if first is None else first.plugin,
            command=None if first is None else first.command,
            stored=json_size(result.value) > INLINE_BYTES,
        )


def is_cut_off(end: CallFinished | None) -> bool:
    """Return whether a loop stopped before its last item."""
    return end is None or (end.status == "failed" and code_of(end) in _CUT_OFF_CODES)


def code_of(end: CallFinished) -> str:
    """Return the code of a call's error, or ""."""
    error: Json = end.error
    return str(cast("dict[str, Json]", error).get("code")) if error else ""


def last_results(history: Sequence[Message], assets: AssetStore) -> list[Result]:
    """Return the results in the messages after the last reply."""
    results: list[Result] = []
    for message in reversed(history):
        if message.role == "assistant":
            break
        results = [*message.results, *results]
    return [with_value(result, assets) for result in results]


def with_value(result: Result, assets: AssetStore) -> Result:
    """Return the result with its stored object, unless the object is lost."""
    if result.stored:
        with suppress(ReferenceLost):  # resolving a reference reports it
            value = assets.root(result.call.id)["content"]["response"]
            return replace(result, value=value)
    return result


def _error(stored: Json) -> CallError | None:
    if not isinstance(stored, dict):
        return None
    fields = cast("dict[str, Json]", stored)
    return CallError(
        code=str(fields.get("code")),  # pyright: ignore[reportArgumentType] - as written
        message=str(fields.get("message")),
        where=str(fields.get("where", "")),
        fixable_by=str(fields.get("fixable_by", "model")),  # pyright: ignore[reportArgumentType] - the same
    )
