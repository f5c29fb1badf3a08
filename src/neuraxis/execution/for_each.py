"""Run one step with its retries, concurrency slots and `for_each` items.

This adds a step's options to `run_step`: retries under `on_error="retry"`, the
`concurrency` of its command, and `for_each`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.store import ReferenceLost, Stored
from neuraxis.errors import CommandError, StorageError
from neuraxis.execution.concurrent import has_waited, run_concurrently, run_in_order
from neuraxis.execution.failures import crashed
from neuraxis.execution.loop_items import item_entry, stopped_loop
from neuraxis.execution.loop_limits import loop_limit_error
from neuraxis.execution.offload import in_thread_if, is_large, leads_to_object
from neuraxis.execution.report import (
    report_finished,
    report_started,
    report_stored,
)
from neuraxis.execution.resolve import resolve_arguments
from neuraxis.execution.retry import failed, run_with_retry
from neuraxis.execution.runtime import Runtime
from neuraxis.execution.step import run_step
from neuraxis.messages import CallError, Result
from neuraxis.planning.for_each import items_of, list_problem
from neuraxis.planning.plan import Loop, Plan, Step, item_steps, waits_for
from neuraxis.policy.decision import Refused
from neuraxis.references.render import ReferenceFailure

MAX_CONCURRENT_ITEMS = 8
"""Maximum concurrent items of one step; those with effects run sequentially."""
_MOST_NAMED = 5
"""Maximum failed items named in one message."""


def run_one(step: Step, runtime: Runtime) -> Coroutine[Any, Any, Result]:
    """Run a step with its options; a command's failure becomes its result."""
    if step.call.id in runtime.earlier_results:
        return _earlier_result(step, runtime)
    if step.loop is not None:
        return _run_loop(step, step.loop, runtime)
    if runtime.on_error == "retry" or step.command.spec.concurrency is not None:
        return run_with_retry(step, runtime)
    return run_step(step, runtime)


async def _earlier_result(step: Step, runtime: Runtime) -> Result:
    result = replace(runtime.earlier_results[step.call.id], call=step.call)
    if result.stored:  # the journal has no preview
        shown = runtime.secrets.scrub(runtime.assets.preview(result.value))
        return replace(result, preview=shown)
    return result


# --- one call for each item ----------------------------------------------------


async def _run_loop(step: Step, loop: Loop, runtime: Runtime) -> Result:
    call = step.call
    started = time.perf_counter()
    steps: Sequence[Step] = ()
    try:
        runtime.gate.origins.loops(step, loop)
        large = leads_to_object(step, runtime)
        steps = await in_thread_if(large, _item_steps, step, loop, runtime)
        _check_limits(step, steps, runtime)
        report_started(step, runtime, items=len(steps))
        if has_waited(steps, runtime):
            results = await run_in_order(steps, runtime, run_one)
        else:
            waits = waits_for(Plan(steps=tuple(steps)), runtime.gate.policy.may_ask)
            results = await run_concurrently(
                steps, waits, runtime, run_one, MAX_CONCURRENT_ITEMS
            )
        result = await _join_results(step, results, runtime)
    except Refused as refused:
        runtime.gate.origins.fails(step)
        result = failed(step, refused.error)
    except CommandError as refused:  # refused by the parent run (`nested.py`)
        result = failed(step, call_errors.failed(call.target, str(refused)))
    except asyncio.CancelledError:
        stopped = _stopped_result(step, steps, runtime)
        report_finished(stopped, runtime)
        runtime.usage.ended[call.id] = stopped
        raise
    result = replace(result, seconds=time.perf_counter() - started)
    report_finished(result, runtime)
    return result


def _item_steps(step: Step, loop: Loop, runtime: Runtime) -> list[Step]:
    """Return one step per item, all checked before the first one runs."""
    target = step.call.target
    try:
        items = items_of(loop, runtime.assets.resolve)
    except ReferenceLost as lost:
        raise Refused(lost.error) from None
    except ReferenceFailure as failure:
        raise Refused(
            call_errors.reference_not_found(target, failure.message)
        ) from None
    problem = list_problem(items, loop.most)
    if problem is not None:
        raise Refused(call_errors.invalid_param(target, [problem]))
    steps = item_steps(step, cast("Sequence[Any]", items))
    if runtime.on_error != "continue" and (step.bindings or step.asset_refs):
        for item in steps:
            try:
                resolve_arguments(item, runtime)
            except Refused as refused:
                where = f"item {_index(item)}"
                raise Refused(_item_error(refused.error, where)) from None
    return steps


def _check_limits(step: Step, steps: Sequence[Step], runtime: Runtime) -> None:
    """Check that the remaining budget allows all items.

    Raises:
        Refused: it does not.
    """
    count = sum(item.call.id not in runtime.earlier_results for item in steps)
    error = loop_limit_error(step, count, runtime.usage, runtime.budget)
    if error is not None:
        raise Refused(error)


def _item_error(error: CallError, item: str) -> CallError:
    return replace(error, message=f"{item}: {error.message} Nothing was run.")


def _index(step: Step) -> int:
    return step.item.index if step.item is not None else 0


def _stopped_result(step: Step, steps: Sequence[Step], runtime: Runtime) -> Result:
    """Return the result of a loop that is stopped."""
    call, spec, ended = step.call, step.command.spec, runtime.usage.ended
    items = {
        _index(item): ended[item.call.id] for item in steps if item.call.id in ended
    }
    result = stopped_loop(call, items, len(steps), again=spec.effects.kind != "once")
    stored = runtime.assets.keep(call.id, spec.name, result.value)
    report_stored(call.id, stored, runtime.emit)
    return replace(
        result,
        plugin=step.command.plugin.name,
        command=spec.name,
        value=stored.value,
        stored=stored.stored,
        preview=runtime.secrets.scrub(stored.preview),
    )


async def _join_results(
    step: Step, results: Sequence[Result], runtime: Runtime
) -> Result:
    """Return the step's result: its items' values, or a failure.

    Under `continue` a failed item is left out, with a warning.
    """
    call, command = step.call, step.command
    done = [item for item in results if item.status == "done"]
    failures = [
        (index, item) for index, item in enumerate(results) if item.status == "failed"
    ]
    omits_failures = runtime.on_error == "continue" and done
    values: list[Any] = [item.value for item in done]
    if failures and not omits_failures:
        values = [item_entry(index, item) for index, item in enumerate(results)]
    stored = await _store_all(values, step, runtime)
    result = Result(
        call=call,
        status="done",
        plugin=command.plugin.name,
        command=command.spec.name,
        value=stored.value,
        stored=stored.stored,
        preview=runtime.secrets.scrub(stored.preview),
        shown=any(item.shown for item in done),
        warnings=tuple(dict.fromkeys(text for item in done for text in item.warnings)),
    )
    if not failures:
        return result
    messages = [
        f"item {index}: {item.error.message if item.error else 'it failed'}"
        for index, item in failures[:_MOST_NAMED]
    ]
    if len(failures) > _MOST_NAMED:
        messages.append(f"… and {len(failures) - _MOST_NAMED} more")
    if omits_failures:
        lost = f"{len(failures)} of {len(results)} items failed and are left out"
        return replace(result, warnings=(*result.warnings, lost, *messages))
    error = call_errors.items_failed(call.target, len(failures), len(results), messages)
    exception = failures[0][1].exception
    return replace(result, status="failed", error=error, exception=exception)


async def _store_all(values: list[Any], step: Step, runtime: Runtime) -> Stored:
    """Store the list of values; some may be native objects."""
    call = step.call
    try:
        name = step.command.spec.name
        prepare = runtime.assets.prepare
        large = is_large(values)
        prepared = await in_thread_if(large, prepare, call.id, name, values)
        stored = runtime.assets.put(prepared)
    except StorageError:
        raise
    except Exception as raised:
        raise Refused(crashed(call, raised, runtime)) from raised
    report_stored(call.id, stored, runtime.emit)
    return stored
