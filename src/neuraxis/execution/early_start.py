"""Speculative execution: start read-only calls while the reply is still streaming.

Decision 7. A step starts before the reply ends if its call is complete and valid,
alone and with the calls before it, has no effect, needs no approval, and no call before
it in the reply has an effect. It runs in isolation, on copies of the run's state
(assets, budget, origins), and its events and files are not reported. So it can be
discarded, and it is, unless the whole reply is decoded without a mistake, its plan is
checked, and the plan has the same step.

Then the plan runs as always: budget, policy, `CallStarted`, the order of the results.
Only the command's code does not run again: the speculative value is used. So the
journal reports an early call like any other, and never a discarded one;
`PlanChecked.notes` says how much earlier it started.
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
from neuraxis.dialects import Dialect, EarlyReader, ReadsEarly
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


class _EarlyStep(Struct, kw_only=True, eq=False):
    """Speculatively started step, with the events it has emitted."""

    step: Step
    task: asyncio.Task[Result | None] | None = None
    started_at: float = 0.0
    """Start time of its command; 0 while it waits for another step."""
    adopted: bool = False
    unusable: bool = False
    """Whether it did something unsafe to repeat, such as asking an agent."""
    events: deque[CallProgress | str] = field(
        default_factory=deque["CallProgress | str"]
    )
    context: Context | None = None

    def receive(self, event: Event) -> None:
        """Store progress events until the step is adopted; drop other events."""
        if isinstance(event, CallStarted):
            self.started_at = time.perf_counter()
        elif isinstance(event, CallProgress):
            self.events.append(event)
            self.forward_events()

    def add_file(self, path: str) -> None:
        """Store the path of a file that the command wrote."""
        self.events.append(path)
        self.forward_events()

    def mark_unusable(self) -> None:
        """Mark the result as unusable."""
        self.unusable = True

    def forward_events(self) -> None:
        """Emit the stored events to the run that adopts the step."""
        while self.events and self.context is not None:
            event = self.events.popleft()
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
        is_on: whether calls are started early.
        dialect: the session's dialect; it must implement `ReadsEarly`.
        runtime: the `Runtime` of the run's plans.
        plan: checks calls, as the loop does.
        next_id: returns a new call id.
    """

    def __init__(
        self,
        *,
        is_on: bool,
        dialect: Dialect,
        runtime: Runtime,
        plan: Callable[[Sequence[Call]], Plan],
        next_id: Callable[[], str],
    ) -> None:
        self._on = is_on
        self._dialect = dialect
        self._runtime = runtime
        self._plan = plan
        self._new_id = next_id
        # ids of early calls that no decoded reply has used yet
        self._unused_ids: deque[str] = deque()
        self._is_off = True
        self._chunks: list[Chunk] = []
        self._decoding: asyncio.Handle | None = None
        self._reader: EarlyReader | None = None
        self._calls: list[Call] = []
        self._started: dict[str, _EarlyStep] = {}
        self._isolated: Runtime | None = None

    @property
    def busy(self) -> bool:
        """Return whether steps of this reply were started and not yet discarded."""
        return bool(self._started)

    def begin(self) -> None:
        """Prepare for a new reply."""
        if self._reader is not None:
            self._forget()
        self._is_off = not self._on

    def add_chunk(self, chunk: Chunk) -> None:
        """Add a chunk of the reply.

        It is decoded when the event loop is next idle: a stream that never waits for
        its next chunk leaves no time for speculation, and should pay nothing for it.
        """
        if self._is_off or not (chunk.text or chunk.tool_calls):
            return
        if chunk.finish_reason is not None:
            self.stop()  # the last chunk: the reply is complete
            return
        self._chunks.append(chunk)
        if self._decoding is None and (len(self._chunks) > 1 or self._reader):
            loop = asyncio.get_running_loop()
            self._decoding = loop.call_soon(self._decode_chunks)

    def stop(self) -> None:
        """Start no more calls: the stream has ended."""
        self._is_off = True
        if self._chunks:
            self._chunks = []
        if self._decoding is not None:
            self._decoding.cancel()
            self._decoding = None

    def next_id(self) -> str:
        """Return the next call id, the same as while streaming."""
        return self._unused_ids.popleft() if self._unused_ids else self._new_id()

    def with_values(self, plan: Plan) -> Plan:
        """Return the plan with the values of its speculatively run steps."""
        if not self._started or plan.problems:
            return plan
        end_of_reply = time.perf_counter()
        notes: list[str] = []
        steps: list[Step] = []
        for step in plan.steps:
            early_step = self._started.get(step.call.id)
            if early_step is not None and _is_same(step, early_step.step):
                steps.append(self._with_value(step, early_step))
                if early_step.started_at and not early_step.unusable:
                    milliseconds = (end_of_reply - early_step.started_at) * 1000
                    target = step.call.target
                    notes.append(
                        f"{target}: begun {milliseconds:.0f} ms before the reply ended"
                    )
            else:
                steps.append(step)
        return replace(plan, steps=tuple(steps), notes=(*plan.notes, *notes))

    # --- while the reply is streaming --------------------------------------------

    def _decode_chunks(self) -> None:
        self._decoding = None
        chunks, self._chunks = self._chunks, []
        if self._reader is None:
            if not isinstance(self._dialect, ReadsEarly):
                self._is_off = True
                return
            self._reader = self._dialect.early()
        for chunk in chunks:
            for call in self._reader.feed(chunk):
                self._consider_call(call)
                if self._is_off:
                    return
        self._is_off = self._reader.ended

    def _consider_call(self, call: Call) -> None:
        """Start the call, skip it, or ignore the rest of the reply."""
        index = len(self._calls)
        while len(self._unused_ids) <= index:
            self._unused_ids.append(self._new_id())
        self._calls.append(replace(call, id=self._unused_ids[index]))
        plan = self._plan(self._calls)
        if (
            plan.problems
            or index + 1 >= MOST_CALLS
            or may_reach_a_limit(plan, self._runtime)
        ):
            self._is_off = True
            return
        step = plan.steps[-1]
        policy = self._runtime.gate.policy
        if not step.command.spec.effects.readonly or policy.may_ask(step):
            self._is_off = True  # all later calls must wait for it
        elif self._may_start(step):
            self._start(step)

    def _may_start(self, step: Step) -> bool:
        return (
            step.loop is None
            and step.command.run is not None
            and step.depends <= self._started.keys()
            and "secret://" not in repr(step.arguments)
            # what was sent cannot be taken back if the reply is discarded
            and not (step.command.marks.sends_out and self._runtime.gate.origins.read)
        )

    def _start(self, step: Step) -> None:
        if self._isolated is None:
            self._isolated = _isolated_copy(self._runtime)
        self._isolated.gate.origins.planned([step])
        self._isolated.usage.planned.add(step.call.id)
        early_step = _EarlyStep(step=step)
        isolated = replace(
            self._isolated,
            emit=early_step.receive,
            wrote=early_step.add_file,
            too_early=early_step.mark_unusable,
        )
        self._started[step.call.id] = early_step
        early_step.task = asyncio.create_task(self._run(step, isolated))

    async def _run(self, step: Step, isolated: Runtime) -> Result | None:
        for call_id in step.depends:
            earlier = self._started[call_id]
            if earlier.task is not None:
                await asyncio.wait([earlier.task])
            if not (earlier.done and earlier.started_at):
                return None  # not started: it reused an earlier call's result
        return await run_one(step, isolated)

    # --- when the reply is complete ----------------------------------------------

    def _with_value(self, step: Step, early_step: _EarlyStep) -> Step:
        """Return the step with code that returns the speculative value."""
        command = step.command

        async def adopt(*positional: Any, **named: Any) -> Any:
            context = cast("Context | None", named.get(command.context_name))
            if self._may_adopt(early_step) and early_step.task is not None:
                early_step.adopted = True
                early_step.context = context
                early_step.forward_events()
                result = await early_step.task
                if result is not None and not early_step.unusable:
                    if result.exception is not None:
                        raise result.exception
                    if result.error is not None and result.error.code == "timeout":
                        raise Refused(result.error)  # as it was told
                    if self._assets.known(step.call.id):
                        root = self._assets.native(step.call.id)
                        return root["content"]["response"]
            elif early_step.task is not None and not early_step.adopted:
                # it runs again now, and two at once would waste resources
                early_step.task.cancel()
            return await self._runtime.engine.run(
                cast("Callable[..., Any]", command.run),
                positional,
                named,
                # the early call's time limit must not stop the others
                None if context is None else context.cancelled,
                is_async=command.is_async,
                blocking=command.spec.blocking,
            )

        adopting = Command(
            plugin=command.plugin,
            spec=command.spec,
            run=adopt,
            is_async=True,
            context_name=command.context_name,
        )
        adopting.parameters, adopting.response = command.parameters, command.response
        return replace(step, command=adopting)

    def _may_adopt(self, early_step: _EarlyStep) -> bool:
        """Return whether the speculative value may replace running the step now.

        It may not if it was adopted before (by a first attempt), if it was made from a
        value that was not adopted, or if its step still waits for a slot: a step that
        runs now may hold that slot.
        """
        return (
            not early_step.adopted
            and not early_step.unusable
            and early_step.started_at > 0
            and all(
                self._started[call_id].adopted and not self._started[call_id].unusable
                for call_id in early_step.step.depends
            )
        )

    @property
    def _assets(self) -> AssetStore:
        isolated = self._isolated
        return self._runtime.assets if isolated is None else isolated.assets

    async def discard(self) -> None:
        """Cancel the remaining steps, and forget the reply."""
        self.stop()
        tasks = [
            early_step.task for early_step in self._started.values() if early_step.task
        ]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # mark it as retrieved: nobody reads this failure
        self._forget()

    def _forget(self) -> None:
        self._reader = self._isolated = None
        self._calls, self._started = [], {}


def _is_same(step: Step, early_step: Step) -> bool:
    """Return whether both steps are equal except for their notes."""
    return replace(step, notes=()) == replace(early_step, notes=())


def _isolated_copy(runtime: Runtime) -> Runtime:
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
