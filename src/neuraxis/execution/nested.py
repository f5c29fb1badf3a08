"""Nested sessions: sessions inside commands, under a parent run (D12).

The nested session's events reach the parent run as `Inside`: they are counted, traced
and stored in its journal. The parent's budget limits the calls, and the parent's user
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
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.specs import Json

T = TypeVar("T")
_POLL_SECONDS = 0.1
"""Seconds between two checks whether the command was cancelled."""
_RESERVED_REPLIES = 1
"""Replies that nested sessions leave to the parent, for its final answer."""
_NEEDS_PERMISSION = frozenset({"session_started", "model_started", "call_started"})
"""Events that may happen only after the parent run has accepted them."""
_MAX_WAIT_SECONDS = 30.0
"""Maximum seconds that a thread waits for the parent's event loop."""
_ENDED = (
    "the command that this session was made in has ended; make a session in each call "
    "(Session.open(ID, journal=…) continues an earlier conversation)"
)


class ParentRun(Struct, frozen=True, kw_only=True):
    """Parent run of a nested session that a command makes."""

    runtime: Runtime
    call_id: str
    tool: str
    source: str
    """The command as registered, as in `Origin.source`."""
    cancelled: CallCancellation
    loop: asyncio.AbstractEventLoop
    thread: int
    """Thread id of the parent's event loop."""
    one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Ensures one approval request at a time, also for two nested sessions."""
    loops: set[tuple[str, str]] = set()
    """Steps with `for_each` that have started at least one item."""

    @property
    def label(self) -> Label:
        """Origins of what the command may pass on now.

        These are its arguments, and what sessions inside it have read.
        """
        known = self.runtime.gate.origins.results.get(self.call_id, OWN)
        # its own earlier results are no origin of what it passes on
        return frozenset(o for o in known if o.open_world or o.source != self.source)

    def hand_on(self, origins: Origins) -> bool:
        """Update a nested session's origins; return whether they have grown."""
        earlier = origins.handed, origins.read
        origins.handed = self.label
        # what the outer model read may have influenced the request that it passes on
        origins.reads(origins.handed | self.runtime.gate.origins.read)
        return earlier != (origins.handed, origins.read)

    def check(self) -> None:
        """Check that the command has not ended.

        Raises:
            ConfigError: the command has ended.
        """
        if self.cancelled.over:
            raise ConfigError(f"within: {_ENDED}")

    def remaining_budget(self, budget: Budget) -> Budget:
        """Return the nested run's budget, within the parent's remaining budget.

        Raises:
            ConfigError: the command has ended.
        """
        self.check()
        own, usage = self.runtime.budget, self.runtime.usage
        steps = max(own.steps - usage.steps, 0)
        # at least 1: if none remains, the first one is refused with the reason
        replies = max(own.model_calls - usage.model_calls - _RESERVED_REPLIES, 1)
        usd = _least(budget.usd, own.usd, usage.usd)
        tokens = _least(budget.tokens, own.tokens, usage.tokens.total)
        return replace(
            budget,
            steps=min(budget.steps, steps),
            model_calls=min(budget.model_calls, replies),
            usd=usd,
            tokens=cast("int | None", tokens),
        )

    async def hold(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` until the command is cancelled, also from a thread.

        Raises:
            asyncio.CancelledError: the command was cancelled or has ended.
        """
        task = asyncio.ensure_future(work)
        is_wanted = True
        try:
            while not task.done():
                if is_wanted and (self.cancelled.is_set() or self.cancelled.over):
                    is_wanted = False
                    task.cancel()  # only once: its cleanup must not be cut off
                pause = _POLL_SECONDS if is_wanted else None
                await asyncio.wait((task,), timeout=pause)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        return task.result()

    async def ask(self, question: ApprovalAsked) -> bool | str:
        """Request approval from the parent run, in its event loop."""
        question = replace(question, inside=(self.tool, *question.inside))
        if asyncio.get_running_loop() is self.loop:
            return await self._ask(question)
        approval = self._ask(question)
        try:
            answer = asyncio.run_coroutine_threadsafe(approval, self.loop)
        except RuntimeError:  # the loop is closed
            approval.close()
            return False
        return await asyncio.wrap_future(answer)

    async def _ask(self, question: ApprovalAsked) -> bool | str:
        approve, refused = self.runtime.gate.approve, self.runtime.gate.refused
        async with self.one_by_one:
            if approve is None or len(refused) >= MOST_REFUSALS:
                return False
            answer = await approve(question)
            allowed = answer is True or answer in question.offers
            if not allowed:
                refused.append(question.id)
        return answer if allowed else False

    async def settled(self) -> None:
        """Wait until the received events are on disk in the parent's journal.

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
            # runs after the events that were passed to that loop before
            done = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # the loop is closed
            work.close()
            return
        await asyncio.wrap_future(done)

    def receive(self, session: str, workspace: Path, event: Event) -> None:
        """Report a nested session's event to the parent, in its loop's thread.

        Raises:
            CommandError: the nested session may not start this call or reply.
            StorageError: the parent's journal could not be written.
        """
        if event.__class__ in NOT_STORED:
            return
        translated = translate_event(
            to_json(event), workspace_paths(workspace, self.runtime.workspace)
        )
        inside = Inside(id=self.call_id, session=session, event=translated)
        if threading.get_ident() == self.thread:
            self._report(inside)
        elif innermost(translated)["type"] in _NEEDS_PERMISSION:
            self._report_and_wait(inside)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self._report, inside)

    def _report_and_wait(self, inside: Inside) -> None:
        """Report an event and wait until it is on disk."""
        done = Future[None]()

        def report() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                self._report(inside)
            except BaseException as raised:  # noqa: BLE001 - it is raised there
                done.set_exception(raised)
            else:
                done.set_result(None)

        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        try:
            self.loop.call_soon_threadsafe(report)
        except RuntimeError:  # closed loop
            raise CommandError(_ENDED) from None
        while True:
            try:
                return done.result(_POLL_SECONDS)
            except TimeoutError:
                late = time.monotonic() > deadline or self.loop.is_closed()
                if (late or self.cancelled.is_set()) and done.cancel():
                    raise CommandError(
                        "the run around it does not answer: it has ended, or its event "
                        "loop is held up by what should be awaited"
                    ) from None

    def _report(self, inside: Inside) -> None:
        runtime, event = self.runtime, innermost(inside.event)
        match event["type"]:
            case "session_started":
                self._add_origins(event)
            case "model_started" if not event.get("again"):
                self._count_reply()
            case "call_started":
                self._count_call(inside, event)
                self._add_origins(event)
            case "call_finished":
                self._record_files(event.get("wrote") or ())
            case "session_finished":
                recorded = runtime.gate.origins.written.get(self.call_id, ())
                files = event.get("files") or ()
                self._record_files([path for path in files if path not in recorded])
            case "model_finished":
                runtime.usage.tokens += Tokens(
                    input_tokens=event["input_tokens"],
                    output_tokens=event["output_tokens"],
                    cached_tokens=event["cached_tokens"],
                    cache_write_tokens=event.get("cache_write_tokens", 0),
                    reasoning_tokens=event.get("reasoning_tokens", 0),
                )
                runtime.usage.usd += event.get("usd") or 0.0
            case "history_shortened":  # a summary is a reply of its model
                runtime.usage.tokens += Tokens(
                    input_tokens=event.get("input_tokens", 0),
                    output_tokens=event.get("output_tokens", 0),
                )
            case _:
                pass
        try:
            runtime.emit(inside)
        except StorageError:
            if not self.cancelled.over:  # afterwards that journal may be closed
                raise

    def _add_origins(self, event: Mapping[str, Any]) -> None:
        # what its arguments and earlier sessions are made of is known already
        if label := from_told(event.get("origins") or ()) - self.label:
            self.runtime.gate.origins.adds(self.call_id, label)

    def _count_call(self, inside: Inside, event: Mapping[str, Any]) -> None:
        """Count a nested call in the parent's budget, or refuse it."""
        if self.cancelled.over or self.cancelled.is_set():
            raise CommandError(_ENDED)
        usage, budget = self.runtime.usage, self.runtime.budget
        loop = (_session_of(inside), str(event.get("part_of") or ""))
        if loop[1] and loop not in self.loops:
            self.loops.add(loop)  # the first item: its step was counted
            return
        if usage.steps >= budget.steps:
            raise _budget_error("calls in one run", budget.steps)
        tool = f"{event['plugin']}.{event['command']}"
        times = usage.by_tool.get(tool, 0)
        if times >= budget.steps_per_tool:
            raise _budget_error(f"calls of {tool}", budget.steps_per_tool)
        usage.steps, usage.by_tool[tool] = usage.steps + 1, times + 1

    def _count_reply(self) -> None:
        """Count a nested model's reply in the parent's budget, or refuse it."""
        usage, most = self.runtime.usage, self.runtime.budget.model_calls
        if usage.model_calls + _RESERVED_REPLIES >= most:
            raise _budget_error("replies of models", most)
        usage.model_calls += 1

    def _record_files(self, files: Sequence[str]) -> None:
        origins = self.runtime.gate.origins
        label = origins.results.get(self.call_id, OWN)
        if is_outside(label):
            origins.copying.add(self.call_id)  # it may have copied what it read
        for path in files:
            origins.wrote(path, label, self.call_id)
            self.runtime.wrote(path)


def _least(limit: float | None, parents: float | None, used: float) -> float | None:
    """Return a limit, within what remains of the parent's."""
    if parents is None:
        return limit
    remaining = max(parents - used, 0)
    return remaining if limit is None else min(limit, remaining)


def _budget_error(limited: str, limit: int) -> CommandError:
    return CommandError(budget_exhausted(limited, limit).message)


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
_FILE_FIELDS = ("wrote", "files")
"""Event fields that name workspace files."""


def workspace_paths(source: Path, target: Path) -> WorkspacePaths:
    """Return the translation from one workspace to another."""
    if source == target:
        return SAME
    resolved = os.path.realpath(source), os.path.realpath(target)
    return SAME if resolved[0] == resolved[1] else resolved


def translate_path(name: str, paths: WorkspacePaths) -> str | None:
    """Translate a file's path; None if it is outside that folder."""
    if paths is SAME:
        return name
    source, target = paths
    try:
        relative = os.path.relpath(os.path.join(source, name), target)
    except ValueError:  # on another drive
        return None
    relative = relative.replace(os.sep, "/")
    return None if relative.partition("/")[0] == ".." else relative


def translate_paths(names: Iterable[str], paths: WorkspacePaths) -> list[str]:
    """Translate the paths of those files that are inside that folder."""
    translated = (translate_path(name, paths) for name in names)
    return [name for name in translated if name is not None]


def translate_event(
    event: Mapping[str, Json], paths: WorkspacePaths
) -> Mapping[str, Json]:
    """Return a JSON event with its file paths translated."""
    if paths is SAME:
        return event
    if event["type"] == "inside":
        inner = cast("Mapping[str, Json]", event["event"])
        return {**event, "event": dict(translate_event(inner, paths))}
    names = {key: event[key] for key in _FILE_FIELDS if event.get(key)}
    return {
        **event,
        **{
            key: list[Json](translate_paths(cast("list[str]", file_names), paths))
            for key, file_names in names.items()
        },
    }
