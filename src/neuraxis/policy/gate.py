"""Gate: policy, provenance and approval for the steps of a run.

It is the part of a run that this package needs. `evaluate_policy` decides about one
step and its files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.assets.store import AssetStore
from neuraxis.call_errors import can_be_undone
from neuraxis.events import ApprovalAsked, Event
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import Approvals
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.deferred_questions import Later
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.rules import Policy
from neuraxis.policy.three_rules import offers_of
from neuraxis.policy.trace import trace
from neuraxis.policy.unknown_calls import UnknownCalls
from neuraxis.sandbox.files.history import FileHistory, Use
from neuraxis.specs import Json

Approve = Callable[[ApprovalAsked], Awaitable[bool | str]]
"""Asks the user; returns whether they approve, or one of the question's `offers`."""


class NobodyToAsk(Exception):
    """Raised by `approve` if nobody can be asked; its text says why."""


class Gate(Struct, frozen=True, kw_only=True):
    """The part of a run that decides whether a step may run."""

    policy: Policy
    assets: AssetStore
    """Resolves the references of a call."""
    emit: Callable[[Event], None]
    """Reports questions and answers to the journal."""
    workspace: Path
    origins: Origins = field(default_factory=Origins)
    files: FileHistory | None = None
    """The history of the workspace's files; None: no file is protected."""
    approve: Approve | None = None
    """None: nobody can be asked."""
    approvals: Approvals = field(default_factory=Approvals)
    refused: list[str] = []
    """Ids of the questions that the user refused in this run."""
    unknown: UnknownCalls = field(default_factory=UnknownCalls)
    settled: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Waits until the emitted events are on disk; None: nothing is stored."""
    later: Later | None = None
    """Deferred questions; None: no question may wait."""


def evaluate_policy(step: Step, arguments: Json, gate: Gate) -> tuple[Decision, Facts]:
    """Return the policy's decision on a step with these arguments."""
    facts = Facts(
        step=step,
        arguments=arguments,
        origins=gate.origins,
        workspace=gate.workspace,
        files=gate.files,
    )
    facts = replace(facts, traced=trace(facts), own=[*_own_files(facts)])
    plugin, spec = step.command.plugin.name, step.command.spec
    decision = gate.policy.decide(plugin, spec, arguments, facts)
    if facts.own and decision.verdict != "deny" and not decision.frees_files:
        decision = _with_files(decision, facts)
    return decision, facts


def _own_files(facts: Facts) -> Iterator[tuple[str, Use, str]]:
    """Yield the user's files that a call would change, as in `Facts.own`."""
    files = facts.files
    if files is None:
        return
    for _, path, use in facts.uses:
        if use in ("write", "change", "move", "remove") and files.is_users(path):
            yield path, use, files.risk(path, use, facts.origins.own_words)


def _with_files(decision: Decision, facts: Facts) -> Decision:
    """Ask about the user's files that would be lost, too."""
    files, step, offers = facts.files, facts.step, decision.offers
    risky = [one for one in facts.own if one[2]]
    if files is None or not (risky or (facts.own and decision.verdict == "ask")):
        return decision
    whys, way_out = [decision.reason], decision.way_out
    if risky:
        path, use, why = risky[0]
        whys.insert(0, why)
        way_out = way_out or files.way_out(path, use, step.tool)
        if offers or decision.verdict == "allow":  # the user's own rules make none
            offers = offers_of(facts)
    if step.command.is_builtin:
        whys.insert(1, can_be_undone(durable=files.store.is_durable))
    reason = "; ".join(filter(None, whys))
    return Decision(verdict="ask", reason=reason, way_out=way_out, offers=offers)
