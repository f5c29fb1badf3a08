"""The results of a plan flow in; those that the model is told of flow out (rule C25).

By default that is every one as it is. With `ends`, what a later step of the plan has
taken is told by its address: it is kept all the same, for references and for commands
that show a part of it, but neither its words nor their price reach the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from neuraxis.assets.describe import size_of
from neuraxis.messages import Result
from neuraxis.planning.plan import Plan

Tell = Literal["all", "ends"]
LITTLE = 200
"""Bytes of a value that is told whatever takes it: its address is no shorter."""


def visible_results(
    plan: Plan, results: Sequence[Result], tell: Tell
) -> Sequence[Result]:
    """The results as the model is told them, in the order of the plan."""
    if tell == "all" or len(results) == 1:
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
