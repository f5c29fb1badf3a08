"""Retries and concurrency limits of commands."""

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
ATTEMPTS = 1 + len(PAUSES)


async def run_with_retry(step: Step, runtime: Runtime) -> Result:
    """Run one step; `retry` repeats it after exceptions and timeouts."""
    if runtime.on_error != "retry":
        return await _run_in_slot(step, runtime)
    attempts = _Attempts(call_id=step.call.id, emit=runtime.emit)
    recording = replace(runtime, emit=attempts.receive)
    try:
        result = await _run_in_slot(step, recording)
        for pause in PAUSES:
            if not _is_retryable(step, result):
                break
            attempts.report_retry(result)
            await asyncio.sleep(pause)
            result = await _run_in_slot(step, recording)
    finally:
        attempts.report_end()
    return result


class _Attempts(Struct, kw_only=True):
    """Reports all attempts at one call with one start and one end."""

    call_id: str
    emit: Callable[[Event], None]
    started: bool = False
    end: CallFinished | None = None

    def receive(self, event: Event) -> None:
        """Pass on an event, except a second start and an end."""
        if isinstance(event, CallFinished) and event.id == self.call_id:
            # the files that a failed attempt wrote still exist
            ends = [event] if self.end is None else [self.end, event]
            wrote = dict.fromkeys(path for end in ends for path in end.wrote)
            copied = dict.fromkeys(path for end in ends for path in end.copied or ())
            self.end = replace(
                event, wrote=(*wrote,), copied=(*copied,) if wrote else None
            )
            return
        if isinstance(event, CallStarted) and event.id == self.call_id:
            if self.started:
                return
            self.started = True
        self.emit(event)

    def report_retry(self, result: Result) -> None:
        """Report as progress that an attempt failed and another follows."""
        why = "" if result.error is None else result.error.message
        self.emit(CallProgress(id=self.call_id, message=f"{why} It is tried again."))

    def report_end(self) -> None:
        """Report the end of the last attempt."""
        if self.end is not None:
            self.emit(self.end)


async def _run_in_slot(step: Step, runtime: Runtime) -> Result:
    spec = step.command.spec
    if spec.concurrency is None:
        return await run_step(step, runtime)
    slots = runtime.slots.setdefault(step.tool, Slots(spec.concurrency))
    slot = await slots.take(spec.time_limit or runtime.time_limit)
    if slot is None:
        result = failed(step, call_errors.still_busy(step.call.target))
        report_finished(result, runtime, step)
        return result
    token = SLOT.set(slot)
    try:
        return await run_step(step, runtime)
    finally:
        SLOT.reset(token)
        slot.end_call()


def _is_retryable(step: Step, result: Result) -> bool:
    """Return whether the step raised or timed out, and is repeatable.

    A `CommandError` counts, too: commands raise it for temporary failures, such as a
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
