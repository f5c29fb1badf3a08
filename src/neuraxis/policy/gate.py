"""Gate: policy, provenance and approval for the steps of a run.

It replaces the run itself here: the caller that executes steps holds a `Gate` and
passes it on. `evaluate_policy` is what it says of one step and its files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.assets.store import AssetStore
from neuraxis.call_errors import can_be_undone, offer_calls
from neuraxis.events import ApprovalAsked, Event
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import MOST_REFUSALS, Approvals
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.later import Later
from neuraxis.policy.provenance.trace import trace
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import leaves, named_files
from neuraxis.policy.rules import Policy
from neuraxis.policy.three_rules import offer_values
from neuraxis.policy.unknown_calls import UnknownCalls
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.schema.annotations import CHANGES, Annotations
from neuraxis.specs import Json

Approve = Callable[[ApprovalAsked], Awaitable[bool | str]]
"""Asks a person; awaited for their yes, or for one of the question's `offers`."""


class NobodyToAsk(Exception):
    """What `approve` raises where nobody can be asked; says why."""


class Refusals(Struct, kw_only=True):
    """How often a person said no in one run."""

    count: int = 0

    @property
    def too_many(self) -> bool:
        """Whether nobody is asked any more in this run."""
        return self.count >= MOST_REFUSALS


class Gate(Struct, frozen=True, kw_only=True):
    """The part of a run that decides whether a step may run."""

    policy: Policy
    assets: AssetStore
    """Looked into for values that a call refers to."""
    emit: Callable[[Event], None]
    """Tells the journal what was asked and answered."""
    workspace: Path
    approve: Approve | None = None
    """None: nobody can be asked."""
    origins: Origins = field(default_factory=Origins)
    approvals: Approvals = field(default_factory=Approvals)
    refusals: Refusals = field(default_factory=Refusals)
    unknown: UnknownCalls = field(default_factory=UnknownCalls)
    settled: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Waits until what was emitted is on disk; None: there is no disk."""
    later: Later | None = None
    """Questions that wait for an answer; None: none may."""
    files: FileHistory | None = None
    """What is known of the workspace's files; None: no file is protected."""

    def may_ask(self, step: Step) -> bool:
        """Check whether approval may be asked: the step is sure to run."""
        plugin, spec = step.command.plugin.name, step.command.spec
        return self.policy.may_ask(plugin, spec)


def evaluate_policy(step: Step, arguments: Json, gate: Gate) -> tuple[Decision, Facts]:
    """What the policy says of a step with these arguments."""
    command, origins, marks = step.command, gate.origins, step.command.marks
    plugin, spec = command.plugin.name, command.spec
    own, risks = _own_files(arguments, marks, gate)
    facts = Facts(
        traced=trace(origins, step, arguments, gate.workspace),
        marks=marks,
        origins=origins,
        workspace=gate.workspace,
        files=gate.files,
        may_tell=origins.may_tell(step.call.id),
        own=own,
        risks=risks,
    )
    decision = gate.policy.decide(plugin, spec, arguments, facts)
    if decision.verdict != "deny" and not decision.frees_files:
        decision = _with_files(step, arguments, decision, facts)
        facts = replace(facts, replaces=digests_of(risks, gate.files))
    if decision.verdict == "ask":
        named = named_files(arguments, marks, "read")
        facts = replace(facts, reads=digests_of(named, gate.files))
    return decision, facts


def _own_files(
    arguments: Json, marks: Annotations, gate: Gate
) -> tuple[bool | None, dict[str, tuple[Use, str]]]:
    """Return the facts `own` and `risks` of a call."""
    files, risks, own = gate.files, dict[str, tuple[Use, str]](), False
    if not marks.changes_files:
        return None, risks
    for place, path in leaves(arguments) if files else ():
        use = marks.file_use(place)
        if files is None or use not in CHANGES or not isinstance(path, str):
            continue
        use = "move" if use == "remove" and marks.moves else use
        own = own or files.is_users(path)
        if why := files.risk(path, use, gate.origins.own_words):
            risks[path] = use, why
    return own, risks


def _with_files(
    step: Step, arguments: Json, decision: Decision, facts: Facts
) -> Decision:
    """Ask about the user's files that would be lost, too."""
    files, target, offers = facts.files, step.tool, decision.offers
    if files is None or not (facts.risks or (facts.own and decision.verdict == "ask")):
        return decision
    whys, way_out = [decision.reason] if decision.reason else [], decision.way_out
    for path, (use, why) in [*facts.risks.items()][:1]:
        whys.insert(0, why)
        way_out = way_out or files.way_out(path, use, target)
        if offers or decision.verdict == "allow":  # a rule of the user's has none
            every = offer_calls(target, own=True)
            offers = (*offer_values(target, arguments, facts), every)
    if step.command.is_builtin:
        whys.insert(1, can_be_undone(durable=files.store.is_durable))
    return Decision(
        verdict="ask",
        reason="; ".join(whys),
        way_out=way_out,
        offers=offers,
        own_files=True,
    )


def digests_of(paths: Iterable[str], files: FileHistory | None) -> dict[str, Json]:
    """Return the digests of files as they are now."""
    return {} if files is None else {path: files.digest(path) for path in paths}
