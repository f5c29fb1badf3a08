"""Schedule the steps of one plan; return the results in its order.

The outcome is as if the steps ran sequentially (decision 4); `Runtime.on_error` says
what a failure does to the other steps.
"""

from __future__ import annotations

from itertools import pairwise

from neuraxis.execution.concurrent import has_waited, run_concurrently, run_in_order
from neuraxis.execution.for_each import run_one
from neuraxis.execution.retry import ATTEMPTS
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import Result
from neuraxis.planning.plan import Plan, waits_for

MAX_CONCURRENT = 64
"""Maximum steps of one plan that run at the same time."""


async def run_plan(plan: Plan, runtime: Runtime) -> list[Result]:
    """Run every step; a failed one skips what `Runtime.on_error` says (C19).

    Raises:
        StorageError: the journal could not be written; all running steps are cancelled.
        Waits: a step needs an approval first; all running steps are cancelled.
    """
    steps = plan.steps
    gate = runtime.gate
    gate.origins.planned(steps)
    runtime.usage.planned = {step.call.id for step in steps}
    if gate.approve is not None or gate.later is not None:
        # one approval request may cover several steps
        gate.approvals.begin(steps)
    if len(steps) == 1:
        return [await run_one(steps[0], runtime)]
    if may_reach_a_limit(plan, runtime) or has_waited(steps, runtime):
        return await run_in_order(steps, runtime, run_one)
    waits = waits_for(plan, runtime.gate.policy.may_ask)
    if all(before.call.id in waits[step.call.id] for before, step in pairwise(steps)):
        return await run_in_order(steps, runtime, run_one)  # nothing can overlap
    return await run_concurrently(steps, waits, runtime, run_one, MAX_CONCURRENT)


def may_reach_a_limit(plan: Plan, runtime: Runtime) -> bool:
    """Return whether a budget limit may be reached within the plan.

    If so, steps run sequentially: the last call allowed must not be a matter of timing.
    """
    tries = ATTEMPTS if runtime.on_error == "retry" else 1
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
