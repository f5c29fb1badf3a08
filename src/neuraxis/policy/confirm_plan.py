"""Approval of a guessed plan: asked for whole, before its first step.

A model that says of itself that it `guesses` (the offline planner) may read, write new
files and run scripts in the sandbox; a person sees first whatever else its plan does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from neuraxis.events import ApprovalAsked
from neuraxis.planning.plan import Step
from neuraxis.policy.ask import TooLong, ask_person, digest_of, question_of
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.gate import Gate, evaluate_policy
from neuraxis.policy.plan_approval import plan_question

_ORIGIN = "made of the request, by rules"
_REASON = (
    "the offline planner made this plan, and it does more than read files or create "
    "new ones"
)


async def confirm(steps: Sequence[Step], gate: Gate) -> str:
    """Ask a person about a guessed plan; return why not.

    Raises:
        Waits: a call of it waits for the answer.
    """
    due = [step for step in steps if _is_due(step, gate)]
    plans = [steps] if due else []
    if gate.later is not None:  # each answer is for one call
        gate.approvals.begin(steps)
        plans = [[step] for step in due]
    for plan in plans:
        if no := await _ask(plan, due, gate):
            return no
    for step in due:
        if not step.bindings and not step.asset_refs:
            _, facts = evaluate_policy(step, step.arguments, gate)
            gate.approvals.grant(digest_of(facts))
    return ""


async def _ask(steps: Sequence[Step], due: Sequence[Step], gate: Gate) -> str:
    def asked() -> ApprovalAsked:
        calls: list[ApprovalAsked] = []
        for step in steps:
            reason = _REASON if step in due else ""
            facts = Facts(step=step, arguments=step.arguments, workspace=gate.workspace)
            if step in due and not (step.bindings or step.asset_refs):
                # with the files that it would change, and why that needs a yes
                found, facts = evaluate_policy(step, step.arguments, gate)
                reason = "; ".join(filter(None, [found.reason, reason]))
            call = question_of(facts, Decision(verdict="ask", reason=reason))
            calls.append(replace(call, origins=dict.fromkeys(call.origins, _ORIGIN)))
        if len(calls) == 1:
            return calls[0]
        told = f"{len(calls)} calls: {_REASON}"
        return plan_question(due[0].call.id, calls, told, _REASON)

    try:
        return await ask_person(asked(), lambda: asked().digest, gate)
    except TooLong as error:
        return str(error)


def _is_due(step: Step, gate: Gate) -> bool:
    spec = step.command.spec
    if spec.effects.readonly or gate.approvals.always(step.tool):
        return False
    files = step.command.marks.files
    uses = {use for _, use in files}
    if (
        spec.effects.open_world
        or not uses & {"write", "run"}
        or uses & {"change", "remove"}
    ):
        return True
    given = cast("dict[Any, Any]", step.arguments)
    names = [
        str(given.get(path[0], "")) for path, use in files if use == "write" and path
    ]
    return any((gate.workspace / name).is_file() for name in names)
