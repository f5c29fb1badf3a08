"""Ask once for approval of all calls of a plan.

From this step on, each call of the plan is evaluated with what is known by now:
written values and earlier results appear as they are, later ones as references. The
user sees these calls in order and answers once. The approval covers each listed call,
once, and only what was shown of it: where an untrusted value arrives that could not
be shown, that call needs its own approval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.assets.store import ReferenceLost
from neuraxis.events import ApprovalAsked
from neuraxis.messages import Path
from neuraxis.planning.for_each import Item, Loop
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import Seen, call_digest, plan_digest
from neuraxis.policy.ask import (
    TooLong,
    ask_person,
    describe_origins,
    shown_call,
    shown_whole,
)
from neuraxis.policy.evaluate import evaluate_policy, places_of
from neuraxis.policy.gate import Gate
from neuraxis.policy.three_rules import weighed
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.evaluate import evaluate, fill
from neuraxis.references.render import ReferenceFailure
from neuraxis.specs import CommandSpec, Json

SEVERAL = 2
"""So many calls that need a yes are asked about together."""
_UNKNOWN = "not known yet: another call of this plan will answer it"


class _Foreseen(Struct, frozen=True, kw_only=True):
    """One step as it looks before it has run."""

    step: Step
    arguments: Json
    reason: str
    """Why it needs a yes; empty: it needs none."""
    known: bool
    """Whether all that it needs the yes for can be shown."""
    seen: Seen
    offers: tuple[str, ...]
    told: dict[str, str]
    items: Sequence[Json] | None
    """What it is done for each of, if it is and that is known."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the calls that it will be."""
        own = self.step.call.id
        if self.items is None:
            return (own,)
        return tuple(f"{own}.{index}" for index in range(len(self.items)))

    @property
    def due(self) -> bool:
        return bool(self.reason) and self.known


async def ask_together(step: Step, gate: Gate) -> None:
    """Ask once for the plan's calls that need approval, if several."""
    steps = gate.approvals.steps
    ids = [each.call.id for each in steps]
    written = step.part_of or step.call.id
    if written not in ids:
        return
    steps = steps[ids.index(written) :]
    foreseen = _foresee(steps, gate)
    due = [item for item in foreseen if item.due]
    calls = [call_id for item in due for call_id in item.ids]
    if len(calls) < SEVERAL or step.call.id not in due[0].ids:
        return
    digest = plan_digest(
        [_call(item.step, item.arguments, item.items) for item in foreseen]
    )
    reason = f"{len(calls)} calls of this plan need a yes"
    try:
        plan = tuple(_told(item) for item in foreseen)
    except TooLong:
        return  # each is asked about by itself
    asked = ApprovalAsked(
        id=step.call.id,
        call={"plugin": "", "command": "", "arguments": {}},
        reason=reason,
        digest=digest,
        plan=plan,
        summary=f"{reason}: {due[0].reason}",
        offers=tuple(dict.fromkeys(offer for item in due for offer in item.offers)),
    )

    def now() -> str:
        return plan_digest(
            [_call(each, each.arguments, each.call.for_each) for each in steps]
        )

    no = await ask_person(asked, now, gate)
    if no:
        gate.approvals.refuse(calls, no)
    else:
        seen = {call_id: item.seen for item in due for call_id in item.ids}
        gate.approvals.grant_plan(digest, now, seen)


def ask_ahead(step: Step, gate: Gate) -> None:
    """Ask about the later calls of the plan, too."""
    steps, later = gate.approvals.steps, gate.later
    ids = [each.call.id for each in steps]
    here = ids.index(step.part_of or step.call.id)
    for item in _foresee(steps[here:], gate)[1:]:
        shown = _UNKNOWN not in item.told.values()
        if later is not None and item.due and shown:
            told = _told(item)
            asked = ApprovalAsked(
                id=told.pop("id"),
                reason=told.pop("reason"),
                origins=told.pop("origins"),
                call=told,
            )
            question = later.question(asked, item.step)
            if not later.is_open(question):
                gate.emit(question)


def _call(step: Step, arguments: Json, items: Json) -> tuple[str, CommandSpec, Json]:
    given = arguments if step.loop is None else [arguments, items]
    return step.command.plugin.name, step.command.spec, given


def _told(item: _Foreseen) -> dict[str, Json]:
    step = item.step
    told = shown_call(step, item.arguments)
    told |= {"id": step.call.id, "origins": item.told}
    if step.loop is not None:
        written: Json = step.call.for_each
        told["for_each"] = shown_whole(
            written if item.items is None else list(item.items)
        )
    if item.reason:
        told["reason" if item.known else "later"] = item.reason
    return told


def _foresee(steps: Sequence[Step], gate: Gate) -> list[_Foreseen]:
    ahead = replace(gate, origins=gate.origins.aside())
    return [_look(step, ahead) for step in steps]


def _look(step: Step, gate: Gate) -> _Foreseen:
    """Judge one step, and note what its answer will be made of."""
    origins, approvals = gate.origins, gate.approvals
    plugin, spec = step.command.plugin.name, step.command.spec
    target, own = f"{plugin}.{spec.name}", step.call.id
    items: Sequence[Json] | None = None
    each = step
    if step.loop is not None:
        origins.loops(step, step.loop)
        items = _items(step.loop, gate)
        each = replace(step, item=Item(index=0, value=None, part_of=own))
    arguments, unknown = _known_arguments(step, gate)
    decision, facts = evaluate_policy(each, arguments, gate)
    values = weighed(spec, facts)
    origins.answers(target, each, facts.traced)
    found = _Foreseen(
        step=step,
        arguments=arguments,
        reason=decision.reason if decision.verdict == "ask" else "",
        known=(step.loop is None or items is not None)
        and not any(
            # nobody sees in a plan what a file will hold
            item.path in unknown or facts.marks.file_use(item.path) == "run"
            for item in values
        ),
        seen=Seen(reason=decision.reason, places=places_of(values)),
        offers=decision.offers,
        told=describe_origins(arguments, tuple(facts.traced))
        | {str(path[0]): _UNKNOWN for path in unknown if path},
        items=items,
    )
    if (
        approvals.always(target)
        or approvals.always(step.call.target)
        or all(approvals.is_settled(call_id) for call_id in found.ids)
        or approvals.offered.intersection(decision.offers)
        or approvals.holds(call_digest(plugin, spec, arguments))
    ):
        return replace(found, reason="")
    return found


def _items(loop: Loop, gate: Gate) -> Sequence[Json] | None:
    """What a loop goes over, if that is known by now."""
    refs = [ref for binding in loop.bindings for ref in binding.template.refs]
    refs += [ref for _, ref in loop.asset_refs]
    if not all(gate.assets.known(ref.asset_id) for ref in refs):
        return None
    try:
        found = loop.items(gate.assets.resolve)
    except (ReferenceFailure, ReferenceLost):
        return None
    items = cast("list[Json]", found) if isinstance(found, list) else []
    # what is no list, or is too long, the step will tell
    return items if 0 < len(items) <= loop.most else None


def _known_arguments(step: Step, gate: Gate) -> tuple[Json, frozenset[Path]]:
    """Return the arguments with known results, and the open places."""
    found: dict[Path, Any] = {}
    unknown: set[Path] = set()
    schema = step.command.parameters

    def is_open(refs: Sequence[AssetRef]) -> bool:
        return not all(gate.assets.known(ref.asset_id) for ref in refs)

    for binding in step.bindings:
        path, template = binding.path, binding.template
        if is_open(template.refs):
            unknown.add(path)
            continue
        try:
            wants_text = schema.wants_text(path)
            found[path] = evaluate(template, gate.assets.resolve, wants_text, path=path)
        except (ReferenceFailure, ReferenceLost):
            unknown.add(path)  # the step will tell it
    for path, ref in step.asset_refs:
        try:
            if not is_open([ref]):
                found[path] = gate.assets.resolve(ref)
                continue
        except ReferenceLost:
            pass
        unknown.add(path)
    return fill(step.arguments, found), frozenset(unknown)
