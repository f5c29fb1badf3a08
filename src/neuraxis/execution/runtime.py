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
    """The session's, for agents without their own."""
    session: str = ""
    """The id of the session."""
    key: str = ""
    """Random part of its calls' idempotency keys."""
    deps: object = None
    """What the program handed to this run, for commands."""
    settings: Settings
    budget: Budget = Budget()
    usage: Usage = field(default_factory=Usage)
    cancelled: RunCancellation = field(default_factory=RunCancellation)
    time_limit: float = 120.0
    """Seconds that a command without its own limit may take."""
    allowed_hosts: tuple[str, ...] = ()
    wrote: Callable[[str], None] = lambda path: None
    secrets: Secrets = field(default_factory=Secrets)
    shown: set[str] = set()
    """Calls whose pictures the model is to see."""
    strict: bool = False
    on_error: OnError = "fail_fast"
    depth: int = 0
    """Number of sessions around this one."""
    known: Mapping[str, Result] = {}
    """How calls of a plan that waited for a person ended before, by call id."""
    places: dict[str, Slots] = {}
    """Slots of the commands with a concurrency limit."""
    too_early: Callable[[], None] | None = None
    """Marks a speculative call's result as unusable; None in ordinary runs."""
