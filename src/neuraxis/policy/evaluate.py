"""A step with its arguments in; what the policy says of it, and on what that rests."""

from __future__ import annotations

from collections.abc import Iterable

from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import Place, value_digest
from neuraxis.policy.decision import Decision, Facts
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
    return gate.policy.decide(plugin, spec, arguments, facts), facts


def places_of(values: Iterable[Traced]) -> frozenset[Place]:
    """What a yes is for: each value by its place, its digest and what it is made of."""
    return frozenset(
        (item.path, value_digest(item.value), item.label) for item in values
    )
