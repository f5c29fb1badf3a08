"""What a run of a session is made of, and what it is run with.

A session's own parts flow in; the `Runtime` of one run's plans flows out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from neuraxis.approvals import Approvals
from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.engines import Engine
from neuraxis.events import Event
from neuraxis.later import dataclass
from neuraxis.messages import NOTHING_USED, Message, Prompt, Result, Usage
from neuraxis.models import Model
from neuraxis.origins import Origins
from neuraxis.plan import OnError
from neuraxis.plugins.registry import Registry
from neuraxis.policy import Policy
from neuraxis.runtime import Approve, Budget, Runtime
from neuraxis.secrets import Secrets
from neuraxis.settings import Settings
from neuraxis.telling import Tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of; the session's own, unchanged from run to run."""

    model: Model
    dialect: Dialect
    registry: Registry
    assets: AssetStore
    engine: Engine
    policy: Policy
    budget: Budget
    settings: Settings
    workspace: Path
    next_id: Callable[[], str]
    prompt: Callable[[Sequence[Message]], Prompt]
    allow_hosts: tuple[str, ...] = ()
    approve: Approve | None = None
    origins: Origins = field(default_factory=Origins)
    approvals: Approvals = field(default_factory=Approvals)
    secrets: Secrets = field(default_factory=Secrets)
    strict: bool = False
    on_error: OnError = "fail_fast"
    raise_failures: bool = False
    early_start: bool = True
    """What only looks may start while the model is still writing (decision 7)."""
    tell: Tell = "all"
    depth: int = 0


@dataclass(slots=True)
class State:
    """What changes during a run."""

    results: list[Result] = field(default_factory=list[Result])
    texts: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    usage: Usage = NOTHING_USED
    misread: int = 0
    """Replies in a row that could not be read or planned."""
    started: float = field(default_factory=time.perf_counter)


def runtime_of(
    parts: Parts,
    state: State,
    emit: Callable[[Event], None],
    cancelled: threading.Event,
) -> Runtime:
    """What the plans of one run are run with."""
    return Runtime(
        assets=parts.assets,
        engine=parts.engine,
        policy=parts.policy,
        emit=emit,
        workspace=parts.workspace,
        settings=parts.settings,
        budget=parts.budget,
        cancelled=cancelled,
        allowed_hosts=parts.allow_hosts,
        wrote=state.files.append,
        approve=parts.approve,
        origins=parts.origins,
        approvals=parts.approvals,
        secrets=parts.secrets,
        strict=parts.strict,
        on_error=parts.on_error,
        depth=parts.depth,
    )
