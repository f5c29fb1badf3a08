"""Authorise a step before it runs, or raise `Refused`.

The origins of its values are traced, the policy decides, and where it requires
approval the user is asked: about this call (`ask`), or about all calls of the plan
that need approval (`plan_approval`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.events import ApprovalAnswered, ApprovalAsked
from neuraxis.planning.plan import Step
from neuraxis.policy.ask import (
    TooLong,
    ask_person,
    digest_of,
    is_allowed,
    key_of,
    own_no,
    question_of,
    shown_call,
)
from neuraxis.policy.decision import Decision, Facts, Refused
from neuraxis.policy.deferred_questions import Waits
from neuraxis.policy.files.file_names import is_document
from neuraxis.policy.gate import Gate, evaluate_policy
from neuraxis.policy.plan_approval import ask_ahead, ask_together
from neuraxis.policy.provenance.file_labels import label_of_file
from neuraxis.policy.provenance.labels import OWN, Label, Origin, describe
from neuraxis.policy.reconcile import settle_earlier
from neuraxis.policy.sending import is_inner, sent_values
from neuraxis.specs import Json


async def authorize(step: Step, arguments: Json, gate: Gate) -> Label:
    """Authorise a step with these arguments; return its result's label.

    Raises:
        Refused: the policy or the user refused, or there is nobody to ask.
    """
    if step.command.spec.effects.kind == "once" and gate.unknown.all:
        await settle_earlier(step, arguments, gate)
    decision, facts = evaluate_policy(step, arguments, gate)
    if decision.verdict == "deny":
        raise Refused(call_errors.denied(step.call.target, decision.reason))
    no = own_no(step.call.id, gate)
    if not no and decision.verdict == "ask":
        no = await _ask(decision, facts, gate)
    if no:
        gate.approvals.said_no.add(key_of(facts))
        why = call_errors.refused(no, decision.way_out)
        raise Refused(call_errors.denied(step.call.target, why))
    if decision.frees_files:
        gate.approvals.free.add(step.call.id)
    if gate.files is not None:
        for path in facts.risky:  # the approval is for the files as they are now
            gate.files.allow(step.call.id, path)
    return _answers(facts, gate)


def is_sent_again(step: Step, arguments: Json, gate: Gate) -> bool:
    """Whether private content was read and the call repeats an address."""
    origins = gate.origins
    if not (origins.read and origins.private):
        return False
    places = step.command.marks.sends_out
    sent = sent_values(arguments, places)
    return any(str(value) in origins.sent for _, value in sent if value is not None)


def _answers(facts: Facts, gate: Gate) -> Label:
    """Record what is sent; return the result's label.

    The answer of a private host is private, and from outside.
    """
    origins, step, marks = gate.origins, facts.step, facts.marks
    label = origins.answers(step, facts.traced)
    if marks.files:
        stays = facts.named("change", "move", "remove")
        kept = OWN.union(*(label_of_file(path, gate) for path in stays))
        moved = any(use == "remove" for _, use in marks.files)
        origins.keeps(step.call.id, kept, moved=moved)
    for _, value in sent_values(facts.arguments, marks.sends_out):
        if value is None:
            continue
        origins.sent.add(str(value))
        if is_inner(value, gate.policy.allow_hosts):
            inner = frozenset(
                (Origin(source=step.tool, open_world=True, private=True),)
            )
            origins.is_made_of(inner, step.call.id)
            label |= inner
    return label


async def _ask(decision: Decision, facts: Facts, gate: Gate) -> str:
    """Ask for approval unless there is one; return the refusal, or empty."""
    step, approvals = facts.step, gate.approvals
    call_id = step.call.id
    if is_allowed(facts, decision, gate):
        approvals.take(digest_of(facts))
        return ""
    try:
        asked = question_of(facts, decision)
        async with approvals.one_by_one:
            if gate.approve is not None and not approvals.is_settled(call_id):
                await ask_together(step, gate)
            if plan := approvals.take_step(asked):
                by = "user, with the plan"
                gate.emit(
                    ApprovalAnswered(id=call_id, allowed=True, by=by, digest=plan)
                )
                return ""  # the call's start, which is waited for, stores it too
            no = approvals.refused(call_id)
            no = no or await ask_person(asked, lambda: digest_of(facts), gate)
    except TooLong as error:
        return str(error)
    except Waits:
        ask_ahead(step, gate)
        raise
    if not no:
        approvals.said_no.discard(key_of(facts))
    return no


async def ask_about_files(
    step: Step, held: Mapping[str, Sequence[str]], lost: Sequence[str], gate: Gate
) -> str:
    """Ask whether to keep a script's changes; return the refusal, or empty.

    `lost`: the lines that files would lose.
    """
    files: Json = {done: [*paths] for done, paths in held.items()}
    durable = gate.files is not None and gate.files.store.is_durable
    words = gate.origins.own_words
    code = [path for path in held.get("made", ()) if not is_document(path, words)]
    reason = call_errors.held_back(held, describe(gate.origins.read), code)
    reason += f"; {call_errors.can_be_undone(durable=durable)}"
    is_own = not held.keys() <= {"made"}
    offers = [call_errors.offer_every_change(step.tool, own=is_own)]
    if list(held) == ["changed"]:
        offers.insert(0, call_errors.offer_changes(step.tool, held["changed"]))
    decision = Decision(
        verdict="ask", reason=reason, offers=tuple(filter(None, offers))
    )
    facts = Facts(step=step, arguments=files, workspace=gate.workspace)
    each: list[Json] = [{done: path} for done, of in held.items() for path in of]
    refuses = tuple(key_of(replace(facts, arguments=one)) for one in each)
    if is_allowed(facts, decision, gate, refuses):
        return ""
    if gate.approve is None:
        return call_errors.NOBODY
    call = shown_call(step, step.arguments) | {"files": files}
    asked = ApprovalAsked(
        id=step.call.id,
        call=call | ({"lost": [*lost]} if lost else {}),
        reason=reason,
        digest=digest_of(facts),
        summary=call_errors.summary(step.tool, step.arguments, reason),
        offers=decision.offers,
        refuses=refuses,
    )
    async with gate.approvals.one_by_one:
        # a file that changes meanwhile does not make the approval void: `CallFiles`
        # leaves that file as it is
        return await ask_person(asked, lambda: asked.digest, gate)
