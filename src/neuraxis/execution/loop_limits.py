"""Check loops against the limits of a run before their first item."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.execution.budget import Budget, Usage
from neuraxis.messages import CallError
from neuraxis.planning.plan import Plan, Step
from neuraxis.specs import Json


def loop_limit_error(
    step: Step, items: int, usage: Usage, budget: Budget
) -> CallError | None:
    """Return the error of a loop that exceeds the budget."""
    limits = (
        ("calls in one run", "steps", budget.steps, usage.steps),
        (
            f"calls of {step.tool}",
            "steps_per_tool",
            budget.steps_per_tool,
            usage.by_tool.get(step.tool, 0),
        ),
    )
    # the smallest limit: a loop within a larger one would be refused again
    limited, name, limit, used = min(limits, key=lambda item: item[2] - item[3])
    if used + items <= limit:
        return None
    remaining = max(0, limit - used)
    limit_text = f"{limited} (Budget.{name}: {limit})"
    return call_errors.loop_beyond_limit(step.call.target, items, remaining, limit_text)


def check_loop_limits(plan: Plan, usage: Usage, budget: Budget) -> Plan:
    """Return the plan, with problems for loops that exceed the budget.

    Only literal lists are checked: other lists are known when the loop runs.
    """
    loops = [step for step in plan.steps if step.loop is not None]
    if plan.problems or not loops:
        return plan
    expected = Usage(steps=usage.steps, by_tool=dict(usage.by_tool))
    errors_found: list[tuple[str, CallError]] = []
    for step in plan.steps:
        count = _written_items(step)
        if step.loop is not None:
            error = loop_limit_error(step, count, expected, budget)
            errors_found += [] if error is None else [(step.call.id, error)]
        expected.steps += count
        expected.by_tool[step.tool] = expected.by_tool.get(step.tool, 0) + count
    if not errors_found:
        return plan
    call_ids, errors = zip(*errors_found, strict=True)
    return replace(plan, steps=(), problems=errors, at_fault=call_ids)


def _written_items(step: Step) -> int:
    """Return the minimum number of calls that a step makes."""
    loop = step.loop
    if loop is None:
        return 1
    value: Json = loop.value
    if loop.bindings or loop.asset_refs or not isinstance(value, list):
        return 0
    return len(cast("list[Json]", value))
