"""Ask once for approval of several calls of a plan.

The question shows each call that needs a yes and whose arguments are known by now, and
the yes is one for each of these exact calls, once. What is not known yet, and code, is
asked about by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import dropwhile
from typing import Any

from neuraxis.assets.store import ReferenceLost
from neuraxis.events import ApprovalAsked
from neuraxis.messages import Path
from neuraxis.planning.for_each import wrong_items
from neuraxis.planning.plan import Step, item_steps, resolver
from neuraxis.policy.approvals import value_digest
from neuraxis.policy.ask import (
    TooLong,
    ask_person,
    is_allowed,
    postpone,
    question_of,
)
from neuraxis.policy.gate import Gate, evaluate_policy
from neuraxis.references.evaluate import evaluate, fill
from neuraxis.references.render import ReferenceFailure
from neuraxis.specs import Json

SEVERAL = 2
"""Minimum calls that need approval to be asked about together."""


async def ask_together(step: Step, gate: Gate) -> None:
    """Ask once for several calls of the plan from this one on."""

    def due() -> list[ApprovalAsked]:
        found = (asked for _, asked in _foreseen(step, gate))
        return list(dropwhile(lambda asked: asked.id != step.call.id, found))

    calls = due()
    if len(calls) < SEVERAL:
        return
    reason = f"{len(calls)} calls of this plan need approval"
    asked = plan_question(
        step.call.id, calls, f"{reason}; the first: {calls[0].summary}", reason
    )
    no = await ask_person(asked, lambda: _digest_of(due()), gate)
    gate.approvals.answer_plan(asked.digest, calls, no)


def plan_question(
    call_id: str, calls: Sequence[ApprovalAsked], summary: str, reason: str
) -> ApprovalAsked:
    """Return the question about these calls of a plan."""
    return ApprovalAsked(
        id=call_id,
        call={"plugin": "", "command": "", "arguments": {}},
        reason=reason,
        digest=_digest_of(calls),
        plan=tuple(call for asked in calls for call in asked.calls),
        summary=summary,
        offers=_offers([asked.offers for asked in calls]),
    )


def _digest_of(calls: Sequence[ApprovalAsked]) -> str:
    return value_digest([asked.digest for asked in calls])


def _offers(each: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the offers that all calls share, and the widest of each."""
    found = [
        offer
        for offers in each
        for offer in offers
        if offer == offers[-1] or all(offer in others for others in each)
    ]
    return tuple(dict.fromkeys(found))


def ask_ahead(step: Step, gate: Gate) -> None:
    """Ask about the later calls of the plan, too, where questions wait."""
    for later, asked in _foreseen(step, gate):
        if later.call.id not in (step.call.id, step.part_of):
            postpone(asked, later, gate)


def _foreseen(step: Step, gate: Gate) -> Iterator[tuple[Step, ApprovalAsked]]:
    """Yield the known later calls that need a yes, with the question."""
    steps, approvals = gate.approvals.steps, gate.approvals
    ids = [each.call.id for each in steps]
    written = step.part_of or step.call.id
    for each in steps[ids.index(written) :] if written in ids else ():
        for one in _singly(each, gate):
            with suppress(ReferenceFailure, ReferenceLost, TooLong):
                arguments = _known_arguments(one, gate)
                decision, facts = evaluate_policy(one, arguments, gate)
                if decision.verdict == "ask" and not (
                    any(use == "run" for _, use in facts.marks.files)
                    or approvals.is_settled(one.call.id)
                    or is_allowed(facts, decision, gate)
                ):
                    yield each, question_of(facts, decision)


def _singly(step: Step, gate: Gate) -> list[Step]:
    """Return a step, or one for each item of its loop."""
    if step.loop is None:
        return [step]
    try:
        items = step.loop.items(gate.assets.resolve)
    except (ReferenceFailure, ReferenceLost):
        return []
    if wrong_items(items, step.loop.most):
        return []
    gate.origins.loops(step, step.loop)
    return item_steps(step, items)


def _known_arguments(step: Step, gate: Gate) -> Json:
    """Return the arguments with references resolved.

    Raises:
        ReferenceLost: one is not known yet.
        ReferenceFailure: one does not fit; the step will tell.
    """
    resolve = resolver(step, gate.assets)
    found: dict[Path, Any] = {}
    schema = step.command.parameters
    for binding in step.bindings:
        path, wants_text = binding.path, schema.wants_text(binding.path)
        found[path] = evaluate(binding.template, resolve, wants_text, path=path)
    found |= {path: gate.assets.resolve(ref) for path, ref in step.asset_refs}
    return fill(step.arguments, found)
