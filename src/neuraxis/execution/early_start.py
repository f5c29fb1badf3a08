"""Speculative execution: start read-only calls while the reply is still streaming.

Decision 7. A step is begun before the reply ends if its call is whole and valid by
itself and with those before it, it has no effect, no rule asks for approval of it, and
nothing before it in the reply has an effect. It runs in isolation: on copies of the
run's state (objects, budget, origins), and its events and files reach nobody. So it
can be discarded, and is, unless the whole reply is read without a mistake, its plan is
checked, and the step there is the same.

Then the plan runs as ever: budget, guards, policy, `CallStarted`, the order of the
results. Only where the command's code would run, the value of the speculative step is
taken. The journal therefore reports an early call like any other, and never one that
was discarded; `PlanChecked.notes` says how much earlier it was begun.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.dialects.streaming import EarlyReader, ReadsEarly
from neuraxis.events import CallProgress, CallStarted, Event
from neuraxis.execution.budget import Usage
from neuraxis.execution.for_each import run_one
from neuraxis.execution.runtime import Runtime
from neuraxis.execution.scheduler import may_reach_a_limit
from neuraxis.messages import Call, Chunk, Result
from neuraxis.planning.plan import Plan, Step
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command
from neuraxis.policy.approvals import Approvals
from neuraxis.policy.authorize import Refused

MOST_CALLS = 64
"""Maximum calls of one reply that are considered before it ends."""


class _Begun(Struct, kw_only=True, eq=False):
    """Speculatively started step, with the events it has emitted."""

    step: Step
    task: asyncio.Task[Result | None] | None = None
    since: float = 0.0
    """Start time of its command; 0 while it waits for another step."""
    taken: bool = False
    spoiled: bool = False
    """Whether it did something unsafe to repeat, such as asking an agent."""
    heard: deque[CallProgress | str] = field(
        default_factory=deque["CallProgress | str"]
    )
    context: Context | None = None

    def hear(self, event: Event) -> None:
        """Store the command's own events until the step is adopted; drop others."""
        if isinstance(event, CallStarted):
            self.since = time.perf_counter()
        elif isinstance(event, CallProgress):
            self.heard.append(event)
            self.pass_on()

    def hear_file(self, path: str) -> None:
        """Store the path of a file that the command wrote."""
        self.heard.append(path)
        self.pass_on()

    def spoil(self) -> None:
        """Mark the result as unusable."""
        self.spoiled = True

    def pass_on(self) -> None:
        """Emit the stored events to the run that adopts the step."""
        while self.heard and self.context is not None:
            event = self.heard.popleft()
            if isinstance(event, str):
                self.context.wrote(event)
            else:
                self.context.progress(event.message, event.fraction)

    @property
    def done(self) -> bool:
        """Return whether it ended without a failure."""
        task = self.task
        if task is None or not task.done() or task.cancelled():
            return False
        result = None if task.exception() is not None else task.result()
        return result is not None and result.status == "done"


class EarlyStarts:
    """Speculative calls of one run, reply after reply; cancels all its tasks.

    Args:
        on: whether anything is started early.
        dialect: the session's; one that cannot stream starts nothing early.
        runtime: the `Runtime` of the run's plans.
        plan: checks calls, as the loop does.
        next_id: the id of the next call.
    """

    def __init__(
        self,
        *,
        on: bool,
        dialect: Dialect,
        runtime: Runtime,
        plan: Callable[[Sequence[Call]], Plan],
        next_id: Callable[[], str],
    ) -> None:
        self._on = on
        self._dialect = dialect
        self._runtime = runtime
        self._plan = plan
        self._new_id = next_id
        # ids that early calls were given and no whole reply has used yet
        self._ids: deque[str] = deque()
        self._off = True
        self._waiting: list[Chunk] = []
        self._look_again: asyncio.Handle | None = None
        self._reader: EarlyReader | None = None
        self._calls: list[Call] = []
        self._begun: dict[str, _Begun] = {}
        self._apart: Runtime | None = None

    @property
    def busy(self) -> bool:
        """Return whether steps of this reply were begun and not yet discarded."""
        return bool(self._begun)

    def begin(self) -> None:
        """Prepare for a new reply."""
        if self._reader is not None:
            self._forget()
        self._off = not self._on

    def see(self, chunk: Chunk) -> None:
        """Take a chunk of the reply.

        The chunk is decoded when the event loop is next idle: a stream that never waits
        for its next chunk leaves no time for speculation, and pays nothing for it.
        """
        if self._off or not (chunk.text or chunk.tool_calls):
            return
        if chunk.finish_reason is not None:
            self.stop()  # it is the last one, and the reply is whole
            return
        self._waiting.append(chunk)
        if self._look_again is None and (len(self._waiting) > 1 or self._reader):
            loop = asyncio.get_running_loop()
            self._look_again = loop.call_soon(self._look)

    def stop(self) -> None:
        """Start nothing more: the stream has ended."""
        self._off = True
        if self._waiting:
            self._waiting = []
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    def next_id(self) -> str:
        """Return the next call's id, the same as while streaming."""
        return self._ids.popleft() if self._ids else self._new_id()

    def handed(self, plan: Plan) -> Plan:
        """Return the plan with the values of its speculatively run steps."""
        if not self._begun or plan.problems:
            return plan
        now = time.perf_counter()
        notes: list[str] = []
        steps: list[Step] = []
        for step in plan.steps:
            begun = self._begun.get(step.call.id)
            if begun is not None and _is_same(step, begun.step):
                steps.append(self._with_value(step, begun))
                if begun.since and not begun.spoiled:
                    early = (now - begun.since) * 1000
                    notes.append(
                        f"{step.call.target}: begun {early:.0f} ms before the reply "
                        "ended"
                    )
            else:
                steps.append(step)
        return replace(plan, steps=tuple(steps), notes=(*plan.notes, *notes))

    # --- while the reply is written ----------------------------------------------

    def _look(self) -> None:
        self._look_again = None
        chunks, self._waiting = self._waiting, []
        if self._reader is None:
            if not isinstance(self._dialect, ReadsEarly):
                self._off = True
                return
            self._reader = self._dialect.early()
        for chunk in chunks:
            for call in self._reader.feed(chunk):
                self._consider(call)
                if self._off:
                    return
        self._off = self._reader.ended

    def _consider(self, call: Call) -> None:
        """Begin the call, postpone it, or ignore the rest of the reply."""
        here = len(self._calls)
        while len(self._ids) <= here:
            self._ids.append(self._new_id())
        self._calls.append(replace(call, id=self._ids[here]))
        plan = self._plan(self._calls)
        if (
            plan.problems
            or here + 1 >= MOST_CALLS
            or may_reach_a_limit(plan, self._runtime)
        ):
            self._off = True
            return
        step = plan.steps[-1]
        policy = self._runtime.gate.policy
        if not step.command.spec.effects.readonly or policy.may_ask(step):
            self._off = True  # all calls behind it must wait for it
        elif self._may_begin(step) and not any(
            earlier.command is step.command and earlier.arguments == step.arguments
            for earlier in plan.steps[:-1]
        ):
            # a repeated call may be answered with the first one's result
            self._begin(step)

    def _may_begin(self, step: Step) -> bool:
        return (
            step.loop is None
            and step.command.run is not None
            and step.depends <= self._begun.keys()
            and "secret://" not in repr(step.arguments)
        )

    def _begin(self, step: Step) -> None:
        if self._apart is None:
            self._apart = _copied(self._runtime)
        self._apart.gate.origins.planned([step])
        begun = _Begun(step=step)
        apart = replace(
            self._apart,
            emit=begun.hear,
            wrote=begun.hear_file,
            too_early=begun.spoil,
        )
        self._begun[step.call.id] = begun
        begun.task = asyncio.create_task(self._run(step, apart))

    async def _run(self, step: Step, apart: Runtime) -> Result | None:
        for own in step.depends:
            earlier = self._begun[own]
            if earlier.task is not None:
                await asyncio.wait([earlier.task])
            if not (earlier.done and earlier.since):
                return None  # since 0: its value is an earlier call's, and not taken
        return await run_one(step, apart)

    # --- when it is whole --------------------------------------------------------

    def _with_value(self, step: Step, begun: _Begun) -> Step:
        """Return the step with code that returns the speculative value."""
        command = step.command

        async def take(*positional: Any, **named: Any) -> Any:
            context = cast("Context | None", named.get(command.context_name))
            if self._may_take(begun) and begun.task is not None:
                begun.taken = True
                begun.context = context
                begun.pass_on()
                result = await begun.task
                if result is not None and not begun.spoiled:
                    if result.exception is not None:
                        raise result.exception
                    if result.error is not None and result.error.code == "timeout":
                        raise Refused(result.error)  # as it was told
                    if self._assets.known(step.call.id):
                        root = self._assets.native(step.call.id)
                        return root["content"]["response"]
            elif begun.task is not None and not begun.taken:
                # it runs again now; twice at once would waste its resources
                begun.task.cancel()
            return await self._runtime.engine.run(
                cast("Callable[..., Any]", command.run),
                positional,
                named,
                # the early call's time limit must not stop the others
                None if context is None else context.cancelled,
                is_async=command.is_async,
                blocking=command.spec.blocking,
            )

        taking = Command(
            plugin=command.plugin,
            spec=command.spec,
            run=take,
            is_async=True,
            context_name=command.context_name,
        )
        taking.parameters, taking.response = command.parameters, command.response
        return replace(step, command=taking)

    def _may_take(self, begun: _Begun) -> bool:
        """Return whether the speculative value equals that of running the step now.

        False if the value was taken before (a second try), was made of the value of
        a step that has another result since, or still waits for its turn: a step
        that runs now may hold the slot it waits for.
        """
        return (
            not begun.taken
            and not begun.spoiled
            and begun.since > 0
            and all(
                self._begun[own].taken and not self._begun[own].spoiled
                for own in begun.step.depends
            )
        )

    @property
    def _assets(self) -> AssetStore:
        apart = self._apart
        return self._runtime.assets if apart is None else apart.assets

    async def throw_away(self) -> None:
        """Cancel the steps that were not adopted, and forget the reply."""
        self.stop()
        tasks = [begun.task for begun in self._begun.values() if begun.task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # mark it as retrieved: nobody reads this failure
        self._forget()

    def _forget(self) -> None:
        self._reader = self._apart = None
        self._calls, self._begun = [], {}


def _is_same(step: Step, begun: Step) -> bool:
    """Return whether both steps are equal except for their notes."""
    return replace(step, notes=()) == replace(begun, notes=())


def _copied(runtime: Runtime) -> Runtime:
    """Return an isolated copy of the runtime, in which approvals are denied."""
    usage, gate, assets = runtime.usage, runtime.gate, runtime.assets.aside()
    return replace(
        runtime,
        assets=assets,
        usage=Usage(
            steps=usage.steps,
            by_tool=dict(usage.by_tool),
            seen={key: [*results] for key, results in usage.seen.items()},
        ),
        gate=replace(
            gate,
            assets=assets,
            origins=gate.origins.aside(),
            approvals=Approvals(yes_to=gate.approvals.yes_to),
            approve=None,
            later=None,
            settled=None,
        ),
        on_error="continue",
    )
