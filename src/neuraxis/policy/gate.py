"""Gate: policy, provenance and approval for the steps of a run.

It replaces the run itself here: the caller that executes steps holds a `Gate` and
passes it on. `evaluate_policy` is what it says of one step and its files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.assets.store import AssetStore
from neuraxis.call_errors import asks_path, offer_own_files
from neuraxis.events import ApprovalAsked, Event
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import MOST_REFUSALS, Approvals
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.later import Later
from neuraxis.policy.provenance.trace import trace
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.words import leaves, named_files
from neuraxis.policy.rules import Policy
from neuraxis.policy.unknown_calls import UnknownCalls
from neuraxis.sandbox.files.history import FileHistory, Use
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
        decision, facts = _with_files(step, arguments, decision, facts)
    if decision.verdict == "ask":
        named = named_files(arguments, marks, "read")
        facts = replace(facts, reads=digests_of(named, gate.files))
    return decision, facts


def _with_files(
    step: Step, arguments: Json, decision: Decision, facts: Facts
) -> tuple[Decision, Facts]:
    """Ask about the user's files that would be lost, too."""
    files, risks = facts.files, list(_at_risk(arguments, facts))
    if files is None or not risks:
        return decision, facts
    paths, use, reason = [path for path, _, _ in risks], *risks[0][1:]
    facts = replace(facts, replaces=digests_of(paths, files))
    offers = (offer_own_files(step.tool),)
    way_out = files.way_out(paths[0], use, step.tool)
    if decision.verdict == "ask":
        if decision.reason != asks_path(paths[0]):  # that says the same
            reason = f"{reason}; {decision.reason}"
        offers = offers if decision.offers else ()  # a rule of the user's has none
        way_out = decision.way_out
    asked = Decision(
        verdict="ask", reason=reason, way_out=way_out, offers=offers, own_files=True
    )
    return asked, facts


def _at_risk(arguments: Json, facts: Facts) -> Iterator[tuple[str, Use, str]]:
    """Yield the user's files that would be lost: path, use and why."""
    files, marks = facts.files, facts.marks
    if files is None or not marks.files:
        return
    for place, path in leaves(arguments):
        use = marks.file_use(place)
        if use not in ("write", "change", "remove") or not isinstance(path, str):
            continue
        use = "move" if use == "remove" and marks.moves else use
        if reason := files.risk(path, use, facts.origins.own_words):
            yield path, use, reason


def digests_of(paths: Iterable[str], files: FileHistory | None) -> dict[str, Json]:
    """Return the digests of files as they are now."""
    return {} if files is None else {path: files.digest(path) for path in paths}
