"""Authorise a step before it runs, or raise `Refused`.

The origins of its values are traced, the policy decides, and where it requires
approval the user is asked: about this call (`ask`), or about all calls of the plan
that need approval (`plan_approval`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from neuraxis import call_errors
from neuraxis.events import ApprovalAnswered, ApprovalAsked
from neuraxis.messages import CallError
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import call_digest
from neuraxis.policy.ask import (
    MOST_SHOWN,
    TooLong,
    ask_person,
    describe_origins,
    shown_whole,
)
from neuraxis.policy.decision import Decision, Facts, Refused
from neuraxis.policy.evaluate import (
    allow_files,
    evaluate_policy,
    places_of,
)
from neuraxis.policy.gate import Gate
from neuraxis.policy.later import Waits
from neuraxis.policy.plan_approval import ask_ahead, ask_together
from neuraxis.policy.provenance.labels import OWN, Label, Origin, Traced, is_outside
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import leaves
from neuraxis.policy.reconcile import settle_earlier
from neuraxis.policy.three_rules import host_of, sent_values, weighed
from neuraxis.specs import Json


async def authorize(step: Step, arguments: Json, gate: Gate) -> Label:
    """Authorise a step with these arguments; return its result's label.

    Raises:
        Refused: the policy or a person said no, or there is nobody to ask.
    """
    command, origins = step.command, gate.origins
    target = f"{command.plugin.name}.{command.spec.name}"
    if command.spec.effects.kind == "once" and gate.unknown.all:
        await settle_earlier(step, arguments, gate)
    marks = origins.marks(target, command.spec)
    if gate.policy.is_plain and not origins.read and not marks.files:
        # The default stops only what outside values had a part in, and the model was
        # shown none of them: a look at the references says it all.
        inputs = _inputs(step, origins)
        if not is_outside(inputs):
            traced = (Traced(path=(), value=None, label=inputs),) if inputs else ()
            return _answers(step, arguments, traced, gate)
    decision, facts = evaluate_policy(step, arguments, gate)
    if decision.verdict == "deny":
        raise Refused(call_errors.denied(step.call.target, decision.reason))
    if decision.verdict == "ask":
        await _ask(step, arguments, decision, facts, gate)
    allow_files(step.call.id, arguments, marks, gate)
    return _answers(step, arguments, facts.traced, gate)


def is_sent_again(step: Step, arguments: Json, gate: Gate) -> bool:
    """Whether a call sends again, with private things read."""
    origins = gate.origins
    if not (origins.read and origins.private):
        return False
    places = origins.marks(step.tool, step.command.spec).sends_out
    return any(
        str(value) in origins.sent for _, value in sent_values(arguments, places)
    )


def _answers(
    step: Step, arguments: Json, traced: Sequence[Traced], gate: Gate
) -> Label:
    """Note what is sent, and the answer's label.

    What an inner host answers is private.
    """
    origins, target = (
        gate.origins,
        f"{step.command.plugin.name}.{step.command.spec.name}",
    )
    label = origins.answers(target, step, traced)
    if places := origins.marks(target, step.command.spec).sends_out:
        for _, value in sent_values(arguments, places):
            origins.sent.add(str(value))
            if {host_of(value), host_of(value, port=False)} & {
                *gate.policy.allow_hosts
            }:
                inner = frozenset(
                    (Origin(source=target, open_world=True, private=True),)
                )
                origins.is_made_of(inner, step.call.id, step.part_of)
                label |= inner
    return label


def _inputs(step: Step, origins: Origins) -> Label:
    """The label of all that the references of a step lead to."""
    label = OWN
    for binding in step.bindings:
        for part in binding.template.parts:
            if not isinstance(part, str):
                label |= origins.label(part.ref, step)
    for _, ref in step.asset_refs:
        label |= origins.label(ref, step)
    return label


async def _ask(
    step: Step, arguments: Json, decision: Decision, facts: Facts, gate: Gate
) -> None:
    command, approvals = step.command, gate.approvals
    plugin, spec, target = command.plugin.name, command.spec, step.call.target
    own = f"{plugin}.{spec.name}"
    if approvals.always(own) or approvals.always(target):
        return
    if approvals.offered.intersection(decision.offers):
        return
    digest = call_digest(plugin, spec, arguments)
    if approvals.take(digest):
        return
    places = places_of(weighed(spec, facts))
    async with approvals.one_by_one:
        if gate.approve is not None:
            if not approvals.is_settled(step.call.id):
                await ask_together(step, gate)
            if said := approvals.refused(step.call.id):
                raise Refused(_denied(target, said, decision))
            if plan := approvals.take_step(step.call.id, decision.reason, places):
                by = "user, with the plan"
                gate.emit(
                    ApprovalAnswered(id=step.call.id, allowed=True, by=by, digest=plan)
                )
                # with the call's own start, which is waited for
                return
        try:
            code = _code(arguments, facts)
            shown = shown_whole(arguments)
            asked = ApprovalAsked(
                id=step.call.id,
                call={
                    "plugin": plugin,
                    "command": spec.name,
                    "arguments": shown,
                    **({"code": shown_whole(code)} if code else {}),
                },
                reason=decision.reason,
                digest=digest,
                origins=describe_origins(arguments, tuple(facts.traced)),
                summary=call_errors.summary(own, shown, decision.reason),
                offers=decision.offers,
            )
            no = await ask_person(
                asked,
                lambda: call_digest(plugin, spec, [arguments, _code(arguments, facts)]),
                gate,
            )
        except TooLong as error:
            raise Refused(_denied(target, str(error), decision)) from None
        except Waits:
            ask_ahead(step, gate)
            raise
    if no:
        raise Refused(_denied(target, no, decision))


def _code(arguments: Json, facts: Facts) -> dict[str, Json]:
    """Return the text of the scripts that a call would run."""
    found: dict[str, Json] = {}
    for path, value in leaves(arguments):
        place = facts.workspace / str(value)
        if facts.marks.file_use(path) == "run" and place.is_file():
            with suppress(OSError), place.open(encoding="utf-8", errors="replace") as f:
                found[str(value)] = f.read(MOST_SHOWN)
    return found


async def ask_about_files(step: Step, paths: Sequence[str], gate: Gate) -> bool:
    """Ask a person whether what a call did to these files shall be brought back."""
    command, approvals = step.command, gate.approvals
    plugin, spec = command.plugin.name, command.spec
    own = f"{plugin}.{spec.name}"
    if approvals.always(own) or approvals.always(step.call.target):
        return True
    if gate.approve is None:
        return False
    changed = {"changed_files": list[Json](paths)}
    reason = call_errors.held_back(paths)
    asked = ApprovalAsked(
        id=step.call.id,
        call={"plugin": plugin, "command": spec.name, "arguments": changed},
        reason=reason,
        digest=call_digest(plugin, spec, changed),
        summary=call_errors.summary(own, changed, reason),
    )
    async with approvals.one_by_one:
        return not await ask_person(asked, lambda: asked.digest, gate)


def _denied(target: str, why: str, decision: Decision) -> CallError:
    way_out = decision.way_out
    return call_errors.denied(target, f"{why}. {way_out}" if way_out else why)
