"""Run one step: resolve, count, authorise, invoke, store, report.

Whatever a command does ends in a `Result`. It may raise anything, so the `except` here
is broad.
"""

from __future__ import annotations

import asyncio
import time

from neuraxis import call_errors
from neuraxis.assets.copying import copy_value
from neuraxis.assets.json_view import drain
from neuraxis.assets.store import Prepared, Stored
from neuraxis.assets.unfolding import PARTS, unfolds
from neuraxis.engines import GIVEN_UP
from neuraxis.errors import StorageError
from neuraxis.execution.failures import (
    declared_failure,
    failed_result,
    failure_of,
)
from neuraxis.execution.invoke import invoke
from neuraxis.execution.offload import in_thread_if, is_large, leads_to_object
from neuraxis.execution.repeated_calls import call_key, is_repeated, reuse_result
from neuraxis.execution.report import (
    report_finished,
    report_started,
    report_stored,
)
from neuraxis.execution.resolve import resolve_arguments
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import Call, CallError, Problem, Result
from neuraxis.planning.plan import Step
from neuraxis.plugins.registry import Command
from neuraxis.policy.authorize import authorize, is_sent_again
from neuraxis.policy.decision import Refused
from neuraxis.policy.deferred_questions import Waits
from neuraxis.schema.schema import Schema

_NOT_BEGUN = "the call was not begun"


async def run_step(step: Step, runtime: Runtime) -> Result:
    """Run one step; an exception of its command becomes the result's error.

    Raises:
        asyncio.CancelledError: the run was stopped.
        Waits: the step needs an approval first.
        StorageError: the journal or the assets cannot be written.
    """
    call, started = step.call, time.perf_counter()
    try:
        result = await _run(step, runtime)
    except asyncio.CancelledError as raised:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            changes = not step.command.spec.effects.readonly
            error = call_errors.cancelled(
                call.target,
                changes=changes,
                still_running=GIVEN_UP in raised.args,
            )
            if _NOT_BEGUN in raised.args:
                error = call_errors.not_begun(call.target)
            result = failed_result(step, error, started, runtime)
            report_finished(result, runtime, step)
            runtime.usage.ended[call.id] = result  # for the run's answer
            raise
        # the run was not stopped: the command's own tasks were cancelled
        error = call_errors.crashed(call.target, "CancelledError", "")
        result = failed_result(step, error, started, runtime, raised)
    except (StorageError, Waits, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as raised:  # noqa: BLE001 - plugin code may raise anything, also `sys.exit`, or its Rust part a panic
        result = failure_of(raised, step, started, runtime)
    report_finished(result, runtime, step)
    return result


async def _run(step: Step, runtime: Runtime) -> Result:
    arguments = step.arguments
    if step.bindings or step.asset_refs:
        large = leads_to_object(step, runtime)
        try:
            arguments = await in_thread_if(large, resolve_arguments, step, runtime)
        except Refused:
            runtime.gate.origins.fails(step)
            raise
    key = call_key(step, arguments)
    _count(step, runtime)
    earlier = runtime.usage.seen.get(key)
    if earlier is not None and (
        is_repeated(earlier, runtime) or is_sent_again(step, arguments, runtime.gate)
    ):
        return await reuse_result(earlier[-1], step, len(earlier), runtime)
    try:
        label = await authorize(step, arguments, runtime.gate)
    except asyncio.CancelledError:  # at a question: nothing was done
        raise asyncio.CancelledError(_NOT_BEGUN) from None
    report_started(step, runtime, arguments=arguments, label=label)
    if runtime.gate.settled is not None:
        await runtime.gate.settled()  # it is on disk before it runs (decision 5)
    if not step.command.spec.effects.readonly:
        # earlier calls may return something else now, even if this one fails
        runtime.usage.seen.clear()
        if earlier is not None:
            # but its own repetitions still count
            runtime.usage.seen[key] = earlier
    started = time.perf_counter()  # waiting for an approval does not count
    value, warnings = await invoke(step, arguments, label, runtime)
    warnings = (*step.warnings, *warnings)
    result = await _store(step, value, warnings, started, runtime)
    # an equal call may have ended in the meantime
    runtime.usage.seen.setdefault(key, []).append(result)
    return result


def _count(step: Step, runtime: Runtime) -> None:
    """Count the call against the budget.

    Raises:
        Refused: a limit of the run is reached.
    """
    usage, budget, tool = runtime.usage, runtime.budget, step.tool
    usage.steps += 1
    times = usage.by_tool[tool] = usage.by_tool.get(tool, 0) + 1
    usage.counted.append((step.call.id, tool))
    if usage.steps > budget.steps:
        raise Refused(call_errors.budget_exhausted("calls in one run", budget.steps))
    if times > budget.steps_per_tool:
        limited = f"calls of {tool}"
        most = budget.steps_per_tool
        raise Refused(call_errors.budget_exhausted(limited, most, tool=tool))


async def _store(
    step: Step,
    value: object,
    warnings: tuple[str, ...],
    started: float,
    runtime: Runtime,
) -> Result:
    """Store the response inline or as an asset; return the call's result."""
    call, command = step.call, step.command
    prepared, warned = await in_thread_if(
        is_large(value), _prepare, step, value, runtime
    )
    stored = runtime.assets.put(prepared)
    report_stored(call.id, stored, runtime.emit)
    error: CallError | None = declared_failure(call, command, stored.value)
    return Result(
        call=call,
        status="done" if error is None else "failed",
        plugin=command.plugin.name,
        command=command.spec.name,
        value=stored.value,
        stored=stored.stored,
        preview=runtime.secrets.scrub(stored.preview),
        shown=call.id in runtime.shown,
        error=error,
        warnings=(*warnings, *warned),
        seconds=time.perf_counter() - started,
    )


def _prepare(
    step: Step, value: object, runtime: Runtime
) -> tuple[Prepared, tuple[str, ...]]:
    """Copy a response for its asset; check it against the manifest's schema."""
    call, command = step.call, step.command
    if step.item is not None:  # the list of all items is stored as a whole
        stored = Stored(stored=False, value=copy_value(drain(value)))
        prepared = Prepared(asset_id=call.id, stored=stored)
    else:
        prepared = runtime.assets.prepare(call.id, command.spec.name, value)
    return prepared, _contract_warnings(call, command, prepared.stored, runtime)


def _contract_warnings(
    call: Call, command: Command, stored: Stored, runtime: Runtime
) -> tuple[str, ...]:
    """Return a warning if the response violates the manifest's schema.

    Raises:
        Refused: it does, and the session is strict.
    """
    response = command.response
    if response is None or (not stored.stored and response.valid_json(stored.value)):
        return ()
    problem = _contract_problem(response, stored.value)
    if problem is None:
        return ()
    error = call_errors.plugin_contract_error(call.target, (problem,))
    if runtime.strict:
        raise Refused(error)
    return (error.message,)


def _contract_problem(response: Schema, value: object) -> Problem | None:
    """Return what a response violates; one that unfolds cannot be checked."""
    if response.json and unfolds(value):
        return call_errors.unfolding_problem(PARTS)
    return response.accepts_native((), value)
