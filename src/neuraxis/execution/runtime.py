"""Runtime of a plan: the services that its steps use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from neuraxis.assets.store import AssetStore
from neuraxis.engines import Engine
from neuraxis.engines.slots import Slots
from neuraxis.events import Event
from neuraxis.execution.budget import Budget, Usage
from neuraxis.execution.cancellation import RunCancellation
from neuraxis.messages import Result
from neuraxis.models import Model
from neuraxis.planning.plan import OnError
from neuraxis.policy.gate import Gate
from neuraxis.policy.secrets import Secrets
from neuraxis.settings import Settings


class Runtime(Struct, frozen=True, kw_only=True):
    """Services and settings that a plan runs with."""

    assets: AssetStore
    engine: Engine
    gate: Gate
    """Decides whether a step may run."""
    emit: Callable[[Event], None]
    workspace: Path
    model: Model | None = None
    """The session's model, for agents without their own."""
    session: str = ""
    """The id of the session."""
    key: str = ""
    """Random part of its calls' idempotency keys."""
    deps: object = None
    """The run's `deps`, for commands."""
    settings: Settings
    budget: Budget = Budget()
    usage: Usage = field(default_factory=Usage)
    cancelled: RunCancellation = field(default_factory=RunCancellation)
    time_limit: float = 120.0
    """Maximum seconds of a command without its own limit."""
    allowed_hosts: tuple[str, ...] = ()
    wrote: Callable[[str], None] = lambda path: None
    secrets: Secrets = field(default_factory=Secrets)
    shown: set[str] = set()
    """Ids of calls whose pictures the model sees."""
    strict: bool = False
    on_error: OnError = "fail_fast"
    depth: int = 0
    """Number of parent sessions."""
    earlier_results: Mapping[str, Result] = {}
    """Results, by call id, of a plan that waited for approvals."""
    slots: dict[str, Slots] = {}
    """Slots of the commands with a concurrency limit."""
    too_early: Callable[[], None] | None = None
    """Marks a speculative call's result as unusable; None in ordinary runs."""
