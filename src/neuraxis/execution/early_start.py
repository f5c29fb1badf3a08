"""Chunks of a reply flow in while it is written; what only looks is started already.

Decision 7. A step is begun before the reply ends where its call is whole and valid by
itself and with those before it, it has no effect, no rule asks about it, and nothing
before it in the reply has an effect. It is run apart: on copies of what a run knows
(objects, budget, origins), with no event and no file told to anybody. So it can be
thrown away, and is, unless the whole reply is read without a mistake, its plan is
checked, and the step there is the same.

Then the plan is run as ever: budget, guards, policy, `CallStarted`, the order of the
results. Only where the command's code would be run, the value of the one that was
begun is taken. The journal therefore tells an early call like any other, and never
one that was thrown away; `PlanChecked.notes` says how much earlier it was begun.
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
from neuraxis.engines import TimeLimitReached
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

MOST_CALLS = 64
"""Calls of one reply that are looked at before it ends."""


class _Begun(Struct, kw_only=True, eq=False):
    """A step that was started early, and what it had to say meanwhile."""

    step: Step
    task: asyncio.Task[Result | None] | None = None
    since: float = 0.0
    """When its command began to run; 0: it waits for another one."""
    taken: bool = False
    spoiled: bool = False
    """It did what must not be done early, such as to ask an agent."""
    heard: deque[CallProgress | str] = field(
        default_factory=deque["CallProgress | str"]
    )
    context: Context | None = None

    def hear(self, event: Event) -> None:
        """Keep what the command says for later; nothing else is for anybody."""
        if isinstance(event, CallStarted):
            self.since = time.perf_counter()
        elif isinstance(event, CallProgress):
            self.heard.append(event)
            self.pass_on()

    def hear_file(self, path: str) -> None:
        """The command wrote a file."""
        self.heard.append(path)
        self.pass_on()

    def spoil(self) -> None:
        """What it gives does not count."""
        self.spoiled = True

    def pass_on(self) -> None:
        """Tell the run what was heard, once the step is one of its own."""
        while self.heard and self.context is not None:
            said = self.heard.popleft()
            if isinstance(said, str):
                self.context.wrote(said)
            else:
                self.context.progress(said.message, said.fraction)

    @property
    def done(self) -> bool:
        """Whether it has ended well."""
        task = self.task
        if task is None or not task.done() or task.cancelled():
            return False
        result = None if task.exception() is not None else task.result()
        return result is not None and result.status == "done"


class EarlyStarts:
    """The early calls of one run, reply after reply; leaves no task behind.

    Args:
        on: False: nothing is ever started early.
        dialect: the session's; one that cannot read early starts nothing.
        runtime: what the plans of the run are run with.
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
        """Whether steps were begun in this reply: they must be thrown away."""
        return bool(self._begun)

    def begin(self) -> None:
        """A new reply is asked for."""
        if self._reader is not None:
            self._forget()
        self._off = not self._on

    def see(self, chunk: Chunk) -> None:
        """A chunk of the reply has come.

        It is read when the loop is next idle: a stream that never waits for its next
        chunk gives no time to do anything early, and pays nothing.
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
        """The stream has ended: nothing more is early."""
        self._off = True
        if self._waiting:
            self._waiting = []
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    def next_id(self) -> str:
        """The id of the next call of a whole reply: the same that it had early."""
        return self._ids.popleft() if self._ids else self._new_id()

    def handed(self, plan: Plan) -> Plan:
        """The checked plan, with the values of those steps that were begun in it."""
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
        """Begin the call, leave it for later, or look at no more calls."""
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
        if not step.command.spec.effects.readonly or self._runtime.gate.may_ask(step):
            self._off = True  # what stands behind it waits for it
        elif self._may_begin(step) and not any(
            earlier.command is step.command and earlier.arguments == step.arguments
            for earlier in plan.steps[:-1]
        ):
            # written twice it may be answered with what the first one gave
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
        """The step with code that gives the value of the one that was begun."""
        command = step.command

        async def take(*positional: Any, **named: Any) -> Any:
            context = named.get(command.context_name)
            context = context if isinstance(context, Context) else None
            if self._may_take(begun) and begun.task is not None:
                begun.taken = True
                begun.context = context
                begun.pass_on()
                result = await begun.task
                if result is not None and not begun.spoiled:
                    if result.exception is not None:
                        raise result.exception
                    if result.error is not None and result.error.code == "timeout":
                        raise TimeLimitReached
                    if self._assets.known(step.call.id):
                        root = self._assets.native(step.call.id)
                        return root["content"]["response"]
            elif begun.task is not None and not begun.taken:
                begun.task.cancel()  # it is run in earnest now, and not twice
            return await self._runtime.engine.run(
                cast("Callable[..., Any]", command.run),
                positional,
                named,
                # its time limit must not stop the others
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
        """Whether its value is the one that running it now would give.

        Not where it was taken before (a second try), was made of the value of a step
        that was answered otherwise since, or still waits for its turn: what runs now
        may hold what it waits for.
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
        """End what was begun and not taken, and forget the reply."""
        self.stop()
        tasks = [begun.task for begun in self._begun.values() if begun.task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # looked at: nobody is to be told
        self._forget()

    def _forget(self) -> None:
        self._reader = self._apart = None
        self._calls, self._begun = [], {}


def _is_same(step: Step, begun: Step) -> bool:
    """Whether nothing but the words of the notes is other than it was."""
    return replace(step, notes=()) == replace(begun, notes=())


def _copied(runtime: Runtime) -> Runtime:
    """A runtime in which a run leaves no trace; nobody is asked anything there."""
    usage, gate, assets = runtime.usage, runtime.gate, runtime.assets.aside()
    origins = gate.origins
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
            origins=replace(
                origins,
                results=dict(origins.results),
                inputs=dict(origins.inputs),
                fields=dict(origins.fields),
                givers=dict(origins.givers),
                asked=dict(origins.asked),
                early=set(origins.early),
                files=dict(origins.files),
                words=list(origins.words),
                own_files=set(origins.own_files),
                written={},
                watched={},
            ),
            approvals=Approvals(yes_to=gate.approvals.yes_to),
            approve=None,
            settled=None,
        ),
        on_error="continue",
    )
