"""Configuration and state of a session's runs, and their `Runtime`.

The `Runtime` of one run's plans is made from a session's own parts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.engines import Engine
from neuraxis.events import Event
from neuraxis.execution.budget import Budget
from neuraxis.execution.cancellation import RunCancellation
from neuraxis.execution.runtime import Runtime
from neuraxis.journal import Journal
from neuraxis.messages import NOTHING_USED, CallError, Message, Prompt, Result, Usage
from neuraxis.models import Model
from neuraxis.planning.plan import OnError, Plan
from neuraxis.plugins.registry import Registry
from neuraxis.policy.approvals import Approvals
from neuraxis.policy.gate import Approve, Gate
from neuraxis.policy.later import Later
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.rules import Policy
from neuraxis.policy.secrets import Secrets
from neuraxis.policy.unknown_calls import UnknownCalls
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.session.past import resume
from neuraxis.session.past.call_ids import CallIds
from neuraxis.session.past.recorded import last_results
from neuraxis.session.past.shortened import SummedUp
from neuraxis.session.past.waiting import GoingOn, waited_of
from neuraxis.session.typed.output import Output
from neuraxis.session.visible_results import ShowResults
from neuraxis.settings import Settings


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
    """The form of its answers; None: they are texts."""
    unknown: UnknownCalls = field(default_factory=UnknownCalls)
    settled: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Waits until what was emitted is on disk; None: there is no disk."""
    files: FileHistory | None = None
    summed: SummedUp = field(default_factory=SummedUp)
    prompt_tokens: int | None = None
    """Tokens that a prompt may have."""
    later: Later | None = None
    """Questions that may wait for an answer; None: none may."""
    approval_seconds: float = 0.0
    """How long a question waits for its answer."""
    waited: GoingOn | None = None
    """The plan that waited for answers, for the run that continues it."""


async def take_up(
    config: RunConfig,
    text: str | None,
    history: list[Message],
    pending: int,
    journal: Journal,
) -> RunConfig:
    """Return the configuration to go on with what was cut off.

    Where the plan does not wait, the history tells how its calls ended.

    Args:
        config: the session's.
        text: the request; None: that which was cut off.
        history: of the session; changed in place.
        pending: messages behind a reply that was not acted upon; -1: there is none.
        journal: of the session.
    """
    waited, is_open = None, bool(history and history[-1].calls)
    if is_open or (text is None and pending >= 0):
        events = await resume.read_events(journal, config.session)
        if text is None:
            waited = waited_of(events, config.assets)
        if is_open and waited is None:
            past = resume.history_of(events, config.dialect)
            history += past.untold
            for loop in past.loops:
                config.assets.keep(*loop)
    if text is None and pending >= 0:
        del history[len(history) - pending :]
    elif waited is None and (is_open or pending >= 0):
        config.origins.shown(tuple(config.origins.results))
    return _going_on(config, waited)


def _going_on(config: RunConfig, waited: GoingOn | None) -> RunConfig:
    """Return the configuration for a plan that waited.

    Where nobody is asked now, its further questions wait, too.
    """
    if waited is None:
        return config
    later = Later(
        seconds=config.approval_seconds,
        postpones=config.approve is None,
        asked=waited.standing.asked,
        answered=waited.standing.answered,
    )
    return replace(config, later=later, waited=waited)


def carried_over(
    text: str | None, config: RunConfig, history: Sequence[Message]
) -> list[Result]:
    """Return the results of the cut-off plan, for a resumed run."""
    if text is not None or config.waited is not None:
        return []
    return last_results(history, config.assets)


class RunState(Struct):
    """Mutable state of one run."""

    results: list[Result] = []
    texts: list[str] = []
    files: list[str] = []
    usage: Usage = NOTHING_USED
    output: object = None
    """What the last word was read as."""
    plans: list[Plan] = []
    problems: list[CallError] = []
    """Why replies could not be run, in order."""
    declined: str = ""
    """Why nobody said yes to a guessed plan."""
    misread: int = 0
    """Consecutive replies that could not be read or planned."""
    started: float = field(default_factory=time.perf_counter)

    def left(self, workspace: Path) -> tuple[str, ...]:
        """Return the files that the run wrote and that are there."""
        files = dict.fromkeys(self.files)
        return tuple(path for path in files if os.path.lexists(workspace / path))


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
        known={} if config.waited is None else config.waited.known,
    )
