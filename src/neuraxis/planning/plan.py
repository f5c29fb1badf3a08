"""Calls flow in; a plan, or all that is wrong with them at once, flows out.

Names, arguments, references and their order are checked before the first effect
(decision 5). A plan is its calls in the order they were written, each with what it
depends on; `waits_for` says what may overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from neuraxis.messages import Call, CallError, Path
from neuraxis.planning.for_each import Item, Loop
from neuraxis.plugins.registry import Command
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.template import Binding
from neuraxis.specs import Json

OnError = Literal["fail_fast", "continue", "retry"]
"""What becomes of a plan whose step failed: the rest is skipped; only what depends on
the step is; or a step that may be repeated is tried again before the rest is skipped.
"""


class Step(Struct, frozen=True, kw_only=True):
    """A checked call: what it needs and what it stands on.

    `arguments` are as written, with lossless coercions made; references still stand
    in them at the paths of `bindings` and `asset_refs`. `depends` are call ids of
    this plan.
    """

    call: Call
    command: Command
    arguments: Json
    bindings: tuple[Binding, ...] = ()
    asset_refs: tuple[tuple[Path, AssetRef], ...] = ()
    depends: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    loop: Loop | None = None
    """The step is done for each item of a list."""
    item: Item | None = None
    """The step is one of those, made while the plan runs."""

    @property
    def tool(self) -> str:
        """`plugin.command`, the names as they were found."""
        return f"{self.command.plugin.name}.{self.command.spec.name}"

    @property
    def part_of(self) -> str:
        """The id of the call with `for_each` that the step is one item of, or ""."""
        return "" if self.item is None else self.item.part_of


class Plan(Struct, frozen=True, kw_only=True):
    """Steps in the order they were written. With a problem, nothing may run.

    `at_fault` gives the call id of each problem, in the same order ("": the plan).
    """

    steps: tuple[Step, ...] = ()
    problems: tuple[CallError, ...] = ()
    notes: tuple[str, ...] = ()
    at_fault: tuple[str, ...] = ()


def waits_for(
    plan: Plan, alone: Callable[[Step], bool] = lambda step: False
) -> Mapping[str, frozenset[str]]:
    """Which steps must have ended before each may start (decision 6).

    Steps that change nothing may overlap. One with an effect waits for all that stand
    before it and holds all that stand after it; so does one that `alone` names. Only
    the nearest are named: what those wait for has ended too.
    """
    waits: dict[str, frozenset[str]] = {}
    barrier: frozenset[str] = frozenset()
    since: list[str] = []
    for step in plan.steps:
        own = step.call.id
        if step.command.spec.effects.readonly and not alone(step):
            waits[own] = step.depends | barrier
            since.append(own)
        else:
            waits[own] = step.depends | barrier | frozenset(since)
            barrier, since = frozenset((own,)), []
    return waits
