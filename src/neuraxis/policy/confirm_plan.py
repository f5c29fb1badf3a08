"""Approval of a guessed plan: asked for whole, before its first step.

A model that says of itself that it `guesses` (the offline planner) may read, write new
files and run scripts in the sandbox; a person sees first whatever else its plan does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from neuraxis import call_errors
from neuraxis.events import ApprovalAsked
from neuraxis.formatting import preview
from neuraxis.messages import Result
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import plan_digest
from neuraxis.policy.ask import (
    TooLong,
    ask_person,
    digest_of,
    shown_call,
)
from neuraxis.policy.evaluate import evaluate_policy
from neuraxis.policy.gate import Gate
from neuraxis.specs import Json

_ORIGIN = "made of the request, by rules"
_REASON = "rules made this plan, and it does more than read or write a new file"


async def confirm(steps: Sequence[Step], gate: Gate) -> str:
    """Ask a person about a guessed plan; return why not.

    Raises:
        Waits: a call of it waits for the answer.
    """
    due = [step for step in steps if _is_due(step, gate)]
    if gate.later is not None:  # each answer is for one call
        gate.approvals.begin(steps)
        for step in due:
            if no := await _ask([step], [step], gate):
                return no
    elif due and (no := await _ask(steps, due, gate)):
        return no
    for step in due:
        if not step.bindings and not step.asset_refs:
            _, facts = evaluate_policy(step, step.arguments, gate)
            gate.approvals.grant(digest_of(step, step.arguments, facts))
    return ""


async def _ask(steps: Sequence[Step], due: Sequence[Step], gate: Gate) -> str:
    calls = [(_plugin(step), step.command.spec, step.arguments) for step in steps]
    try:
        told = [_told(step, step in due) for step in steps]
    except TooLong as error:
        return str(error)
    one = told[0] if len(told) == 1 else {}
    summary = f"{len(told)} calls: {_REASON}"
    if one:
        summary = call_errors.summary(steps[0].tool, one["arguments"], _REASON)
    asked = ApprovalAsked(
        id=due[0].call.id,
        call=one,
        reason=_REASON,
        digest=plan_digest(calls),
        origins=one.get("origins", {}),
        plan=() if one else tuple(told),
        summary=summary,
    )
    return await ask_person(asked, lambda: plan_digest(calls), gate)


def refused(steps: Sequence[Step], why: str) -> list[Result]:
    """Return the results of a plan of which nothing ran."""
    return [
        Result(
            call=step.call,
            status="failed",
            plugin=_plugin(step),
            command=step.command.spec.name,
            error=call_errors.denied(step.call.target, why),
        )
        for step in steps
    ]


def describe(steps: Sequence[Step], why: str) -> str:
    """Tell a person of a plan that was not run."""
    calls = "; ".join(f"{step.call.target} {preview(step.arguments)}" for step in steps)
    return f"this plan was not run: {calls}. Reason: {why}"


def _is_due(step: Step, gate: Gate) -> bool:
    spec, plugin = step.command.spec, _plugin(step)
    if spec.effects.readonly or gate.approvals.always(f"{plugin}.{spec.name}"):
        return False
    files = step.command.marks.files
    uses = {use for _, use in files}
    if (
        spec.effects.open_world
        or not uses & {"write", "run"}
        or uses & {"change", "remove"}
    ):
        return True
    given = cast("dict[Any, Json]", step.arguments)
    names = [
        str(given.get(path[0], "")) for path, use in files if use == "write" and path
    ]
    return any((gate.workspace / name).is_file() for name in names)


def _plugin(step: Step) -> str:
    return step.command.plugin.name


def _told(step: Step, due: bool) -> dict[str, Json]:
    return {
        **shown_call(step, step.arguments),
        "id": step.call.id,
        "origins": dict.fromkeys(_names(step.arguments), _ORIGIN),
        **({"reason": _REASON} if due else {}),
    }


def _names(arguments: Json) -> list[str]:
    is_named = isinstance(arguments, dict)
    return list(cast("dict[str, Json]", arguments)) if is_named else ["the argument"]
