"""Concurrent execution of a plan's steps, with the outcome of sequential execution.

Steps without effects overlap where their references allow it; a step with an effect
waits for all before it (decision 4). The result of a step that ran although one before
it failed is discarded: the step is reported as skipped, as in sequential order. Its end
is therefore held back until it is known to count: nothing ends twice.
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

RunOne = Callable[[Step, Runtime], Coroutine[Any, Any, Result]]


async def run_in_order(
    steps: Sequence[Step], runtime: Runtime, run_one: RunOne
) -> list[Result]:
    """Run the steps one after another: the reference for concurrent runs."""
    results: list[Result] = []
    failed: dict[str, Step] = {}
    for step in steps:
        broken = _broken(step, failed, runtime)
        if broken is None:
            result = await run_one(step, runtime)
        else:
            result = _skip(step, broken, runtime)
        results.append(result)
        runtime.usage.ended[step.call.id] = result
        if result.status != "done":
            failed[step.call.id] = broken or step
    return results


def goes_on(steps: Sequence[Step], runtime: Runtime) -> bool:
    """Return whether these steps waited for a person before."""
    later = runtime.gate.later
    asked = later.asked.keys() if later is not None else ()
    return any(step.call.id in asked or step.call.id in runtime.known for step in steps)


def _broken(step: Step, failed: Mapping[str, Step], runtime: Runtime) -> Step | None:
    """Return the failed step that keeps this one from running.

    `failed` has by call id the steps that failed, and for skipped ones what failed.
    """
    if not failed or step.call.id in runtime.known:  # it has ended already
        return None
    later = runtime.gate.later
    # a call that a person said yes to does not depend on the others that were asked
    agreed = later is not None and later.allows(step.call.id)
    if runtime.on_error != "continue" and not agreed:
        return next(iter(failed.values()))
    return next((failed[own] for own in failed if own in step.depends), None)


async def run_overlapping(
    steps: Sequence[Step],
    waits: Mapping[str, frozenset[str]],
    runtime: Runtime,
    run_one: RunOne,
    most: int,
) -> list[Result]:
    """Run each step after its dependencies, at most `most` at once.

    No task is left behind, however it ends.

    Raises:
        StorageError: the journal could not be written.
    """
    return await _Overlap(
        steps=steps, waits=waits, runtime=runtime, run_one=run_one, most=most
    ).run()


class _Overlap(Struct, kw_only=True):
    """One concurrent run; steps are known by their index in the plan."""

    steps: Sequence[Step]
    waits: Mapping[str, frozenset[str]]
    runtime: Runtime
    run_one: RunOne
    most: int
    place: dict[str, int] = {}
    left: list[int] = []
    """Number of unfinished dependencies, by step."""
    holds: list[list[int]] = []
    """Steps that depend on each step."""
    ready: list[int] = []
    tasks: dict[int, asyncio.Task[Result]] = {}
    ended: deque[int] = field(default_factory=deque[int])
    found: dict[int, Result] = {}
    failed: dict[str, Step] = {}
    begun: set[str] = set()
    held: dict[int, list[CallFinished]] = {}
    """Ends of steps, and of their items, that may not count."""
    gone: set[str] = set()
    """Steps that ran, and whose results are discarded."""
    sure: int = 0
    """Index of the first step that is not done: what it reports counts."""
    stop: int = 0
    """Index of the first failed step, or the number of steps."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> list[Result]:
        """Return all results in the plan's order."""
        self.stop = len(self.steps)
        self.place = {step.call.id: here for here, step in enumerate(self.steps)}
        self.left = [len(self.waits[step.call.id]) for step in self.steps]
        self.holds = [[] for _ in self.steps]
        for here, step in enumerate(self.steps):
            for other in self.waits[step.call.id]:
                self.holds[self.place[other]].append(here)
        self.ready = [here for here, count in enumerate(self.left) if not count]
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
            with suppress(StorageError):  # what is raised says why
                self._tell_held()
            raise
        return self._as_if_in_order()

    def _start(self, runtime: Runtime) -> None:
        """Start the steps that are ready, in the plan's order."""
        while self.ready and len(self.tasks) < self.most:
            here = heapq.heappop(self.ready)
            step = self.steps[here]
            if here > self.stop:
                continue
            if self.failed and self.stop == len(self.steps):
                broken = _broken(step, self.failed, self.runtime)
                if broken is not None:
                    self.failed[step.call.id] = broken
                    self._release(here)
                    continue
            self.begun.add(step.call.id)
            task = asyncio.create_task(self.run_one(step, runtime))
            self.tasks[here] = task
            task.add_done_callback(lambda _, here=here: self._note(here))

    def _note(self, here: int) -> None:
        self.ended.append(here)
        self.wake.set()

    def _emit(self, event: Event) -> None:
        """Emit an event; hold back an end that may not count."""
        if isinstance(event, CallFinished):
            here = self.place.get(event.id, self.place.get(event.part_of, -1))
            if here > self.sure and self.runtime.on_error != "continue":
                self.held.setdefault(here, []).append(event)
                return
        self.runtime.emit(event)

    def _end(self, here: int) -> None:
        task = self.tasks.pop(here)
        own = self.steps[here].call.id
        if task.cancelled() and here > self.stop:
            return
        result = task.result()
        self.found[here] = result
        if here > self.stop:
            return
        self.runtime.usage.ended[own] = result
        if result.status != "done":
            self.failed[own] = self.steps[here]
            if self.runtime.on_error != "continue":
                self.stop = here
                for later, running in self.tasks.items():
                    if later > here:
                        running.cancel()
        while (end := self.found.get(self.sure)) is not None and end.status == "done":
            self.sure += 1
            for event in self.held.pop(self.sure, ()):
                self.runtime.emit(event)
        self._release(here)

    def _release(self, here: int) -> None:
        for later in self.holds[here]:
            self.left[later] -= 1
            if not self.left[later]:
                heapq.heappush(self.ready, later)

    async def _cancel_running(self) -> None:
        """Cancel the running steps after a cancellation or a broken journal."""
        running = set(self.tasks.values())
        for task in running:
            task.cancel()
        while running:
            try:
                _, running = await asyncio.wait(running)
            except asyncio.CancelledError:  # by the plan and by the run's end
                for task in running:
                    task.cancel()
        for task in self.tasks.values():
            if not task.cancelled():
                # mark it as retrieved: the first exception is raised already
                task.exception()

    def _tell_held(self) -> None:
        """Report the held ends of a run that was cut off."""
        for here in sorted(self.held):
            if here > self.stop:
                self._give_up(self.steps[here], self.steps[self.stop])
            for event in self.held.pop(here, ()):
                self.runtime.emit(event)
        self._forget_gone()

    def _give_up(self, step: Step, broken: Step) -> Result:
        """Report a step and its items as skipped; discard their results."""
        own, runtime = step.call.id, self.runtime
        result = _skipped(step, broken)
        ends = self.held.pop(self.place[own], [])
        for event in ends:
            runtime.emit(_discarded(event, result))
            runtime.usage.ended.pop(event.id, None)  # of an item: it does not count
        if not any(event.id == own for event in ends):
            report_finished(result, runtime, step)
        runtime.usage.ended[own] = result
        if own in self.begun:
            runtime.assets.forget(own)
            self.gone.add(own)
        return result

    def _forget_gone(self) -> None:
        if self.gone:
            self.runtime.usage.take_back(self.gone)
            self.runtime.gate.origins.forget(self.gone)

    def _as_if_in_order(self) -> list[Result]:
        results: list[Result] = []
        failed: dict[str, Step] = {}
        for here, step in enumerate(self.steps):
            result = self.found.get(here)
            broken = _broken(step, failed, self.runtime)
            if broken is not None or result is None:
                # it may have run early
                result = self._give_up(step, broken or self.steps[self.stop])
            results.append(result)
            if result.status != "done":
                failed[step.call.id] = broken or step
        self._forget_gone()
        return results


def _ask_one_at_a_time(approve: Approve) -> Approve:
    """Return an `approve` that asks for one approval at a time."""
    lock = asyncio.Lock()

    async def ask(asked: ApprovalAsked) -> bool | str:
        async with lock:
            return await approve(asked)

    return ask


def _skip(step: Step, broken: Step, runtime: Runtime) -> Result:
    result = _skipped(step, broken)
    report_finished(result, runtime, step)
    return result


def _skipped(step: Step, broken: Step) -> Result:
    call, command = step.call, step.command
    because = f"{broken.call.target} ({broken.call.id})"
    return Result(
        call=call,
        status="skipped",
        plugin=command.plugin.name,
        command=command.spec.name,
        error=call_errors.skipped(call.target, because),
    )


def _discarded(event: CallFinished, result: Result) -> CallFinished:
    """Return the end of a call whose result does not count."""
    return replace(
        event,
        status="skipped",
        value=None,
        asset=None,
        error=None if result.error is None else call_errors.to_json(result.error),
        warnings=(),
        shown=False,
    )
