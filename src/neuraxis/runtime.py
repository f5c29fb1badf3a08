"""What a plan is run with: the rooms a step needs, and what it may use of them."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from dataclasses import field
from pathlib import Path

from neuraxis.approvals import Approvals
from neuraxis.assets.store import AssetStore
from neuraxis.engines import Engine
from neuraxis.engines.holding import Places
from neuraxis.events import ApprovalAsked, Event
from neuraxis.later import dataclass
from neuraxis.messages import NOTHING_USED, Result
from neuraxis.messages import Usage as Tokens
from neuraxis.origins import Origins, is_of
from neuraxis.plan import OnError
from neuraxis.policy import Policy
from neuraxis.record import record
from neuraxis.secrets import Secrets
from neuraxis.settings import Settings

Approve = Callable[[ApprovalAsked], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one run of a session."""

    model_calls: int = 20
    """Replies that the model is asked for; then the run ends with `budget`."""
    steps: int = 100
    """Calls that are run; further ones are refused, and the model is told."""
    steps_per_tool: int = 50
    """The same, of one command."""
    seconds: float = 600.0
    """By the clock; then what runs is stopped, and the run ends with `budget`."""
    repeats: int = 2
    """How often the same call may run while nothing with an effect came between.

    Equal items of one `for_each` are not the same call: each is asked for.
    """


@dataclass(slots=True, kw_only=True)
class Usage:
    """What a run has used of its budget; the only thing here that changes."""

    steps: int = 0
    by_tool: dict[str, int] = field(default_factory=dict[str, int])
    refusals: int = 0
    """How often a person said no."""
    seen: dict[str, list[Result]] = field(default_factory=dict[str, list[Result]])
    """What each call gave, in the order of their ends, since the last effect."""
    counted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Each step that is counted above: its call id and its tool."""
    tokens: Tokens = NOTHING_USED
    """Of the models of sessions inside of commands."""
    ended: dict[str, Result] = field(default_factory=dict[str, Result])
    """What the steps of a plan gave so far, for when it is cut off."""

    def take_back(self, gone: set[str]) -> None:
        """These calls, or these of all items of a step, do not count after all."""
        for call_id, tool in self.counted:
            if is_of(call_id, gone):
                self.steps -= 1
                self.by_tool[tool] -= 1
        self.counted = [one for one in self.counted if not is_of(one[0], gone)]
        kept = {
            key: [one for one in results if not is_of(one.call.id, gone)]
            for key, results in self.seen.items()
        }
        self.seen = {key: results for key, results in kept.items() if results}


@record(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything a plan is run with."""

    assets: AssetStore
    engine: Engine
    policy: Policy
    emit: Callable[[Event], None]
    workspace: Path
    settings: Settings
    budget: Budget = Budget()
    usage: Usage = field(default_factory=Usage)
    cancelled: threading.Event = field(default_factory=threading.Event)
    time_limit: float = 120.0
    """Seconds a command may take that names no limit of its own."""
    allowed_hosts: tuple[str, ...] = ()
    wrote: Callable[[str], None] = lambda path: None
    approve: Approve | None = None
    origins: Origins = field(default_factory=Origins)
    approvals: Approvals = field(default_factory=Approvals)
    secrets: Secrets = field(default_factory=Secrets)
    strict: bool = False
    on_error: OnError = "fail_fast"
    depth: int = 0
    """How many sessions are around this one."""
    places: dict[str, Places] = field(default_factory=dict[str, Places])
    """What holds back the commands that say how many calls may run at once."""
    too_early: Callable[[], None] | None = None
    """Where a call was begun early: tells that it must be run in earnest."""


class Stopped(threading.Event):
    """Whether a run was stopped; what waiting for it takes is made when one waits."""

    def __init__(self) -> None:
        self._is_set = False  # and nothing of Event's own: this is cheap
        self._heard: threading.Event | None = None

    def is_set(self) -> bool:
        """Whether the run was stopped."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run is stopped."""
        with _MAKING:
            heard = self._heard = self._heard or threading.Event()
        # `set` says so first and looks then who waits: one of the two sees the other
        return self._is_set or heard.wait(timeout)

    def set(self) -> None:
        """Stop the run."""
        self._is_set = True
        if self._heard is not None:
            self._heard.set()

    def clear(self) -> None:
        """A run that was stopped stays so."""


_MAKING = threading.Lock()


class Unheard(threading.Event):
    """For a command that cannot hear it: its time limit must not stop the others."""

    def __init__(self, run: threading.Event) -> None:
        self._run = run  # and nothing of Event's own: this is cheap

    def is_set(self) -> bool:
        """Whether the whole run was stopped."""
        return self._run.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the whole run is stopped."""
        return self._run.wait(timeout)

    def set(self) -> None:
        """Nobody hears it."""

    def clear(self) -> None:
        """There is nothing to take back."""


class Linked(threading.Event):
    """Set for one call by its time limit, or for all by the run."""

    def __init__(self, run: threading.Event) -> None:
        super().__init__()
        self._run = run
        self.over = False
        """Whether the command has ended, or was given up."""

    def is_set(self) -> bool:
        """Whether this call, or the whole run, was stopped."""
        return self._run.is_set() or super().is_set()
