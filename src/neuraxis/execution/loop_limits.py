"""Check loops against the limits of a run before their first item."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.execution.budget import Budget, Usage
from neuraxis.messages import CallError
from neuraxis.planning.plan import Plan, Step
from neuraxis.specs import Json


def beyond_limit(
    step: Step, items: int, usage: Usage, budget: Budget
) -> CallError | None:
    """Return why a loop of so many items is refused, if so."""
    limits = (
        ("calls in one run", "steps", budget.steps, usage.steps),
        (
            f"calls of {step.tool}",
            "steps_per_tool",
            budget.steps_per_tool,
            usage.by_tool.get(step.tool, 0),
        ),
    )
    # the smallest: who keeps to a larger one is refused again
    what, name, most, used = min(limits, key=lambda limit: limit[2] - limit[3])
    if used + items <= most:
        return None
    left = max(0, most - used)
    told = f"{what} (Budget.{name}: {most})"
    return call_errors.loop_beyond_limit(step.call.target, items, left, told)


def within_limits(plan: Plan, usage: Usage, budget: Budget) -> Plan:
    """Return the plan; its problems are written lists beyond a limit.

    How many items a reference leads to is known when the loop runs.
    """
    if plan.problems or all(step.loop is None for step in plan.steps):
        return plan
    expected = Usage(steps=usage.steps, by_tool=dict(usage.by_tool))
    found: list[tuple[str, CallError]] = []
    for step in plan.steps:
        count = _written_items(step)
        if step.loop is not None:
            error = beyond_limit(step, count, expected, budget)
            found += [] if error is None else [(step.call.id, error)]
        expected.steps += count
        expected.by_tool[step.tool] = expected.by_tool.get(step.tool, 0) + count
    if not found:
        return plan
    own, errors = zip(*found, strict=True)
    return replace(plan, steps=(), problems=errors, at_fault=own)


def _written_items(step: Step) -> int:
    """Return how many calls a step makes at least."""
    loop = step.loop
    if loop is None:
        return 1
    value: Json = loop.value
    if loop.bindings or loop.asset_refs or not isinstance(value, list):
        return 0
    return len(cast("list[Json]", value))
