"""Configuration and state of a session's runs, and their `Runtime`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.engines import Engine
from neuraxis.events import Event
from neuraxis.execution.budget import Budget
from neuraxis.execution.cancellation import RunCancellation
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import CallError, Message, Prompt, Result
from neuraxis.models import Model
from neuraxis.planning.plan import OnError, Plan
from neuraxis.plugins.registry import Registry
from neuraxis.policy.approvals import Approvals
from neuraxis.policy.deferred_questions import Later
from neuraxis.policy.gate import Approve, Gate
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.rules import Policy
from neuraxis.policy.secrets import Secrets
from neuraxis.policy.unknown_calls import UnknownCalls
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.session.past.call_ids import CallIds
from neuraxis.session.past.shortened import Summary
from neuraxis.settings import Settings

if TYPE_CHECKING:  # loaded by the sessions and runs that need them
    from neuraxis.session.past.waiting import ContinuedPlan
    from neuraxis.session.typed.output import Output
    from neuraxis.session.visible_results import ShowResults


class RunConfig(Struct, frozen=True, kw_only=True):
    """Configuration of a run; unchanged from run to run of a session."""

    model: Model
    dialect: Dialect
    registry: Registry
    assets: AssetStore
    engine: Engine
    policy: Policy
    budget: Budget
    settings: Settings
    workspace: Path
    ids: CallIds
    prompt: Callable[[Sequence[Message]], Prompt]
    approve: Approve | None = None
    origins: Origins = field(default_factory=Origins)
    approvals: Approvals = field(default_factory=Approvals)
    secrets: Secrets = field(default_factory=Secrets)
    strict: bool = False
    on_error: OnError = "fail_fast"
    raise_failures: bool = False
    early_start: bool = True
    """Whether read-only calls may start while the reply is streaming."""
    show_results: ShowResults = "all"
    depth: int = 0
    session: str = ""
    """Its id."""
    key: str = ""
    """Random part of its calls' idempotency keys."""
    deps: object = None
    output: Output | None = None
    """The type of its answers; None: text."""
    unknown: UnknownCalls = field(default_factory=UnknownCalls)
    settled: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Waits until all emitted events are on disk; None: the journal is in memory."""
    files: FileHistory | None = None
    summed: Summary = field(default_factory=Summary)
    prompt_tokens: int | None = None
    """Maximum tokens of a prompt; None: no limit."""
    later: Later | None = None
    """Questions that may wait for an answer; None: none may."""
    approval_seconds: float = 0.0
    """Seconds that a question waits for its answer."""
    waited: ContinuedPlan | None = None
    """The plan that waited for answers, for the run that continues it."""


def continued_config(config: RunConfig, waited: ContinuedPlan | None) -> RunConfig:
    """Return the configuration for a plan that waited for approvals.

    Without an `approve` function, its further questions wait, too.
    """
    if waited is None:
        return config
    later = Later(
        seconds=config.approval_seconds,
        postpones=config.approve is None,
        asked=waited.plan.asked,
        answered=waited.plan.answered,
    )
    return replace(config, later=later, waited=waited)


class RunState(Struct):
    """Mutable state of one run."""

    results: list[Result] = []
    texts: list[str] = []
    files: list[str] = []
    output: object = None
    """The final answer as an object of the session's `output` type."""
    plans: list[Plan] = []
    problems: list[CallError] = []
    """Why replies could not be run, in order."""
    declined: str = ""
    """Why a guessed plan was not approved."""
    misread: int = 0
    """Consecutive replies that could not be read or planned."""
    started: float = field(default_factory=time.perf_counter)

    def existing_files(self, workspace: Path) -> tuple[str, ...]:
        """Return the files that the run wrote and that still exist."""
        files = [*dict.fromkeys(self.files)]
        return tuple([path for path in files if os.path.lexists(workspace / path)])


def runtime_of(
    config: RunConfig,
    state: RunState,
    emit: Callable[[Event], None],
    cancelled: RunCancellation,
) -> Runtime:
    """Return the `Runtime` for the plans of one run."""
    gate = Gate(
        policy=config.policy,
        assets=config.assets,
        emit=emit,
        workspace=config.workspace,
        approve=config.approve,
        origins=config.origins,
        approvals=config.approvals,
        unknown=config.unknown,
        settled=config.settled,
        later=config.later,
        files=config.files,
    )
    return Runtime(
        assets=config.assets,
        engine=config.engine,
        gate=gate,
        emit=emit,
        workspace=config.workspace,
        model=config.model,
        session=config.session,
        key=config.key,
        deps=config.deps,
        settings=config.settings,
        budget=config.budget,
        cancelled=cancelled,
        allowed_hosts=tuple(config.policy.allow_hosts),
        wrote=state.files.append,
        secrets=config.secrets,
        strict=config.strict,
        on_error=config.on_error,
        depth=config.depth,
        earlier_results={} if config.waited is None else config.waited.results,
    )
