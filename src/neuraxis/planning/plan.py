"""Plans: checked calls with their dependencies, or all their problems at once.

Names, arguments, references and their order are checked before the first effect
(decision 4). A plan has its calls in the order in which they were written, each with
its dependencies; `waits_for` returns which steps may run concurrently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.assets.store import AssetStore
from neuraxis.messages import Call, CallError, Path
from neuraxis.plugins.registry import Command
from neuraxis.references.asset_ref import AssetRef
from neuraxis.specs import Json

if TYPE_CHECKING:  # loaded with the first plan
    from neuraxis.references.template import Binding

OnError = Literal["fail_fast", "continue", "retry"]
"""Reaction to a failed step.

`fail_fast` skips the remaining steps, `continue` only those that depend on it; `retry`
first repeats a repeatable step.
"""
ITEM = "item"
"""Root that stands for one item of `for_each`, and its `Expression.step`."""


class Item(Struct, frozen=True, kw_only=True):
    """One item of a loop, and its index in the list."""

    index: int
    value: Any
    part_of: str
    """Id of the step's call."""


class Loop(Struct, frozen=True, kw_only=True):
    """Loop of a step: `value`, with references at the other fields' paths."""

    value: Json
    most: int
    bindings: tuple[Binding, ...] = ()
    asset_refs: tuple[tuple[Path, AssetRef], ...] = ()


class Step(Struct, frozen=True, kw_only=True):
    """Checked call with its references and dependencies.

    `arguments` are as written, after lossless coercions; they still contain the
    references, at the paths of `bindings` and `asset_refs`. `depends` has call ids of
    this plan.
    """

    call: Call
    command: Command
    arguments: Json
    bindings: tuple[Binding, ...] = ()
    asset_refs: tuple[tuple[Path, AssetRef], ...] = ()
    depends: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Warnings that the model sees with the step's result."""
    loop: Loop | None = None
    """Loop of a step with `for_each`."""
    item: Item | None = None
    """Item of the loop, for a step made while the plan runs."""

    @property
    def tool(self) -> str:
        """Return `plugin.command`, as registered."""
        return f"{self.command.plugin.name}.{self.command.spec.name}"

    @property
    def part_of(self) -> str:
        """Return the id of the `for_each` call of this item, or ""."""
        return "" if self.item is None else self.item.part_of


def refs_of(one: Step | Loop) -> list[AssetRef]:
    """Return the references of a call, or of a loop's list."""
    refs = [ref for binding in one.bindings for ref in binding.template.refs]
    return refs + [ref for _, ref in one.asset_refs]


def belongs_to(call_id: str, ids: set[str]) -> bool:
    """Check whether a call, or its loop, is one of these."""
    return call_id in ids or call_id.rpartition(".")[0] in ids


def item_steps(step: Step, items: Sequence[Any]) -> list[Step]:
    """Return one step for each item of a step's loop."""
    return [
        replace(
            step,
            call=replace(step.call, id=f"{step.call.id}.{index}", name=None),
            depends=frozenset(),
            loop=None,
            item=Item(index=index, value=value, part_of=step.call.id),
        )
        for index, value in enumerate(items)
    ]


class Plan(Struct, frozen=True, kw_only=True):
    """Checked calls; nothing runs if there is a problem."""

    steps: tuple[Step, ...] = ()
    """In the order of the calls; each has `call`, `tool`, `arguments`, `depends`."""
    problems: tuple[CallError, ...] = ()
    """All errors in the calls."""
    notes: tuple[str, ...] = ()
    """Small mistakes that were corrected."""
    at_fault: tuple[str, ...] = ()
    """The call id of each problem, in the same order; empty: the whole plan."""


def waits_for(
    plan: Plan, blocks: Callable[[Step], bool] = lambda step: False
) -> Mapping[str, frozenset[str]]:
    """Return which steps must end before each may start (decision 4).

    Read-only steps may overlap. A step with an effect waits for all steps before it,
    and all steps after it wait for it; so does a step for which `blocks` is true. Only
    direct dependencies are listed.
    """
    waits: dict[str, frozenset[str]] = {}
    barrier: frozenset[str] = frozenset()
    since_barrier: list[str] = []
    for step in plan.steps:
        call_id = step.call.id
        if step.command.spec.effects.readonly and not blocks(step):
            waits[call_id] = step.depends | barrier
            since_barrier.append(call_id)
        else:
            waits[call_id] = step.depends | barrier | frozenset(since_barrier)
            barrier = frozenset((call_id,))
            since_barrier = []
    return waits


def resolver(step: Step, assets: AssetStore) -> Callable[[AssetRef], Any]:
    """Return a function that resolves the references of a step."""

    def resolve(ref: AssetRef) -> Any:
        if step.item is not None and ref.asset_id == ITEM:
            return step.item.value
        return assets.resolve(ref)

    return resolve
