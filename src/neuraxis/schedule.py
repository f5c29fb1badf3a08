"""One plan: its steps flow in, their results flow out, in the plan's order.

The outcome is that of running the steps from top to bottom (decision 6): steps that
change nothing overlap where their references allow it, and a step that ran although
one before it failed is told as skipped. `Runtime.on_error` says what a failure does to
the rest.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuraxis import sentences
from neuraxis.events import CallFinished, Event
from neuraxis.execute import finished
from neuraxis.fan_out import run_one
from neuraxis.messages import Result
from neuraxis.plan import Plan, Step, waits_for
from neuraxis.policy import EVERYTHING
from neuraxis.runtime import Runtime

MOST_AT_ONCE = 64
"""Steps of one plan that run at the same time."""
TRIES = 3
"""How often one call may be started under `retry`."""


async def run_plan(plan: Plan, runtime: Runtime) -> list[Result]:
    """Run every step; a failed one skips what `Runtime.on_error` says (rule C19).

    Raises:
        StorageError: the journal could not be written; nothing goes on running.
    """
    if len(plan.steps) == 1:
        return [await run_one(plan.steps[0], runtime)]
    if _must_be_in_order(plan, runtime):
        return await run_in_order(plan, runtime)
    waits = waits_for(plan, lambda step: _is_asked_about(step, runtime))
    return await _Overlapping(plan, runtime, waits).run()


def _must_be_in_order(plan: Plan, runtime: Runtime) -> bool:
    """Whether nothing may overlap, or a limit may be reached in the middle.

    Who takes the last call of a budget must not depend on who was first.
    """
    if not any(
        step.command.spec.effects.readonly and not step.depends for step in plan.steps
    ):
        return True
    tries = TRIES if runtime.on_error == "retry" else 1
    budget, usage = runtime.budget, runtime.usage
    total = usage.steps
    by_tool: dict[str, int] = {}
    for step in plan.steps:
        tool = f"{step.command.plugin.name}.{step.command.spec.name}"
        most = tries * (step.loop.most if step.loop is not None else 1)
        total += most
        by_tool[tool] = by_tool.get(tool, usage.by_tool.get(tool, 0)) + most
    return (
        total > budget.steps
        or max(by_tool.values(), default=0) > budget.steps_per_tool
    )


def _is_asked_about(step: Step, runtime: Runtime) -> bool:
    """Whether a person may be asked; then only about a step that is sure to run."""
    if runtime.policy is EVERYTHING:
        return False
    command = step.command
    decided = runtime.policy.decide(command.plugin.name, command.spec, step.arguments)
    return decided.verdict == "ask"


async def run_in_order(plan: Plan, runtime: Runtime) -> list[Result]:
    """The steps one after another: what the overlapping run must be like."""
    results: list[Result] = []
    state: dict[str, str] = {}
    for step in plan.steps:
        broken = _broken(step, plan.steps, state, runtime)
        if broken is None:
            result = await run_one(step, runtime)
        else:
            result = _skip(step, broken, runtime)
        results.append(result)
        state[step.call.id] = result.status
    return results


def _broken(
    step: Step, steps: Sequence[Step], state: Mapping[str, str], runtime: Runtime
) -> Step | None:
    """The step that keeps this one from running, of those that have ended."""
    goes_on = runtime.on_error == "continue"
    if goes_on and not step.depends:
        return None
    for earlier in steps:
        if earlier is step:
            return None
        own = earlier.call.id
        if state.get(own, "done") != "done" and (not goes_on or own in step.depends):
            return earlier
    return None


@dataclass(slots=True)
class _Overlapping:
    """One run of a plan whose steps may overlap."""

    plan: Plan
    runtime: Runtime
    waits: Mapping[str, frozenset[str]]
    place: dict[str, int] = field(default_factory=dict[str, int])
    """The place of each step in the plan, by its call's id."""
    left: list[int] = field(default_factory=list[int])
    """How many steps each still waits for."""
    holds: list[list[int]] = field(default_factory=list[list[int]])
    """The steps that wait for each."""
    ready: list[int] = field(default_factory=list[int])
    tasks: dict[int, asyncio.Task[Result]] = field(
        default_factory=dict[int, asyncio.Task[Result]]
    )
    ended: deque[int] = field(default_factory=deque[int])
    found: dict[int, Result] = field(default_factory=dict[int, Result])
    state: dict[str, str] = field(default_factory=dict[str, str])
    stop: int = 0
    """Under all policies but `continue`: the place of the first failed step."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> list[Result]:
        """All results, in the plan's order."""
        steps = self.plan.steps
        self.stop = len(steps)
        self.place = {step.call.id: here for here, step in enumerate(steps)}
        self.left = [len(self.waits[step.call.id]) for step in steps]
        self.holds = [[] for _ in steps]
        for here, step in enumerate(steps):
            for other in self.waits[step.call.id]:
                self.holds[self.place[other]].append(here)
        self.ready = [here for here, count in enumerate(self.left) if not count]
        try:
            while True:
                self._start()
                if not self.tasks:
                    break
                await self.wake.wait()
                self.wake.clear()
                while self.ended:
                    self._end(self.ended.popleft())
        finally:
            await self._leave_nothing()
        return self._in_order()

    def _start(self) -> None:
        """Start what may run now, those that stand first in the plan first."""
        while self.ready and len(self.tasks) < MOST_AT_ONCE:
            here = heapq.heappop(self.ready)
            step = self.plan.steps[here]
            if here > self.stop:
                continue
            broken = _broken(step, self.plan.steps, self.state, self.runtime)
            if broken is not None:
                self.state[step.call.id] = "skipped"
                self._release(here)
                continue
            task = asyncio.create_task(run_one(step, self._runtime(here)))
            self.tasks[here] = task
            task.add_done_callback(lambda _, here=here: self._note(here))

    def _note(self, here: int) -> None:
        self.ended.append(here)
        self.wake.set()

    def _runtime(self, here: int) -> Runtime:
        """The runtime of one step: how it ends is not told once it is skipped."""
        if self.runtime.on_error == "continue":
            return self.runtime
        emit = self.runtime.emit

        def told(event: Event) -> None:
            if here <= self.stop or not isinstance(event, CallFinished):
                emit(event)

        return replace(self.runtime, emit=told)

    def _end(self, here: int) -> None:
        result = self.tasks.pop(here).result()
        if here > self.stop:
            self.runtime.assets.forget(result.call.id)
            return
        self.found[here] = result
        self.state[result.call.id] = result.status
        if result.status != "done" and self.runtime.on_error != "continue":
            self.stop = here
            for later, task in self.tasks.items():
                if later > here:
                    task.cancel()
        self._release(here)

    def _release(self, here: int) -> None:
        for later in self.holds[here]:
            self.left[later] -= 1
            if not self.left[later]:
                heapq.heappush(self.ready, later)

    async def _leave_nothing(self) -> None:
        """End what still runs: the plan was cancelled, or a step could not be told."""
        for task in self.tasks.values():
            task.cancel()
        if self.tasks:
            await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    def _in_order(self) -> list[Result]:
        """The results as a run from top to bottom would have given them."""
        results: list[Result] = []
        state: dict[str, str] = {}
        steps = self.plan.steps
        stop = steps[self.stop] if self.stop < len(steps) else None
        for here, step in enumerate(steps):
            result = self.found.get(here)
            if here > self.stop and stop is not None:
                if result is not None:  # it ran early, and does not count
                    self.runtime.assets.forget(step.call.id)
                result = _skip(step, stop, self.runtime)
            elif result is None:
                broken = _broken(step, steps, state, self.runtime) or step
                result = _skip(step, broken, self.runtime)
            results.append(result)
            state[step.call.id] = result.status
        return results


def _skip(step: Step, broken: Step, runtime: Runtime) -> Result:
    command = step.command
    error = sentences.skipped(step.call.target, broken.call.target)
    result = Result(
        call=step.call,
        status="skipped",
        plugin=command.plugin.name,
        command=command.spec.name,
        error=error,
    )
    finished(result, runtime)
    return result
