"""Ask once for approval of several calls, or of a guessed plan.

The question shows each call that needs approval and whose arguments are known, and the
answer approves each of these exact calls once. Calls with unknown arguments, and code,
are asked about separately.

A model that declares that it `guesses` (the offline planner) may read, write new files
and run scripts in the sandbox; anything else in its plan needs approval first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import dropwhile

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.store import ReferenceLost
from neuraxis.events import ApprovalAsked
from neuraxis.planning.for_each import items_of, list_problem
from neuraxis.planning.plan import Step, item_steps, resolver
from neuraxis.policy.approvals import value_digest
from neuraxis.policy.ask import (
    TooLong,
    ask_person,
    digest_of,
    is_allowed,
    own_no,
    postpone,
    question_of,
)
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.gate import Gate, evaluate_policy
from neuraxis.references.evaluate import fill_in
from neuraxis.references.render import ReferenceFailure

SEVERAL = 2
"""Minimum calls that need approval to be asked about together."""
_MADE_BY_RULES = "made of the request, by rules"
"""Origin of the arguments of a guessed plan."""
_GUESSED = (
    "the offline planner made this plan, and it does more than read files or create "
    "new ones"
)


async def ask_together(step: Step, gate: Gate) -> None:
    """Ask once for several calls of the plan from this one on."""

    def due() -> list[ApprovalAsked]:
        found = (asked for _, asked in _foreseen(step, gate))
        return list(dropwhile(lambda asked: asked.id != step.call.id, found))

    calls = due()
    if len(calls) < SEVERAL:
        return
    reason = f"{len(calls)} calls of this plan need approval"
    asked = _plan_question(
        step.call.id, calls, f"{reason}; the first: {calls[0].summary}", reason
    )
    no = await ask_person(asked, lambda: _digest_of(due()), gate)
    gate.approvals.answer_plan(asked.digest, calls, no)


def _plan_question(
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
        refuses=tuple(key for asked in calls for key in asked.refuses),
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
    """Record the questions about the later calls of a waiting plan, too."""
    for later, asked in _foreseen(step, gate):
        if later.call.id not in (step.call.id, step.part_of):
            postpone(asked, later, gate)


def _foreseen(step: Step, gate: Gate) -> Iterator[tuple[Step, ApprovalAsked]]:
    """Yield the known later calls that need approval, with their questions."""
    steps, written = gate.approvals.steps, step.part_of or step.call.id
    for each in dropwhile(lambda one: one.call.id != written, steps):
        for one in _singly(each, gate):
            with suppress(ReferenceFailure, ReferenceLost, TooLong):
                if asked := _foreseen_question(one, gate):
                    yield each, asked


def _foreseen_question(step: Step, gate: Gate) -> ApprovalAsked | None:
    """Return the question about a call, if it needs one with others.

    Raises:
        ReferenceLost: a value of it is not known yet.
        ReferenceFailure: a value does not fit; the step itself will fail.
        TooLong: it is too long to be shown whole.
    """
    resolve, schema = resolver(step, gate.assets), step.command.parameters
    arguments = fill_in(
        step.arguments, step.bindings, step.asset_refs, resolve, schema.wants_text
    )
    decision, facts = evaluate_policy(step, arguments, gate)
    if (
        decision.verdict != "ask"
        or facts.named("run")
        or gate.approvals.is_settled(step.call.id)
        or own_no(step.call.id, gate)
        or is_allowed(facts, decision, gate)
    ):
        return None
    return question_of(facts, decision)


def _singly(step: Step, gate: Gate) -> list[Step]:
    """Return a step, or one for each item of its loop."""
    if step.loop is None:
        return [step]
    try:
        items = items_of(step.loop, gate.assets.resolve)
    except (ReferenceFailure, ReferenceLost):
        return []
    if list_problem(items, step.loop.most):
        return []
    gate.origins.loops(step, step.loop)
    return item_steps(step, items)


# --- guessed plans ------------------------------------------------------------------


async def confirm_guessed(steps: Sequence[Step], gate: Gate) -> str:
    """Ask the user about a guessed plan; return the refusal, or empty.

    Raises:
        Waits: one of its calls waits for the answer.
    """
    due = [step for step in steps if _is_due(step, gate)]
    plans = [steps] if due else []
    if gate.later is not None:  # each answer is for one call
        gate.approvals.begin(steps)
        plans = [[step] for step in due]
    for plan in plans:
        if no := await _ask_about_guessed(plan, due, gate):
            tools = dict.fromkeys(step.tool for step in due)
            return call_errors.plan_way_out(no, list(tools))
    for step in due:
        if not (step.bindings or step.asset_refs):
            _, facts = evaluate_policy(step, step.arguments, gate)
            gate.approvals.grant(digest_of(facts))
    return ""


async def _ask_about_guessed(
    steps: Sequence[Step], due: Sequence[Step], gate: Gate
) -> str:
    def question() -> ApprovalAsked:
        calls: list[ApprovalAsked] = []
        for step in steps:
            reason = _GUESSED if step in due else ""
            facts = Facts(step=step, arguments=step.arguments, workspace=gate.workspace)
            if step in due and not (step.bindings or step.asset_refs):
                # with the files that it would change, and why that needs approval
                found, facts = evaluate_policy(step, step.arguments, gate)
                reason = "; ".join(filter(None, [found.reason, reason]))
            call = question_of(facts, Decision(verdict="ask", reason=reason))
            origins = dict.fromkeys(call.origins, _MADE_BY_RULES)
            calls.append(replace(call, origins=origins))
        if len(calls) == 1:
            return calls[0]
        told = f"{len(calls)} calls: {_GUESSED}"
        return _plan_question(due[0].call.id, calls, told, _GUESSED)

    try:
        return await ask_person(question(), lambda: question().digest, gate)
    except TooLong as error:
        return str(error)


def _is_due(step: Step, gate: Gate) -> bool:
    """Whether a step does more than read, create or run files."""
    effects = step.command.spec.effects
    if effects.readonly or gate.approvals.always(step.tool):
        return False
    uses = {use for _, use in step.command.marks.files}
    if effects.open_world or not uses & {"write", "run"} or uses & {"change", "remove"}:
        return True
    facts = Facts(step=step, arguments=step.arguments, workspace=gate.workspace)
    return any(os.path.isfile(gate.workspace / name) for name in facts.named("write"))
