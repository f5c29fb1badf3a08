"""Run one step with its retries, concurrency slots and `for_each` items.

Around `run_step` stand the options of a step: a second try under the policy `retry`,
the `concurrency` of its command, and `for_each`.
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
from neuraxis.execution.concurrent import goes_on, run_in_order, run_overlapping
from neuraxis.execution.failures import crashed
from neuraxis.execution.loop_items import cut_off_loop, entry_of
from neuraxis.execution.loop_limits import beyond_limit
from neuraxis.execution.offload import aside, is_large, leads_to_object
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
from neuraxis.planning.for_each import Loop, wrong_items
from neuraxis.planning.plan import Plan, Step, item_steps, waits_for
from neuraxis.policy.decision import Refused
from neuraxis.policy.later import Waits
from neuraxis.references.render import ReferenceFailure

ITEMS_AT_ONCE = 8
"""Maximum concurrent items of one step; those with effects run sequentially."""
_TOLD = 5
"""Maximum failed items that one message names."""


def run_one(step: Step, runtime: Runtime) -> Coroutine[Any, Any, Result]:
    """Run a step with its options; never raises for a command's failure."""
    if step.call.id in runtime.known:
        return _known(step, runtime)
    if step.loop is not None:
        return _run_loop(step, step.loop, runtime)
    if runtime.on_error == "retry" or step.command.spec.concurrency is not None:
        return run_with_retry(step, runtime)
    return run_step(step, runtime)


async def _known(step: Step, runtime: Runtime) -> Result:
    return replace(runtime.known[step.call.id], call=step.call)


# --- one call for each item ----------------------------------------------------


async def _run_loop(step: Step, loop: Loop, runtime: Runtime) -> Result:
    call = step.call
    started = time.perf_counter()
    steps: Sequence[Step] = ()
    try:
        runtime.gate.origins.loops(step, loop)
        large = leads_to_object(step, runtime)
        steps = await aside(large, _item_steps, step, loop, runtime)
        _check_limits(step, steps, runtime)
        report_started(step, runtime, items=len(steps))
        if goes_on(steps, runtime):
            results = await run_in_order(steps, runtime, run_one)
        else:
            waits = waits_for(Plan(steps=tuple(steps)), runtime.gate.policy.may_ask)
            results = await run_overlapping(
                steps, waits, runtime, run_one, ITEMS_AT_ONCE
            )
        result = await _joined(step, results, runtime)
    except Refused as refused:
        result = failed(step, refused.error)
    except CommandError as refused:  # refused by the parent run (`nested.py`)
        result = failed(step, call_errors.failed(call.target, str(refused)))
    except Waits:  # its items that ended are in the journal
        report_finished(failed(step, call_errors.waits(call.target)), runtime)
        raise
    except asyncio.CancelledError:
        cut_off = _cut_off(step, steps, runtime)
        report_finished(cut_off, runtime)
        runtime.usage.ended[call.id] = cut_off
        raise
    result = replace(result, seconds=time.perf_counter() - started)
    report_finished(result, runtime)
    return result


def _item_steps(step: Step, loop: Loop, runtime: Runtime) -> list[Step]:
    """Return one step per item, all checked before the first one runs."""
    target = step.call.target
    try:
        items = loop.items(runtime.assets.resolve)
    except ReferenceLost as lost:
        raise Refused(lost.error) from None
    except ReferenceFailure as failure:
        raise Refused(
            call_errors.reference_not_found(target, failure.message)
        ) from None
    problem = wrong_items(items, loop.most)
    if problem is not None:
        raise Refused(call_errors.invalid_param(target, [problem]))
    steps = item_steps(step, cast("Sequence[Any]", items))
    if runtime.on_error != "continue" and (step.bindings or step.asset_refs):
        for item in steps:
            try:
                resolve_arguments(item, runtime)
            except Refused as refused:
                where = f"item {_index(item)}"
                raise Refused(_within(refused.error, where)) from None
    return steps


def _check_limits(step: Step, steps: Sequence[Step], runtime: Runtime) -> None:
    """Check that the run's budget has room for all items.

    Raises:
        Refused: it has not.
    """
    count = sum(item.call.id not in runtime.known for item in steps)
    error = beyond_limit(step, count, runtime.usage, runtime.budget)
    if error is not None:
        raise Refused(error)


def _within(error: CallError, where: str) -> CallError:
    return replace(error, message=f"{where}: {error.message} Nothing was run.")


def _index(step: Step) -> int:
    return step.item.index if step.item is not None else 0


def _cut_off(step: Step, steps: Sequence[Step], runtime: Runtime) -> Result:
    """Return the result of a loop that is stopped."""
    call, spec, ended = step.call, step.command.spec, runtime.usage.ended
    items = {_index(one): ended[one.call.id] for one in steps if one.call.id in ended}
    result = cut_off_loop(call, items, len(steps), again=spec.effects.kind != "once")
    kept = runtime.assets.keep(call.id, spec.name, result.value)
    report_stored(call.id, kept, runtime.emit)
    return replace(
        result,
        plugin=step.command.plugin.name,
        command=spec.name,
        value=kept.value,
        stored=kept.stored,
    )


async def _joined(step: Step, results: Sequence[Result], runtime: Runtime) -> Result:
    """Return the whole step's result: the list of answers, or failures.

    Under `continue` an item that failed is left out, with a warning.
    """
    call, command = step.call, step.command
    done = [result for result in results if result.status == "done"]
    bad = [
        (index, result)
        for index, result in enumerate(results)
        if result.status == "failed"
    ]
    goes_on = runtime.on_error == "continue" and done
    values: list[Any] = [result.value for result in done]
    if bad and not goes_on:
        values = [entry_of(index, result) for index, result in enumerate(results)]
    kept = await _store_all(values, step, runtime)
    whole = Result(
        call=call,
        status="done",
        plugin=command.plugin.name,
        command=command.spec.name,
        value=kept.value,
        stored=kept.stored,
        shown=any(result.shown for result in done),
        warnings=tuple(
            dict.fromkeys(text for result in done for text in result.warnings)
        ),
    )
    if not bad:
        return whole
    messages = [
        f"item {index}: {result.error.message if result.error else 'it failed'}"
        for index, result in bad[:_TOLD]
    ]
    if len(bad) > _TOLD:
        messages.append(f"… and {len(bad) - _TOLD} more")
    if goes_on:
        lost = f"{len(bad)} of {len(results)} items failed and are left out"
        return replace(whole, warnings=(*whole.warnings, lost, *messages))
    error = call_errors.items_failed(call.target, len(bad), len(results), messages)
    return replace(whole, status="failed", error=error, exception=bad[0][1].exception)


async def _store_all(values: list[Any], step: Step, runtime: Runtime) -> Stored:
    """Store the list of answers; some may be native objects."""
    call = step.call
    try:
        name, assets = step.command.spec.name, runtime.assets
        large = is_large(values)
        kept = assets.put(await aside(large, assets.prepare, call.id, name, values))
    except StorageError:
        raise
    except Exception as raised:
        raise Refused(crashed(call, raised, runtime)) from raised
    report_stored(call.id, kept, runtime.emit)
    return kept
