"""Concurrent execution of a plan's steps, with the outcome of sequential execution.

Steps without effects overlap where their references allow it; a step with an effect
waits for all before it (decision 4). If a step fails, the results of later steps that
already ran are discarded, and these steps are reported as skipped, as in sequential
order. Their ends are held back until it is known whether they count, so that no step
ends twice in the journal.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.errors import StorageError
from neuraxis.events import ApprovalAsked, CallFinished, Event
from neuraxis.execution.report import report_finished
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import Result
from neuraxis.planning.plan import Step
from neuraxis.policy.gate import Approve

RunStep = Callable[[Step, Runtime], Coroutine[Any, Any, Result]]


async def run_in_order(
    steps: Sequence[Step], runtime: Runtime, run_one: RunStep
) -> list[Result]:
    """Run the steps sequentially; concurrent runs must have the same outcome."""
    results: list[Result] = []
    failed: dict[str, Step] = {}
    for step in steps:
        broken = _blocking_failure(step, failed, runtime)
        if broken is None:
            result = await run_one(step, runtime)
        else:
            result = _skip(step, broken, runtime)
        results.append(result)
        runtime.usage.ended[step.call.id] = result
        if result.status != "done":
            failed[step.call.id] = broken or step
    return results


def has_waited(steps: Sequence[Step], runtime: Runtime) -> bool:
    """Return whether one of these steps waited for an approval before."""
    later = runtime.gate.later
    asked = later.asked.keys() if later is not None else ()
    return any(
        step.call.id in asked or step.call.id in runtime.earlier_results
        for step in steps
    )


def _blocking_failure(
    step: Step, failed: Mapping[str, Step], runtime: Runtime
) -> Step | None:
    """Return the failed step that prevents this one from running.

    `failed` maps the ids of failed and skipped calls to the step that failed.
    """
    if not failed or step.call.id in runtime.earlier_results:  # it has ended already
        return None
    later = runtime.gate.later
    # a call that was asked about has an answer of its own, or still waits for one
    was_asked = later is not None and step.call.id in later.asked
    if runtime.on_error != "continue" and not was_asked:
        return next(iter(failed.values()))
    return next(
        (failed[call_id] for call_id in failed if call_id in step.depends), None
    )


async def run_concurrently(
    steps: Sequence[Step],
    waits: Mapping[str, frozenset[str]],
    runtime: Runtime,
    run_one: RunStep,
    limit: int,
) -> list[Result]:
    """Run each step after its dependencies, at most `limit` at once.

    All tasks have ended on return, also after an exception.

    Raises:
        StorageError: the journal could not be written.
    """
    return await _ConcurrentRun(
        steps=steps, waits=waits, runtime=runtime, run_one=run_one, limit=limit
    ).run()


class _ConcurrentRun(Struct, kw_only=True):
    """One concurrent run; steps are known by their index in the plan."""

    steps: Sequence[Step]
    waits: Mapping[str, frozenset[str]]
    runtime: Runtime
    run_one: RunStep
    limit: int
    indexes: dict[str, int] = {}
    unfinished: list[int] = []
    """Number of unfinished dependencies, by step."""
    dependents: list[list[int]] = []
    """Steps that depend on each step."""
    ready: list[int] = []
    tasks: dict[int, asyncio.Task[Result]] = {}
    ended: deque[int] = field(default_factory=deque[int])
    results: dict[int, Result] = {}
    failed: dict[str, Step] = {}
    started: set[str] = set()
    held_ends: dict[int, list[CallFinished]] = {}
    """Ends of steps, and of their items, that may have to be discarded."""
    discarded: set[str] = set()
    """Ids of calls that ran, and whose results are discarded."""
    first_undone: int = 0
    """Index of the first step that is not done: its events count."""
    stop: int = 0
    """Index of the first failed step, or the number of steps."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> list[Result]:
        """Return all results in the plan's order."""
        self.stop = len(self.steps)
        self.indexes = {step.call.id: index for index, step in enumerate(self.steps)}
        self.unfinished = [len(self.waits[step.call.id]) for step in self.steps]
        self.dependents = [[] for _ in self.steps]
        for index, step in enumerate(self.steps):
            for dependency in self.waits[step.call.id]:
                self.dependents[self.indexes[dependency]].append(index)
        self.ready = [index for index, count in enumerate(self.unfinished) if not count]
        gate = self.runtime.gate
        approve = None if gate.approve is None else _ask_one_at_a_time(gate.approve)
        gated = replace(
            self.runtime,
            emit=self._emit,
            gate=replace(gate, emit=self._emit, approve=approve),
        )
        try:
            self._start(gated)
            while self.tasks:
                await self.wake.wait()
                self.wake.clear()
                while self.ended:
                    self._end(self.ended.popleft())
                self._start(gated)
        except BaseException:
            await self._cancel_running()
            with suppress(StorageError):  # the original exception is raised
                self._emit_held_ends()
            raise
        return self._sequential_results()

    def _start(self, runtime: Runtime) -> None:
        """Start the steps that are ready, in the plan's order."""
        while self.ready and len(self.tasks) < self.limit:
            index = heapq.heappop(self.ready)
            step = self.steps[index]
            if index > self.stop:
                continue
            if self.failed and self.stop == len(self.steps):
                broken = _blocking_failure(step, self.failed, self.runtime)
                if broken is not None:
                    self.failed[step.call.id] = broken
                    self._release(index)
                    continue
            self.started.add(step.call.id)
            task = asyncio.create_task(self.run_one(step, runtime))
            self.tasks[index] = task
            task.add_done_callback(lambda _, index=index: self._mark_ended(index))

    def _mark_ended(self, index: int) -> None:
        self.ended.append(index)
        self.wake.set()

    def _emit(self, event: Event) -> None:
        """Emit an event; hold back an end that may be discarded."""
        if isinstance(event, CallFinished):
            index = self.indexes.get(event.id, self.indexes.get(event.part_of, -1))
            if index > self.first_undone and self.runtime.on_error != "continue":
                self.held_ends.setdefault(index, []).append(event)
                return
        self.runtime.emit(event)

    def _end(self, index: int) -> None:
        task = self.tasks.pop(index)
        call_id = self.steps[index].call.id
        if task.cancelled() and index > self.stop:
            return
        result = task.result()
        self.results[index] = result
        if index > self.stop:
            return
        self.runtime.usage.ended[call_id] = result
        if result.status != "done":
            self.failed[call_id] = self.steps[index]
            if self.runtime.on_error != "continue":
                self.stop = index
                for later, running in self.tasks.items():
                    if later > index:
                        running.cancel()
        while self._is_done(self.first_undone):
            self.first_undone += 1
            for event in self.held_ends.pop(self.first_undone, ()):
                self.runtime.emit(event)
        self._release(index)

    def _is_done(self, index: int) -> bool:
        result = self.results.get(index)
        return result is not None and result.status == "done"

    def _release(self, index: int) -> None:
        for dependent in self.dependents[index]:
            self.unfinished[dependent] -= 1
            if not self.unfinished[dependent]:
                heapq.heappush(self.ready, dependent)

    async def _cancel_running(self) -> None:
        """Cancel the running steps after a cancellation or a broken journal."""
        running = set(self.tasks.values())
        for task in running:
            task.cancel()
        while running:
            try:
                _, running = await asyncio.wait(running)
            except asyncio.CancelledError:  # the run may be cancelled a second time
                for task in running:
                    task.cancel()
        for task in self.tasks.values():
            if not task.cancelled():
                # mark it as retrieved: only the first exception is raised
                task.exception()

    def _emit_held_ends(self) -> None:
        """Report the held ends after a cancellation."""
        for index in sorted(self.held_ends):
            if index > self.stop:
                self._discard(self.steps[index], self.steps[self.stop])
            for event in self.held_ends.pop(index, ()):
                self.runtime.emit(event)
        self._uncount_discarded()

    def _discard(self, step: Step, broken: Step) -> Result:
        """Report a step and its items as skipped; discard their results."""
        call_id, runtime = step.call.id, self.runtime
        result = _skipped(step, broken)
        ends = self.held_ends.pop(self.indexes[call_id], [])
        for event in ends:
            runtime.emit(_discarded_end(event, result))
            runtime.usage.ended.pop(event.id, None)  # an item's
        if not any(event.id == call_id for event in ends):
            report_finished(result, runtime, step)
        runtime.usage.ended[call_id] = result
        if call_id in self.started:
            runtime.assets.forget(call_id)
            self.discarded.add(call_id)
        return result

    def _uncount_discarded(self) -> None:
        if self.discarded:
            self.runtime.usage.uncount(self.discarded)
            self.runtime.gate.origins.forget(self.discarded)

    def _sequential_results(self) -> list[Result]:
        results: list[Result] = []
        failed: dict[str, Step] = {}
        for index, step in enumerate(self.steps):
            result = self.results.get(index)
            broken = _blocking_failure(step, failed, self.runtime)
            if broken is not None or result is None:
                # it may have run early
                result = self._discard(step, broken or self.steps[self.stop])
            results.append(result)
            if result.status != "done":
                failed[step.call.id] = broken or step
        self._uncount_discarded()
        return results


def _ask_one_at_a_time(approve: Approve) -> Approve:
    """Return an `approve` that asks for one approval at a time."""
    lock = asyncio.Lock()

    async def ask(question: ApprovalAsked) -> bool | str:
        async with lock:
            return await approve(question)

    return ask


def _skip(step: Step, broken: Step, runtime: Runtime) -> Result:
    result = _skipped(step, broken)
    report_finished(result, runtime, step)
    return result


def _skipped(step: Step, broken: Step) -> Result:
    call, command = step.call, step.command
    reason = f"{broken.call.target} ({broken.call.id})"
    return Result(
        call=call,
        status="skipped",
        plugin=command.plugin.name,
        command=command.spec.name,
        error=call_errors.skipped(call.target, reason),
    )


def _discarded_end(event: CallFinished, result: Result) -> CallFinished:
    """Return the end of a call whose result is discarded."""
    return replace(
        event,
        status="skipped",
        value=None,
        asset=None,
        error=None if result.error is None else call_errors.to_json(result.error),
        warnings=(),
        shown=False,
    )
