"""Retry policy and concurrency limits of commands."""

from __future__ import annotations

import asyncio

from neuraxis import call_errors
from neuraxis.engines.slots import SLOT, Slots
from neuraxis.errors import MissingExtra
from neuraxis.execution.report import report_finished
from neuraxis.execution.runtime import Runtime
from neuraxis.execution.step import run_step
from neuraxis.messages import CallError, Result
from neuraxis.planning.plan import Step

PAUSES = (0.2, 1.0)
"""Seconds before the second and the third attempt."""
TRIES = 1 + len(PAUSES)


async def run_with_retry(step: Step, runtime: Runtime) -> Result:
    """Run one step; with `retry`, repeat it after a passing failure."""
    result = await _run_in_slot(step, runtime)
    if runtime.on_error != "retry":
        return result
    for pause in PAUSES:
        if not _is_retryable(step, result):
            break
        await asyncio.sleep(pause)
        result = await _run_in_slot(step, runtime)
    return result


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
    """Return whether the step crashed or timed out, and is repeatable."""
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
