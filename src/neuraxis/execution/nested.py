"""Nested sessions: sessions inside commands, under a parent run (D12).

The nested session's events reach the parent run as `Inside`: they are counted, traced
and stored in its journal. The parent decides whether a call may begin, and its user
gives the approvals.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.call_errors import budget_exhausted
from neuraxis.errors import CommandError, ConfigError, StorageError
from neuraxis.events import (
    NOT_STORED,
    ApprovalAsked,
    Event,
    Inside,
    innermost,
    to_json,
)
from neuraxis.execution.budget import Budget
from neuraxis.execution.cancellation import CallCancellation
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import Usage as Tokens
from neuraxis.policy.approvals import MOST_REFUSALS
from neuraxis.policy.provenance.labels import OWN, Label, from_told, is_outside
from neuraxis.specs import Json

T = TypeVar("T")
_LOOK = 0.1
"""Seconds between two checks whether a command is still wanted."""
_KEPT = 1
"""Replies that sessions inside leave to the run, to answer with what there is."""
_ASKS = frozenset({"session_started", "model_started", "call_started"})
"""Events of what may begin only if the parent run allows it."""
_LONGEST = 30.0
"""Maximum seconds that a thread waits for the parent's event loop."""
_OVER = (
    "the command that this session was made in has ended; make a session in each call "
    "(Session.open(ID, journal=…) continues an earlier conversation)"
)


class ParentRun(Struct, frozen=True, kw_only=True):
    """Parent run of a nested session that a command makes."""

    runtime: Runtime
    call_id: str
    tool: str
    label: Label
    """Origins of the command's arguments."""
    cancelled: CallCancellation
    loop: asyncio.AbstractEventLoop
    thread: int
    """Thread id of the parent's event loop."""
    one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Ensures one approval request at a time, also for two nested sessions."""
    loops: set[tuple[str, str]] = set()
    """Steps with `for_each` of which at least one item has begun."""

    def check(self) -> None:
        """Refuse to begin anything once the command has ended.

        Raises:
            ConfigError: the command has ended.
        """
        if self.cancelled.over:
            raise ConfigError(f"within: {_OVER}")

    def left(self, budget: Budget) -> Budget:
        """Return the nested run's limits: at most the remaining budget around it.

        Raises:
            ConfigError: the command has ended.
        """
        self.check()
        whole, usage = self.runtime.budget, self.runtime.usage
        steps = max(whole.steps - usage.steps, 0)
        # without any left the first one is refused, which says why
        replies = max(whole.model_calls - usage.model_calls - _KEPT, 1)
        usd, around = budget.usd, whole.usd
        if around is not None:
            remaining = max(around - usage.usd, 0.0)
            usd = remaining if usd is None else min(usd, remaining)
        return replace(
            budget,
            steps=min(budget.steps, steps),
            model_calls=min(budget.model_calls, replies),
            usd=usd,
        )

    async def hold(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` while the command is wanted, also from a thread.

        Raises:
            asyncio.CancelledError: it is not wanted any more.
        """
        task, wanted = asyncio.ensure_future(work), True
        try:
            while not task.done():
                if wanted and (self.cancelled.is_set() or self.cancelled.over):
                    wanted = False
                    task.cancel()  # only once: its cleanup must not be cut off
                await asyncio.wait((task,), timeout=_LOOK if wanted else None)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        return task.result()

    async def ask(self, asked: ApprovalAsked) -> bool | str:
        """Request approval from the parent run, in its event loop."""
        asked = replace(asked, inside=(self.tool, *asked.inside))
        if asyncio.get_running_loop() is self.loop:
            return await self._ask(asked)
        question = self._ask(asked)
        try:
            answer = asyncio.run_coroutine_threadsafe(question, self.loop)
        except RuntimeError:  # closed loop: nobody can be asked
            question.close()
            return False
        return await asyncio.wrap_future(answer)

    async def _ask(self, asked: ApprovalAsked) -> bool | str:
        approve, refused = self.runtime.gate.approve, self.runtime.gate.refused
        async with self.one_by_one:
            if approve is None or len(refused) >= MOST_REFUSALS:
                return False
            answer = await approve(asked)
            allowed = answer is True or answer in asked.offers
            if not allowed:
                refused.append(asked.id)
        return answer if allowed else False

    async def settled(self) -> None:
        """Wait until the run around it has on disk what it heard.

        Raises:
            StorageError: that journal cannot be written.
        """
        settled = self.runtime.gate.settled
        if settled is None or self.cancelled.over:
            return
        if asyncio.get_running_loop() is self.loop:
            await settled()
            return
        work = settled()
        try:
            # behind what was handed to that loop before
            waits = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # closed loop: nobody waits
            work.close()
            return
        await asyncio.wrap_future(waits)

    def receive(self, session: str, workspace: Path, event: Event) -> None:
        """Report a nested session's event to the parent, in its loop's thread.

        Raises:
            CommandError: a call inside may not begin any more.
            StorageError: the journal around it could not be written.
        """
        if event.__class__ in NOT_STORED:
            return
        seen = translate_event(
            to_json(event), workspace_paths(workspace, self.runtime.workspace)
        )
        inside = Inside(id=self.call_id, session=session, event=seen)
        if threading.get_ident() == self.thread:
            self._report(inside)
        elif innermost(seen)["type"] in _ASKS:
            self._report_and_wait(inside)
        else:
            with contextlib.suppress(RuntimeError):  # closed loop: nobody waits
                self.loop.call_soon_threadsafe(self._report, inside)

    def _report_and_wait(self, inside: Inside) -> None:
        """Report an event and wait until it is on disk."""
        done = Future[None]()

        def tell() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                self._report(inside)
            except BaseException as raised:  # noqa: BLE001 - it is raised there
                done.set_exception(raised)
            else:
                done.set_result(None)

        until = time.monotonic() + _LONGEST
        try:
            self.loop.call_soon_threadsafe(tell)
        except RuntimeError:  # closed loop
            raise CommandError(_OVER) from None
        while True:
            try:
                return done.result(_LOOK)
            except TimeoutError:
                late = time.monotonic() > until or self.loop.is_closed()
                if (late or self.cancelled.is_set()) and done.cancel():
                    raise CommandError(
                        "the run around it does not answer: it has ended, or its event "
                        "loop is held up by what should be awaited"
                    ) from None

    def _report(self, inside: Inside) -> None:
        runtime, event = self.runtime, innermost(inside.event)
        match event["type"]:
            case "session_started":
                self._reads(event)
            case "model_started" if not event.get("again"):
                self._counts_reply()
            case "call_started":
                self._counts(inside, event)
                self._reads(event)
            case "call_finished":
                self._wrote(event.get("wrote") or ())
            case "session_finished":
                known = runtime.gate.origins.written.get(self.call_id, ())
                files = event.get("files") or ()
                self._wrote([path for path in files if path not in known])
            case "model_finished":
                runtime.usage.tokens += Tokens(
                    input_tokens=event["input_tokens"],
                    output_tokens=event["output_tokens"],
                    cached_tokens=event["cached_tokens"],
                    cache_write_tokens=event.get("cache_write_tokens", 0),
                    reasoning_tokens=event.get("reasoning_tokens", 0),
                )
                runtime.usage.usd += event.get("usd") or 0.0
            case _:
                pass
        try:
            runtime.emit(inside)
        except StorageError:
            if not self.cancelled.over:  # else that journal may be closed
                raise

    def _reads(self, event: Mapping[str, Any]) -> None:
        # the origins of the command's arguments are known already
        if label := from_told(event.get("origins") or ()) - self.label:
            self.runtime.gate.origins.adds(self.call_id, label)

    def _counts(self, inside: Inside, event: Mapping[str, Any]) -> None:
        """Count a nested call in the parent's budget, or refuse it."""
        if self.cancelled.over or self.cancelled.is_set():
            raise CommandError(_OVER)
        usage, budget = self.runtime.usage, self.runtime.budget
        whole = (_session_of(inside), str(event.get("part_of") or ""))
        if whole[1] and whole not in self.loops:
            self.loops.add(whole)  # the first item: its step is counted already
            return
        if usage.steps >= budget.steps:
            raise _spent("calls in one run", budget.steps)
        tool = f"{event['plugin']}.{event['command']}"
        times = usage.by_tool.get(tool, 0)
        if times >= budget.steps_per_tool:
            raise _spent(f"calls of {tool}", budget.steps_per_tool)
        usage.steps, usage.by_tool[tool] = usage.steps + 1, times + 1

    def _counts_reply(self) -> None:
        """Count a nested model's reply in the parent's budget, or refuse it."""
        usage, most = self.runtime.usage, self.runtime.budget.model_calls
        if usage.model_calls + _KEPT >= most:
            raise _spent("replies of models", most)
        usage.model_calls += 1

    def _wrote(self, files: Sequence[str]) -> None:
        origins = self.runtime.gate.origins
        label = origins.results.get(self.call_id, OWN)
        if is_outside(label):
            origins.copying.add(self.call_id)  # it may have copied what it read
        for path in files:
            origins.wrote(path, label, self.call_id)
            self.runtime.wrote(path)


def _spent(what: str, most: int) -> CommandError:
    return CommandError(budget_exhausted(what, most).message)


def _session_of(inside: Inside) -> str:
    """Return the id of the session in which the event happened."""
    session, event = inside.session, inside.event
    while event["type"] == "inside":
        session = str(event["session"])
        event = cast("Mapping[str, Json]", event["event"])
    return session


WorkspacePaths = tuple[str, str]
"""Source and target folder of a path translation."""
SAME: WorkspacePaths = ("", "")
_NAMED = ("wrote", "files")
"""Event fields that name workspace files."""


def workspace_paths(here: Path, there: Path) -> WorkspacePaths:
    """Return the translation from one workspace to another."""
    if here == there:
        return SAME
    ends = os.path.realpath(here), os.path.realpath(there)
    return SAME if ends[0] == ends[1] else ends


def translate_path(name: str, by: WorkspacePaths) -> str | None:
    """Translate a file's path; None if it is outside that folder."""
    if by is SAME:
        return name
    here, there = by
    try:
        found = os.path.relpath(os.path.join(here, name), there)
    except ValueError:  # on another drive
        return None
    found = found.replace(os.sep, "/")
    return None if found.partition("/")[0] == ".." else found


def translate_paths(names: Iterable[str], by: WorkspacePaths) -> list[str]:
    """Translate the paths of those files that are inside that folder."""
    found = (translate_path(name, by) for name in names)
    return [name for name in found if name is not None]


def translate_event(
    event: Mapping[str, Json], by: WorkspacePaths
) -> Mapping[str, Json]:
    """Return a JSON event with its file paths translated."""
    if by is SAME:
        return event
    if event["type"] == "inside":
        inner = cast("Mapping[str, Json]", event["event"])
        return {**event, "event": dict(translate_event(inner, by))}
    names = {key: event[key] for key in _NAMED if event.get(key)}
    return {
        **event,
        **{
            key: list[Json](translate_paths(cast("list[str]", found), by))
            for key, found in names.items()
        },
    }
