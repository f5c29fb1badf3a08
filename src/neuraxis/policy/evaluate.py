"""Evaluate the policy for one step and its files."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

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
        traced=trace(origins, step, arguments, gate.workspace),
        marks=marks,
        origins=origins,
        workspace=gate.workspace,
    )
    decision = gate.policy.decide(plugin, spec, arguments, facts)
    # a rule that allows the call, or a default that allows all, has a reason
    if decision.verdict == "ask" or not decision.reason:
        risks = list(at_risk(arguments, marks, gate))
        for _, use, reason in risks[:1]:
            if decision.verdict == "ask":
                decision = replace(decision, reason=f"{decision.reason}; {reason}")
            else:
                way_out = file_way_out(use)
                decision = Decision(verdict="ask", reason=reason, way_out=way_out)
        if risks and gate.files is not None:
            now = {path: gate.files.digest(path) for path, _, _ in risks}
            facts = replace(facts, replaces=now)
    return decision, facts


def at_risk(
    arguments: Json, marks: Annotations, gate: Gate
) -> Iterator[tuple[str, Use, str]]:
    """Yield the user's files that would be lost: path, use and why."""
    files = gate.files if marks.files else None
    for place, path in leaves(arguments) if files is not None else ():
        use = marks.file_use(place)
        if files is None or use not in ("write", "change", "remove"):
            continue
        if isinstance(path, str) and (reason := files.risk(path, use)):
            yield path, use, reason
