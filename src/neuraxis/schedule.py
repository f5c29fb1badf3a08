"""One plan: its steps flow in, their results flow out, in the plan's order.

The outcome is that of running the steps from top to bottom (decision 6); steps that
change nothing overlap where their references allow it.
"""

from __future__ import annotations

import asyncio

from neuraxis import sentences
from neuraxis.execute import finished, run_step
from neuraxis.messages import Result
from neuraxis.plan import Plan, Step, waits_for
from neuraxis.runtime import Runtime


async def run_plan(plan: Plan, runtime: Runtime) -> list[Result]:
    """Run every step; a failed one skips all that stand after it (rule C19)."""
    if len(plan.steps) == 1:
        return [await run_step(plan.steps[0], runtime)]
    if not any(
        step.command.spec.effects.readonly and not step.depends for step in plan.steps
    ):
        return await _in_order(plan, runtime)
    return await _overlapping(plan, runtime)


async def _in_order(plan: Plan, runtime: Runtime) -> list[Result]:
    results: list[Result] = []
    broken: Step | None = None
    for step in plan.steps:
        if broken is not None:
            results.append(_skip(step, broken, runtime))
            continue
        result = await run_step(step, runtime)
        results.append(result)
        if result.status != "done":
            broken = step
    return results


async def _overlapping(plan: Plan, runtime: Runtime) -> list[Result]:
    """Each step starts when all it waits for are done and none before it failed.

    A step that already ran although one before it failed had no effect; its result
    is given as skipped, as if the steps had run from top to bottom.
    """
    waits = waits_for(plan)
    position = {step.call.id: index for index, step in enumerate(plan.steps)}
    ended = {step.call.id: asyncio.Event() for step in plan.steps}
    found: dict[str, Result] = {}
    first_failed = len(plan.steps)

    async def one(step: Step) -> None:
        nonlocal first_failed
        for awaited in waits[step.call.id]:
            await ended[awaited].wait()
        if position[step.call.id] < first_failed:
            result = await run_step(step, runtime)
            found[step.call.id] = result
            if result.status != "done":
                first_failed = min(first_failed, position[step.call.id])
        ended[step.call.id].set()

    async with asyncio.TaskGroup() as group:
        for step in plan.steps:
            group.create_task(one(step))
    return [
        found[step.call.id]
        if position[step.call.id] <= first_failed and step.call.id in found
        else _skip(step, plan.steps[first_failed], runtime)
        for step in plan.steps
    ]


def _skip(step: Step, broken: Step, runtime: Runtime) -> Result:
    command = step.command
    error = sentences.skipped(step.call.target, broken.call.target)
    result = Result(
        call=step.call,
        status="skipped",
        plugin=command.plugin.name,
        command=command.spec.name,
        error=error,
    )
    finished(result, runtime)
    return result
