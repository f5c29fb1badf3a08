"""A session inside of a command: what it takes over, and what is heard of it (D12).

The run around it flows in with the `Context` of its command; the policy, the approvals,
the limits and the origins of the session inside flow out, and whatever happens there is
told to the run around it as `Inside`: counted, traced and kept in its journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from neuraxis.errors import ConfigError
from neuraxis.events import NOT_STORED, Event, Inside, innermost, to_json
from neuraxis.labels import OWN, Label, from_told, is_foreign
from neuraxis.later import dataclass
from neuraxis.messages import Usage as Tokens
from neuraxis.origins import Origins
from neuraxis.plugins.context import Context
from neuraxis.policy import DEFAULT, Policy
from neuraxis.runtime import Approve, Budget, Runtime
from neuraxis.secrets import Secrets
from neuraxis.settings import Settings

T = TypeVar("T")
MOST_DEPTH = 4
"""Sessions inside of sessions; a deeper one is refused."""
_LOOK = 0.1
"""Seconds after which it is looked again whether a command is still wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """The run around a command, for a session that the command makes."""

    runtime: Runtime
    call_id: str
    label: Label
    """What the command's arguments are made of."""
    cancelled: threading.Event
    loop: asyncio.AbstractEventLoop
    thread: int
    """That of the loop."""

    def left(self, budget: Budget) -> Budget:
        """The limits of a run inside: its own, and what is left of those around it."""
        steps = max(self.runtime.budget.steps - self.runtime.usage.steps, 0)
        return replace(budget, steps=min(budget.steps, steps))

    async def hold(self, work: Coroutine[Any, Any, T]) -> T:
        """Await it as long as the command is wanted, also where that is a thread.

        Raises:
            asyncio.CancelledError: it is not wanted any more.
        """
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                if self.cancelled.is_set():
                    task.cancel()
                await asyncio.wait((task,), timeout=_LOOK)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        return task.result()

    def hear(self, session: str, workspace: Path, event: Event) -> None:
        """Tell the run around it what happened inside, in the thread of its loop."""
        if event.__class__ in NOT_STORED:
            return
        told = Inside(id=self.call_id, session=session, event=to_json(event))
        shared = workspace == self.runtime.workspace
        if threading.get_ident() == self.thread:
            self._tell(told, shared)
            return
        with contextlib.suppress(RuntimeError):  # closed loop: nobody waits
            self.loop.call_soon_threadsafe(self._tell, told, shared)

    def _tell(self, told: Inside, shared: bool) -> None:
        runtime, event = self.runtime, innermost(told.event)
        match event.get("type"):
            case "call_started":
                runtime.usage.steps += 1
                if label := from_told(event.get("origins") or ()):
                    runtime.origins.adds(self.call_id, label)
            case "call_finished" if shared:
                label = runtime.origins.results.get(self.call_id, OWN)
                for path in event.get("wrote") or ():
                    runtime.origins.wrote(path, label, self.call_id)
                    runtime.wrote(path)
            case "model_finished":
                runtime.usage.tokens += Tokens(
                    input_tokens=event["input_tokens"],
                    output_tokens=event["output_tokens"],
                    cached_tokens=event["cached_tokens"],
                )
            case _:
                pass
        runtime.emit(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a session takes over, unless it is told otherwise."""

    policy: Policy = DEFAULT
    approve: Approve | None = None
    settings: Settings | None = None
    workspace: Path | None = None
    allow_hosts: tuple[str, ...] = ()
    yes_to: Sequence[str] = ()
    origins: Origins = field(default_factory=Origins)
    secrets: Secrets = field(default_factory=Secrets)
    outer: Outer | None = None
    depth: int = 0


def around(within: Context | None) -> Around:
    """What a session that is made `within` a command takes over.

    Raises:
        ConfigError: the context is none that a command was given, or sessions stand
            too deep in each other.
    """
    if within is None:
        return Around()
    outer = within.outer
    if not isinstance(outer, Outer):
        raise ConfigError(
            "within: expected the Context that a running command was given; write "
            "`context: Context` among its parameters and within=context"
        )
    runtime = outer.runtime
    if runtime.depth >= MOST_DEPTH:
        raise ConfigError(
            f"within: sessions stand {MOST_DEPTH} deep in each other already; an agent "
            "that asks itself would go on for ever"
        )
    return Around(
        policy=runtime.policy,
        approve=runtime.approve,
        settings=runtime.settings,
        workspace=runtime.workspace,
        allow_hosts=runtime.allowed_hosts,
        yes_to=runtime.approvals.yes_to,
        origins=_origins(runtime.origins, outer.label),
        secrets=runtime.secrets,
        outer=outer,
        depth=runtime.depth + 1,
    )


def _origins(known: Origins, label: Label) -> Origins:
    """What is known at the start: the files, and what the request is made of.

    A request that strangers had a part in is not the word of a person.
    """
    made = Origins(
        files=dict(known.files),
        own_files=set(known.own_files),
        words=list(known.words),
        heeds=not is_foreign(label),
    )
    made.reads(label)
    return made
