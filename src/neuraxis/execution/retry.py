"""Retry policy and concurrency limits of commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.engines.slots import SLOT, Slots
from neuraxis.errors import MissingExtra
from neuraxis.events import CallFinished, CallProgress, CallStarted, Event
from neuraxis.execution.report import report_finished
from neuraxis.execution.runtime import Runtime
from neuraxis.execution.step import run_step
from neuraxis.messages import CallError, Result
from neuraxis.planning.plan import Step

PAUSES = (0.2, 1.0)
"""Seconds before the second and the third attempt."""
TRIES = 1 + len(PAUSES)


async def run_with_retry(step: Step, runtime: Runtime) -> Result:
    """Run one step; `retry` repeats what raised or timed out."""
    if runtime.on_error != "retry":
        return await _run_in_slot(step, runtime)
    tries = _Tries(call_id=step.call.id, emit=runtime.emit)
    heard = replace(runtime, emit=tries.hear)
    try:
        result = await _run_in_slot(step, heard)
        for pause in PAUSES:
            if not _is_retryable(step, result):
                break
            tries.again(result)
            await asyncio.sleep(pause)
            result = await _run_in_slot(step, heard)
    finally:
        tries.tell_end()
    return result


class _Tries(Struct, kw_only=True):
    """Reports all tries of one call with one start and one end."""

    call_id: str
    emit: Callable[[Event], None]
    started: bool = False
    end: CallFinished | None = None

    def hear(self, event: Event) -> None:
        """Pass an event on, but no second start, and no end yet."""
        if isinstance(event, CallFinished) and event.id == self.call_id:
            # the files that a failed try wrote are there
            earlier = () if self.end is None else self.end.wrote
            wrote = tuple(dict.fromkeys((*earlier, *event.wrote)))
            self.end = replace(event, wrote=wrote)
            return
        if isinstance(event, CallStarted) and event.id == self.call_id:
            if self.started:
                return
            self.started = True
        self.emit(event)

    def again(self, result: Result) -> None:
        """Tell who watches that a try failed and another follows."""
        why = "" if result.error is None else result.error.message
        self.emit(CallProgress(id=self.call_id, message=f"{why} It is tried again."))

    def tell_end(self) -> None:
        """Report how the last try ended."""
        if self.end is not None:
            self.emit(self.end)


async def _run_in_slot(step: Step, runtime: Runtime) -> Result:
    spec = step.command.spec
    if spec.concurrency is None:
        return await run_step(step, runtime)
    tool = f"{step.command.plugin.name}.{spec.name}"
    places = runtime.places.setdefault(tool, Slots(spec.concurrency))
    place = await places.take(spec.time_limit or runtime.time_limit)
    if place is None:
        result = failed(step, call_errors.still_busy(step.call.target))
        report_finished(result, runtime, step)
        return result
    before = SLOT.set(place)
    try:
        return await run_step(step, runtime)
    finally:
        SLOT.reset(before)
        place.leave()


def _is_retryable(step: Step, result: Result) -> bool:
    """Return whether the step raised or timed out, and is repeatable.

    A `CommandError` counts, too: it is how commands report what may pass, such as a
    server that does not answer.
    """
    if result.error is None or step.command.spec.effects.kind == "once":
        return False
    if isinstance(result.exception, MissingExtra):
        return False
    return result.error.code == "timeout" or result.exception is not None


def failed(step: Step, error: CallError) -> Result:
    """Return the result of a step that failed before it ran."""
    return Result(
        call=step.call,
        status="failed",
        plugin=step.command.plugin.name,
        command=step.command.spec.name,
        error=error,
    )
