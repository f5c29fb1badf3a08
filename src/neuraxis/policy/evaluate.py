"""Evaluate the policy for one step."""

from __future__ import annotations

from collections.abc import Iterable

from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import Place, value_digest
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.file_risk import file_risk
from neuraxis.policy.gate import Gate
from neuraxis.policy.provenance.labels import Traced
from neuraxis.policy.provenance.trace import trace
from neuraxis.policy.provenance.trusted import Known
from neuraxis.specs import Json


def evaluate_policy(step: Step, arguments: Json, gate: Gate) -> tuple[Decision, Facts]:
    """What the policy says of a step with these arguments."""
    command, origins = step.command, gate.origins
    plugin, spec = command.plugin.name, command.spec
    marks = origins.marks(f"{plugin}.{spec.name}", spec)
    known = Known(origins, plugin, gate.assets.said)
    facts = Facts(
        traced=trace(origins, step, arguments, marks, known),
        marks=marks,
        origins=origins,
        workspace=gate.workspace,
        wished=not origins.read or spec.effects.readonly or known.is_wished(arguments),
    )
    decision = gate.policy.decide(plugin, spec, arguments, facts)
    # a rule that allows the call, or a default that allows all, has a reason
    if decision.verdict == "allow" and not decision.reason:
        decision = file_risk(arguments, marks, gate) or decision
    return decision, facts


def places_of(values: Iterable[Traced]) -> frozenset[Place]:
    """Return the approved values: place, digest and origins of each."""
    return frozenset(
        (item.path, value_digest(item.value), item.label) for item in values
    )
