"""One step flows in, its result flows out: tried again, held back, or done per item.

Around `run_step` stands what a step may ask for beside being run once: a second try
under the policy `retry`, the `concurrency` of its command, and `for_each`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, cast

from neuraxis import sentences
from neuraxis.assets.store import ReferenceLost
from neuraxis.deciding import Refused
from neuraxis.engines.holding import PLACE, Places
from neuraxis.errors import CommandError, MissingExtra
from neuraxis.events import CallStarted
from neuraxis.execute import finished, keep_all, run_step
from neuraxis.messages import CallError, Result
from neuraxis.overlap import run_overlapping
from neuraxis.plan import Item, Loop, Plan, Step, waits_for
from neuraxis.plan_loops import wrong_items
from neuraxis.references import ReferenceFailure
from neuraxis.resolving import resolve_arguments
from neuraxis.runtime import Runtime

PAUSES = (0.2, 1.0)
"""Seconds before the second and the third try."""
TRIES = 1 + len(PAUSES)
ITEMS_AT_ONCE = 8
"""Items of one step that run at the same time; those with an effect run in order."""
_TOLD = 5
"""Failed items that one message names."""


def run_one(step: Step, runtime: Runtime) -> Coroutine[Any, Any, Result]:
    """Run a step as it asks to be run; never raises for what a command does."""
    if step.loop is not None:
        return _run_loop(step, step.loop, runtime)
    if runtime.on_error == "retry" or step.command.spec.concurrency is not None:
        return _run_held(step, runtime)
    return run_step(step, runtime)


def is_asked_about(step: Step, runtime: Runtime) -> bool:
    """Whether a rule may ask a person; then only about a step that is sure to run."""
    policy, spec = runtime.policy, step.command.spec
    if not policy.rules:
        return policy.default == "ask"
    target = f"{step.command.plugin.name}.{spec.name}"
    return policy.default == "ask" or any(
        rule.verdict == "ask"
        and (not rule.effects or spec.effects.kind in rule.effects)
        and fnmatchcase(target, rule.target)
        for rule in policy.rules
    )


def may_reach_a_limit(plan: Plan, runtime: Runtime) -> bool:
    """Whether a limit may be reached in the middle.

    Who gets the last call of a budget must not depend on who was first.
    """
    tries = TRIES if runtime.on_error == "retry" else 1
    budget, usage = runtime.budget, runtime.usage
    total = usage.steps
    by_tool: dict[str, int] = {}
    for step in plan.steps:
        tool = f"{step.command.plugin.name}.{step.command.spec.name}"
        most = tries * (step.loop.most if step.loop is not None else 1)
        total += most
        by_tool[tool] = by_tool.get(tool, usage.by_tool.get(tool, 0)) + most
    return (
        total > budget.steps or max(by_tool.values(), default=0) > budget.steps_per_tool
    )


# --- one call ------------------------------------------------------------------


async def _run_held(step: Step, runtime: Runtime) -> Result:
    result = await _in_its_place(step, runtime)
    if runtime.on_error != "retry":
        return result
    for pause in PAUSES:
        if not _may_be_tried_again(step, result):
            break
        await asyncio.sleep(pause)
        result = await _in_its_place(step, runtime)
    return result


async def _in_its_place(step: Step, runtime: Runtime) -> Result:
    spec = step.command.spec
    if spec.concurrency is None:
        return await run_step(step, runtime)
    tool = f"{step.command.plugin.name}.{spec.name}"
    places = runtime.places.setdefault(tool, Places(spec.concurrency))
    place = await places.take(spec.time_limit or runtime.time_limit)
    if place is None:
        result = _failed(step, sentences.still_busy(step.call.target))
        finished(result, runtime, step)
        return result
    before = PLACE.set(place)
    try:
        return await run_step(step, runtime)
    finally:
        PLACE.reset(before)
        place.leave()


def _may_be_tried_again(step: Step, result: Result) -> bool:
    """Whether it raised or was too slow, and doing it twice is like doing it once."""
    if result.error is None or step.command.spec.effects.kind == "once":
        return False
    if isinstance(result.exception, MissingExtra):
        return False
    return result.error.code == "timeout" or result.exception is not None


# --- one call for each item ----------------------------------------------------


async def _run_loop(step: Step, loop: Loop, runtime: Runtime) -> Result:
    call, spec = step.call, step.command.spec
    started = time.perf_counter()
    begins = CallStarted(
        id=call.id,
        plugin=step.command.plugin.name,
        command=spec.name,
        tool=call.target,
        arguments=call.arguments,
        effects=spec.effects.kind,
    )
    try:
        runtime.emit(begins)
        runtime.origins.loops(step, loop)
        steps = _item_steps(step, loop, runtime)
        results = await run_overlapping(
            steps,
            waits_for(
                Plan(steps=tuple(steps)), lambda item: is_asked_about(item, runtime)
            ),
            runtime,
            run_one,
            ITEMS_AT_ONCE,
        )
        result = _joined(step, results, runtime)
    except Refused as refused:
        result = _failed(step, refused.error)
    except CommandError as refused:  # by the run around it (`nesting.py`)
        result = _failed(step, sentences.failed(call.target, str(refused)))
    except asyncio.CancelledError:
        changes = not spec.effects.readonly
        cancelled = _failed(step, sentences.cancelled(call.target, changes=changes))
        finished(cancelled, runtime)
        raise
    result = replace(result, seconds=time.perf_counter() - started)
    finished(result, runtime)
    return result


def _item_steps(step: Step, loop: Loop, runtime: Runtime) -> list[Step]:
    """One step for each item, all of them checked before the first is run."""
    target = step.call.target
    try:
        items = loop.items(runtime.assets.resolve)
    except ReferenceLost as lost:
        raise Refused(lost.error) from None
    except ReferenceFailure as failure:
        raise Refused(sentences.reference_not_found(target, failure.message)) from None
    problem = wrong_items(items, loop.most)
    if problem is not None:
        raise Refused(sentences.invalid_param(target, [problem]))
    steps = [
        replace(
            step,
            call=replace(step.call, id=f"{step.call.id}.{index}", name=None),
            depends=frozenset[str](),
            loop=None,
            item=Item(index=index, value=value, part_of=step.call.id),
        )
        for index, value in enumerate(cast("Sequence[Any]", items))
    ]
    if runtime.on_error != "continue" and (step.bindings or step.asset_refs):
        for item in steps:
            try:
                resolve_arguments(item, runtime)
            except Refused as refused:
                where = f"item {_index(item)}"
                raise Refused(_within(refused.error, where)) from None
    return steps


def _within(error: CallError, where: str) -> CallError:
    return replace(error, message=f"{where}: {error.message} Nothing was run.")


def _index(step: Step) -> int:
    return step.item.index if step.item is not None else 0


def _joined(step: Step, results: Sequence[Result], runtime: Runtime) -> Result:
    """The result of the whole step: the list of answers, or what became of each item.

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
        values = [_entry(index, result) for index, result in enumerate(results)]
    kept = keep_all(values, step, runtime)
    whole = Result(
        call=call,
        status="done",
        plugin=command.plugin.name,
        command=command.spec.name,
        value=kept.value,
        stored=kept.stored,
        warnings=tuple(
            dict.fromkeys(text for result in done for text in result.warnings)
        ),
    )
    if not bad:
        return whole
    told = [
        f"item {index}: {result.error.message if result.error else 'it failed'}"
        for index, result in bad[:_TOLD]
    ]
    if len(bad) > _TOLD:
        told.append(f"… and {len(bad) - _TOLD} more")
    if goes_on:
        lost = f"{len(bad)} of {len(results)} items failed and are left out"
        return replace(whole, warnings=(*whole.warnings, lost, *told))
    error = sentences.items_failed(call.target, len(bad), len(results), told)
    return replace(whole, status="failed", error=error, exception=bad[0][1].exception)


def _entry(index: int, result: Result) -> dict[str, Any]:
    entry: dict[str, Any] = {"index": index, "status": result.status}
    if result.status == "done":
        entry["response"] = result.value
    elif result.error is not None:
        entry["error"] = sentences.error_json(result.error)
    return entry


def _failed(step: Step, error: CallError) -> Result:
    return Result(
        call=step.call,
        status="failed",
        plugin=step.command.plugin.name,
        command=step.command.spec.name,
        error=error,
    )
