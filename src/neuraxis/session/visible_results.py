"""Select the results of a plan that the model sees (rule C25).

By default it sees all of them. With `final`, a result that a later step of the plan has
taken is shown by its address only: it is stored all the same, for references and for
commands that show a part of it, but the model neither reads nor pays for its content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from neuraxis.assets.describe import size_of
from neuraxis.messages import Result
from neuraxis.planning.plan import Plan

ShowResults = Literal["all", "final"]
LITTLE = 200
"""Bytes of a value that is always shown; an address saves nothing."""


def visible_results(
    plan: Plan, results: Sequence[Result], show: ShowResults
) -> Sequence[Result]:
    """Return the results as the model sees them, in the plan's order."""
    if show == "all" or len(results) == 1:
        return results
    taken = frozenset[str]().union(
        *(
            step.depends
            for step, result in zip(plan.steps, results, strict=True)
            if result.status == "done"
        )
    )
    return [
        replace(result, stored=True)
        if result.call.id in taken
        and not result.warnings
        and size_of(result.value, LITTLE) > LITTLE
        else result
        for result in results
    ]
