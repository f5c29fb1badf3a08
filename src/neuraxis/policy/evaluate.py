"""Evaluate the policy for one step and its files."""

from __future__ import annotations

from collections.abc import Iterator

from neuraxis.call_errors import file_way_out
from neuraxis.planning.plan import Step
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.gate import Gate
from neuraxis.policy.provenance.trace import trace
from neuraxis.policy.provenance.words import leaves
from neuraxis.sandbox.files.history import Use
from neuraxis.schema.annotations import Annotations
from neuraxis.specs import Json


def evaluate_policy(step: Step, arguments: Json, gate: Gate) -> tuple[Decision, Facts]:
    """What the policy says of a step with these arguments."""
    command, origins = step.command, gate.origins
    plugin, spec = command.plugin.name, command.spec
    marks = command.marks
    facts = Facts(
        traced=trace(origins, step, arguments, marks, gate.workspace),
        marks=marks,
        origins=origins,
        workspace=gate.workspace,
    )
    decision = gate.policy.decide(plugin, spec, arguments, facts)
    # a rule that allows the call, or a default that allows all, has a reason
    if decision.verdict == "allow" and not decision.reason:
        decision = file_risk(arguments, marks, gate) or decision
    return decision, facts


def file_risk(arguments: Json, marks: Annotations, gate: Gate) -> Decision | None:
    """Return a question where a user's file would be lost."""
    if gate.files is None or not marks.files:
        return None
    for path, use in _changed(arguments, marks):
        if reason := gate.files.risk(path, use):
            return Decision(verdict="ask", reason=reason, way_out=file_way_out(use))
    return None


def allow_files(call_id: str, arguments: Json, marks: Annotations, gate: Gate) -> None:
    """Note an approval for a call's files as they are now."""
    if gate.files is None or not marks.files:
        return
    for path, use in _changed(arguments, marks):
        if gate.files.risk(path, use):
            gate.files.allow(call_id, path)


def _changed(arguments: Json, marks: Annotations) -> Iterator[tuple[str, Use]]:
    for place, value in leaves(arguments):
        use = marks.file_use(place)
        if isinstance(value, str) and use in ("write", "change", "remove"):
            yield value, use
