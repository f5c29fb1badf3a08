"""Evaluate the policy for one step and its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from neuraxis.call_errors import asks_path, offer_own_files
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
    command, origins, marks = step.command, gate.origins, step.command.marks
    plugin, spec = command.plugin.name, command.spec
    facts = Facts(
        traced=trace(origins, step, arguments, gate.workspace),
        marks=marks,
        origins=origins,
        workspace=gate.workspace,
        files=gate.files,
        may_tell=origins.may_tell(step.call.id),
    )
    decision = gate.policy.decide(plugin, spec, arguments, facts)
    if decision.verdict != "deny" and not decision.frees_files:
        decision, facts = _with_files(step, arguments, decision, facts, gate)
    if decision.verdict == "ask" and marks.files:
        named = [
            value
            for place, value in leaves(arguments)
            if marks.file_use(place) == "read" and isinstance(value, str)
        ]
        facts = replace(facts, reads=digests_of(named, gate))
    return decision, facts


def _with_files(
    step: Step, arguments: Json, decision: Decision, facts: Facts, gate: Gate
) -> tuple[Decision, Facts]:
    """Ask about the user's files that would be lost, too."""
    risks = list(at_risk(arguments, facts.marks, gate))
    if gate.files is None or not risks:
        return decision, facts
    paths, use, reason = [path for path, _, _ in risks], *risks[0][1:]
    facts = replace(facts, replaces=digests_of(paths, gate))
    offers = (offer_own_files(step.tool),)
    way_out = gate.files.way_out(paths[0], use, step.tool)
    if decision.verdict == "ask":
        if decision.reason != asks_path(paths[0]):  # that says the same
            reason = f"{reason}; {decision.reason}"
        offers = offers if decision.offers else ()  # a rule of the user's has none
        way_out = decision.way_out
    asked = Decision(
        verdict="ask", reason=reason, way_out=way_out, offers=offers, own_files=True
    )
    return asked, facts


def digests_of(paths: Iterable[str], gate: Gate) -> dict[str, Json]:
    """Return the digests of files as they are now."""
    files = gate.files
    return {} if files is None else {path: files.digest(path) for path in paths}


def at_risk(
    arguments: Json, marks: Annotations, gate: Gate
) -> Iterator[tuple[str, Use, str]]:
    """Yield the user's files that would be lost: path, use and why."""
    files = gate.files if marks.files else None
    for place, path in leaves(arguments) if files is not None else ():
        use = marks.file_use(place)
        if files is None or use not in ("write", "change", "remove"):
            continue
        if use == "remove" and marks.moves:
            use = "move"
        words = gate.origins.own_words
        if isinstance(path, str) and (reason := files.risk(path, use, words)):
            yield path, use, reason
