"""Gate: policy, provenance and approval for the steps of a run.

It replaces the run itself here: the caller that executes steps holds a `Gate` and
passes it on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from neuraxis.assets.store import AssetStore
from neuraxis.events import ApprovalAsked, Event
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import MOST_REFUSALS, Approvals
from neuraxis.policy.later import Later
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.rules import Policy
from neuraxis.policy.unknown_calls import UnknownCalls
from neuraxis.sandbox.files.history import FileHistory

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
