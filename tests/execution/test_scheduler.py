"""Plans as if in order: the overlapping run is like the one from top to bottom."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from neuraxis import Context, Options, Session, command
from neuraxis.assets.store import AssetStore
from neuraxis.engines.in_process import InProcess
from neuraxis.errors import StorageError
from neuraxis.events import CallFinished, CallStarted, Event
from neuraxis.execution import retry
from neuraxis.execution.budget import Budget
from neuraxis.execution.concurrent import run_in_order
from neuraxis.execution.for_each import run_one
from neuraxis.execution.runtime import Runtime
from neuraxis.execution.scheduler import run_plan
from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.planning.build import build
from neuraxis.planning.plan import Plan
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.registry import Registry
from neuraxis.policy.gate import Gate
from neuraxis.policy.rules import EVERYTHING, Policy, Rule
from neuraxis.settings import Settings


class World:
    """What the commands look at and change, and what they did, in order."""

    def __init__(self) -> None:
        self.state = 0
        self.effects: list[int] = []
        self.log: list[str] = []
        self.tries: dict[tuple[int, Any], int] = {}
        self.running = 0
        self.most = 0

    async def do(self, n: int, yields: int, fails: int, changes: bool, saw: Any) -> Any:
        self.log.append(f"+{n}")
        # the items of a loop may begin in any order: each counts its own tries
        refs = saw if isinstance(saw, list) else []
        item = next((one for one in refs if isinstance(one, int)), None)
        tries = self.tries[n, item] = self.tries.get((n, item), 0) + 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(yields):
                await asyncio.sleep(0)
            if changes:
                self.effects.append(n)
                self.state = self.state * 31 + n
            if tries <= fails:
                raise RuntimeError(f"step {n} failed, the world is {self.state}")
            return {"n": n, "state": self.state, "saw": saw}
        finally:
            self.running -= 1
            self.log.append(f"-{n}")


def registry(world: World, **options: Any) -> Registry:
    @command(effects="none", **options)
    async def none(n: int, yields: int = 0, fails: int = 0, saw: Any = None) -> Any:
        return {"n": n, "saw": await world.do(n, yields, fails, False, saw) and saw}

    @command(effects="read", **options)
    async def read(n: int, yields: int = 0, fails: int = 0, saw: Any = None) -> Any:
        return await world.do(n, yields, fails, False, saw)

    @command(effects="idempotent", **options)
    async def put(n: int, yields: int = 0, fails: int = 0, saw: Any = None) -> Any:
        return await world.do(n, yields, fails, True, saw)

    @command(effects="once", **options)
    async def once(n: int, yields: int = 0, fails: int = 0, saw: Any = None) -> Any:
        return await world.do(n, yields, fails, True, saw)

    return Registry([plugin_from([none, read, put, once], name="world")])


def runtime(emit: Callable[[Event], None] = lambda _: None, **options: Any) -> Runtime:
    generous = Budget(steps=5_000, steps_per_tool=5_000, repeats=5_000)
    assets = AssetStore()
    gate = Gate(
        policy=options.pop("policy", EVERYTHING),
        approve=options.pop("approve", None),
        assets=assets,
        emit=emit,
        workspace=Path(),
    )
    return Runtime(
        **{
            "assets": assets,
            "engine": InProcess(),
            "gate": gate,
            "emit": emit,
            "workspace": Path(),
            "settings": Settings(),
            "budget": generous,
            **options,
        }
    )


def planned(calls: Sequence[Call], known: Registry) -> Plan:
    plan = build(calls, known.find, known_assets=lambda _: False)
    assert plan.problems == ()
    return plan


def call(n: int, tool: str, **arguments: Any) -> Call:
    more = {key: arguments.pop(key) for key in ("for_each",) if key in arguments}
    return Call(
        id=f"a{n}", plugin=None, command=tool, arguments={"n": n, **arguments}, **more
    )


def told(results: Sequence[Result]) -> list[Any]:
    return [
        (
            result.call.id,
            result.status,
            result.value,
            None if result.error is None else result.error.message,
            result.warnings,
        )
        for result in results
    ]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["none", "read", "read", "read", "put", "once"]),
        st.integers(0, 5),  # how long it takes
        st.sampled_from([0, 0, 0, 0, 0, 1, 2, 9]),  # how often it fails
        st.lists(st.integers(0, 9), max_size=2),  # which earlier steps it uses
        st.sampled_from([None, None, None, 0, 1, 3, 10]),  # how many items it is for
    ),
    min_size=2,
    max_size=10,
)


def drawn_calls(drawn: Sequence[Any]) -> list[Call]:
    calls: list[Call] = []
    for n, (tool, yields, fails, uses, items) in enumerate(drawn):
        refs: list[Any] = [f"{{{{ results[{use % n}] }}}}" for use in uses if n]
        each: dict[str, Any] = {}
        if items is not None:
            each = {"for_each": list(range(items))}
            refs.append("{{ item }}")
        calls.append(call(n, tool, yields=yields, fails=fails, saw=refs, **each))
    return calls


@settings(max_examples=300, deadline=None)
@given(STEPS, st.sampled_from(["fail_fast", "continue", "retry"]))
def test_decision_6_overlapping_is_as_if_in_order(
    drawn: list[Any], on_error: Any
) -> None:
    """Same results, same statuses, same order of effects, on random plans."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "PAUSES", (0, 0))
        outcomes: list[Any] = []
        for run in ("in order", "overlapping"):
            world = World()
            plan = planned(drawn_calls(drawn), registry(world))
            ends: dict[str, str] = {}
            watched = runtime(_ends(ends), on_error=on_error)
            results = asyncio.run(_run(run, plan, watched))
            ids = [step.call.id for step in plan.steps]
            known = [watched.assets.known(own) for own in ids]
            outcomes.append((told(results), world.effects, world.state, known, ends))
        assert outcomes[0] == outcomes[1]


def _ends(ends: dict[str, str]) -> Callable[[Event], None]:
    def emit(event: Event) -> None:
        if isinstance(event, CallFinished) and not event.part_of:
            assert event.id not in ends
            ends[event.id] = event.status

    return emit


async def _run(how: str, plan: Plan, watched: Runtime) -> list[Result]:
    if how == "in order":
        watched.usage.planned = {step.call.id for step in plan.steps}
        results = await run_in_order(plan.steps, watched, run_one)
    else:
        results = await run_plan(plan, watched)
    (this,) = asyncio.all_tasks()
    assert this is asyncio.current_task()  # no task is left behind
    return results


_NONE = ("none", 0, 0, list[int](), None)


@settings(max_examples=300, deadline=None)
@given(
    STEPS,
    st.sampled_from(["fail_fast", "continue", "retry"]),
    st.none() | st.integers(1, 30),
)
@example(
    # a loop that a failed step stops, and at the same moment the end of the run
    [_NONE, ("none", 0, 1, [], None), ("none", 0, 0, [], 10), _NONE],
    "fail_fast",
    13,
)
@example(
    # one whose items were all done, and given up before the run was stopped
    [_NONE, ("none", 0, 9, [], None), ("none", 0, 0, [], 10), ("put", 0, 0, [], None)],
    "retry",
    16,
)
@example(
    # a loop whose item was done, behind a step that failed before the run was stopped
    [_NONE, ("none", 0, 9, [], None), *[_NONE] * 7, ("none", 0, 0, [], 1)],
    "retry",
    14,
)
def test_each_call_ends_once_and_truly(
    drawn: list[Any], on_error: Any, stop: int | None
) -> None:
    """Of each call and item: one start, one end, in this order, and the one that the
    result tells; also if the run is stopped in the middle."""
    starts: list[str] = []
    ends: dict[str, CallFinished] = {}

    def emit(event: Event) -> None:
        if isinstance(event, CallStarted):
            assert event.id not in ends
            starts.append(event.id)
        elif isinstance(event, CallFinished):
            assert event.id not in ends
            ends[event.id] = event
        if stop is not None and len(starts) + len(ends) == stop:
            running.cancel()

    async def run() -> list[Result]:
        nonlocal running
        plan = planned(drawn_calls(drawn), registry(World()))
        running = asyncio.ensure_future(run_plan(plan, watched))
        try:
            return await running
        except asyncio.CancelledError:
            return []

    running: asyncio.Future[list[Result]]
    watched = runtime(emit, on_error=on_error)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "PAUSES", (0, 0))
        results = asyncio.run(run())
    assert len(starts) == len(set(starts))
    assert set(starts) <= ends.keys()
    for result in results or watched.usage.ended.values():
        end = ends[result.call.id]
        assert end.status == result.status
        assert end.value == (None if result.stored else result.value)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.integers(1, 25))
def test_a_budget_that_ends_in_the_middle_is_as_if_in_order(
    drawn: list[Any], steps: int
) -> None:
    """Who gets the last call does not depend on who was first."""
    outcomes: list[Any] = []
    for run in ("in order", "overlapping"):
        world = World()
        plan = planned(drawn_calls(drawn), registry(world))
        budget = Budget(steps=steps, steps_per_tool=4)
        results = asyncio.run(_run(run, plan, runtime(budget=budget)))
        outcomes.append((told(results), world.effects))
    assert outcomes[0] == outcomes[1]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["read", "read", "none", "once"]), st.integers(0, 1)),
        min_size=3,
        max_size=10,
    )
)
def test_calls_that_repeat_are_as_if_in_order(drawn: list[Any]) -> None:
    """The guard against repetition does not depend on who was first."""
    outcomes: list[Any] = []
    for run in ("in order", "overlapping"):
        world = World()
        calls = [
            replace(call(n, tool, yields=n), id=f"a{place}")
            for place, (tool, n) in enumerate(drawn)
        ]
        plan = planned(calls, registry(world))
        results = asyncio.run(_run(run, plan, runtime(budget=Budget())))
        outcomes.append((told(results), world.effects, sorted(world.log)))
    assert outcomes[0] == outcomes[1]


def _log(calls: Sequence[Call], **options: Any) -> tuple[list[str], list[Result]]:
    world = World()
    plan = planned(calls, registry(world))
    results = asyncio.run(_run("overlapping", plan, runtime(**options)))
    return world.log, results


def test_reads_start_as_early_as_their_references_allow() -> None:
    """Nothing but its own references and effects before it holds a read back."""
    log, _ = _log(
        [
            call(0, "read", yields=9),
            call(1, "read", yields=1),
            call(2, "read", yields=1, saw="{{ results[1]['n'] }}"),
            call(3, "read", saw="{{ results[0]['n'] }}"),
            call(4, "once"),
            call(5, "read", yields=3),
            call(6, "read"),
        ]
    )
    assert log[:2] == ["+0", "+1"]
    assert log.index("+2") < log.index("-0") < log.index("+3")
    assert log[log.index("+4") :] == ["+4", "-4", "+5", "+6", "-6", "-5"]


def test_reads_of_one_result_overlap() -> None:
    """Also where each of them waits for a step with an effect."""
    uses = "{{ results[0]['n'] }}"
    log, _ = _log(
        [
            call(0, "once"),
            call(1, "read", yields=2, saw=uses),
            call(2, "read", yields=2, saw=uses),
        ]
    )
    assert log == ["+0", "-0", "+1", "+2", "-1", "-2"]


def test_a_read_that_ran_before_an_earlier_failure_is_told_as_skipped() -> None:
    """It had no effect: its result is given up, and no reference leads to it."""
    ends: list[tuple[str, str]] = []

    def emit(event: Event) -> None:
        if isinstance(event, CallFinished):
            ends.append((event.id, event.status))

    watched = runtime(emit)
    world = World()
    plan = planned(
        [call(0, "read", yields=5, fails=9), call(1, "read"), call(2, "once")],
        registry(world),
    )
    results = asyncio.run(_run("overlapping", plan, watched))
    assert [result.status for result in results] == ["failed", "skipped", "skipped"]
    assert world.effects == []
    assert not watched.assets.known("a1")
    assert ends == [
        ("a0", "failed"),
        ("a1", "skipped"),
        ("a2", "skipped"),
    ]


@pytest.mark.parametrize("yields", [0, 2, 100_000])
@pytest.mark.parametrize("items", [None, 3])
def test_a_read_that_is_given_up_is_as_if_it_never_ran(
    yields: int, items: int | None
) -> None:
    """Whether it had begun, or ended, before the failure: the run's budget, what was
    seen of it and where its answer came from are those of a run in order."""

    def outcome(how: str) -> Any:
        whole = runtime()
        known = registry(World())
        each: Any = {} if items is None else {"for_each": list(range(items))}
        plan = planned(
            [
                call(1, "look", yields=0),
                call(0, "read", yields=5, fails=9),
                call(2, "look", yields=yields, **each),
                call(3, "look", yields=0),
            ],
            Registry([*known.plugins, plugin_from([look], name="web")]),
        )
        asyncio.run(_run(how, plan, whole))
        usage, origins = whole.usage, whole.gate.origins
        seen = {key: [one.call.id for one in it] for key, it in usage.seen.items()}
        own = {key: count for key, count in usage.by_tool.items() if count}
        known_of = [*origins.results, *origins.vouched]
        return usage.steps, own, seen, sorted(known_of)

    @command(effects={"kind": "read", "open_world": True})
    async def look(n: int, yields: int) -> int:
        for _ in range(yields):
            await asyncio.sleep(0)
        return 0

    assert outcome("overlapping") == outcome("in order")
    assert outcome("in order")[0] == 2


def test_a_call_of_an_earlier_plan_counts_as_the_same() -> None:
    """Two earlier: both that are asked for at once now are answered with the last."""
    ran: list[int] = []

    @command(effects="read")
    async def look() -> int:
        number = len(ran)
        ran.append(number)
        await asyncio.sleep(0)
        return number

    whole = runtime(budget=Budget(repeats=2))
    known = Registry([plugin_from([look], name="web")])

    async def go() -> list[Result]:
        def calls(*ids: str) -> Plan:
            return planned(
                [
                    Call(id=own, plugin=None, command="look", arguments={})
                    for own in ids
                ],
                known,
            )

        return [
            *await run_plan(calls("a1", "a2"), whole),
            *await run_plan(calls("a3", "a4"), whole),
        ]

    results = asyncio.run(go())
    assert ran == [0, 1]
    assert [result.value for result in results] == [0, 1, 1, 1]
    assert all(result.warnings for result in results[2:])


def test_a_failure_stops_the_later_reads_that_still_run() -> None:
    """What would not have run is not waited for."""
    world = World()
    plan = planned(
        [call(0, "read", fails=9), call(1, "read", yields=100_000)], registry(world)
    )
    results = asyncio.run(_run("overlapping", plan, runtime()))
    assert [result.status for result in results] == ["failed", "skipped"]
    assert world.running == 0


def test_N8_continue_runs_what_does_not_depend_on_the_failure() -> None:
    """Also effects, in their order; what depends on it is skipped, and says on what."""
    _, results = _log(
        [
            call(0, "read", fails=9),
            call(1, "once", saw="{{ results[0]['n'] }}"),
            call(2, "once"),
            call(3, "read", saw="{{ results[1]['n'] }}"),
            call(4, "read", saw="{{ results[2]['n'] }}"),
        ],
        on_error="continue",
    )
    statuses = [result.status for result in results]
    assert statuses == ["failed", "skipped", "done", "skipped", "done"]
    assert results[3].error is not None
    assert "because read (a0) failed" in results[3].error.message


@pytest.mark.parametrize(
    ("tool", "fails", "tries", "status"),
    [
        ("read", 2, 3, "done"),
        ("put", 2, 3, "done"),
        ("none", 3, 3, "failed"),
        ("once", 1, 1, "failed"),
    ],
)
def test_N8_retry_only_what_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch, tool: str, fails: int, tries: int, status: str
) -> None:
    """Two more tries, never for `once`; then the rest is skipped."""
    monkeypatch.setattr(retry, "PAUSES", (0, 0))
    world = World()
    plan = planned([call(0, tool, fails=fails), call(1, "once")], registry(world))
    results = asyncio.run(_run("overlapping", plan, runtime(on_error="retry")))
    assert world.tries[0, None] == tries
    assert results[0].status == status
    assert results[1].status == ("done" if status == "done" else "skipped")


def test_N8_retry_not_what_the_call_itself_has_wrong() -> None:
    """A reference that leads nowhere leads nowhere again."""
    _, results = _log(
        [call(0, "read"), call(1, "read", saw="{{ results[0]['nope'] }}")],
        on_error="retry",
    )
    assert results[1].error is not None
    assert results[1].error.code == "reference_not_found"


def test_concurrency_of_a_command_is_held() -> None:
    """A command that says so never runs more often at once; others go on."""
    for limit, most in ((1, 1), (3, 3), (None, 10)):
        world = World()
        known = registry(world, concurrency=limit)
        plan = planned([call(n, "read", yields=4) for n in range(10)], known)
        results = asyncio.run(_run("overlapping", plan, runtime()))
        assert {result.status for result in results} == {"done"}
        assert world.most == most


@pytest.mark.parametrize("ends", [True, False])
def test_a_thread_that_is_late_keeps_its_place(ends: bool) -> None:
    """It cannot be killed: the next call waits for its end, but not for ever."""
    running: list[int] = []
    most: list[int] = []
    go_on = threading.Event()

    @command(effects="read", concurrency=1, time_limit=0.1)
    def device(n: int) -> int:
        running.append(n)
        most.append(len(running))
        if n == 0:
            go_on.wait(20)
        running.remove(n)
        return n

    known = Registry([plugin_from([device], name="lab")])
    plan = planned([call(n, "device") for n in range(2)], known)
    if ends:
        timer = threading.Timer(0.15, go_on.set)
        timer.start()
    results = asyncio.run(_run("overlapping", plan, runtime(on_error="continue")))
    go_on.set()
    assert most == ([1, 1] if ends else [1])
    told = [result.error and result.error.message for result in results]
    assert told == [
        "device did not end within 0.1 seconds. It was asked to stop and is still "
        "running; what it returns will be discarded.",
        None
        if ends
        else "device was not run: an earlier call of it was stopped and still runs. "
        "Go on without it, or try again later.",
    ]


def test_a_call_waits_for_its_turn_longer_than_it_may_take() -> None:
    """Its own time begins when it runs."""

    @command(effects="read", concurrency=1, time_limit=0.1)
    def device(n: int) -> int:
        time.sleep(0.06)
        return n

    known = Registry([plugin_from([device], name="lab")])
    plan = planned([call(n, "device") for n in range(4)], known)
    results = asyncio.run(_run("overlapping", plan, runtime()))
    assert [result.status for result in results] == ["done"] * 4


async def test_cancelling_a_plan_leaves_nothing_behind() -> None:
    """Every running command is told, every task has ended, and it is recorded."""
    begun = [threading.Event() for _ in range(3)]
    heard = [threading.Event() for _ in range(3)]
    ends: dict[str, str] = {}

    @command(effects="read")
    def waits(n: int, context: Context) -> int:
        """Waits until it is told to stop."""
        begun[n].set()
        if context.cancelled.wait(20):
            heard[n].set()
        return n

    known = Registry([plugin_from(waits)])
    plan = planned([call(n, "waits") for n in range(3)], known)
    before = asyncio.all_tasks()
    task = asyncio.create_task(run_plan(plan, runtime(_ends(ends))))
    for event in begun:
        assert await asyncio.to_thread(event.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before
    assert ends == {"a0": "failed", "a1": "failed", "a2": "failed"}
    for event in heard:
        assert await asyncio.to_thread(event.wait, 5)


async def test_a_broken_journal_stops_the_whole_plan() -> None:
    """The error itself comes out, not a group of errors; nothing goes on."""

    def emit(event: Event) -> None:
        if isinstance(event, CallStarted) and event.id == "a2":
            raise StorageError("the disk is full")

    world = World()
    plan = planned([call(n, "read", yields=50) for n in range(4)], registry(world))
    before = asyncio.all_tasks()
    with pytest.raises(StorageError, match="disk is full"):
        await run_plan(plan, runtime(emit))
    assert asyncio.all_tasks() == before
    assert world.running == 0


@pytest.mark.parametrize("yes", [True, False])
async def test_a_person_is_asked_once_for_a_plan(yes: bool) -> None:
    """Steps that need a yes do not overlap: one question for all of them."""
    asked: list[str] = []

    async def approve(event: Any) -> bool:
        asked.append(event.id)
        await asyncio.sleep(0)
        return yes

    rules = [Rule(verdict="ask", target="world.read")]
    policy = Policy(rules=rules, default="allow")
    world = World()
    plan = planned([call(n, "read") for n in range(4)], registry(world))
    results = await run_plan(plan, runtime(policy=policy, approve=approve))
    assert asked == ["a0"]
    statuses = [result.status for result in results]
    assert statuses == (["done"] * 4 if yes else ["failed", *["skipped"] * 3])


async def test_a_person_is_asked_only_about_what_will_run() -> None:
    """The items of a loop are asked about together, where its turn comes."""
    asked: list[Any] = []

    async def approve(event: Any) -> bool:
        asked.append(event)
        return not asked[1:]

    rules = [Rule(verdict="ask", target="world.read")]
    policy = Policy(rules=rules, default="allow")
    world = World()
    looped = replace(call(1, "read", saw="{{ item }}"), for_each=["x", "y", "z"])
    steps = [call(0, "once"), looped, call(2, "once", fails=1), call(3, "read")]
    plan = planned(steps, registry(world))
    results = await run_plan(plan, runtime(policy=policy, approve=approve))
    assert ["a1.0"] == [event.id for event in asked]
    assert "4 calls of this plan need approval" == asked[0].reason
    assert 4 == len(asked[0].plan)
    statuses = [result.status for result in results]
    assert statuses == ["done", "done", "failed", "skipped"]


def test_the_time_limit_of_one_command_does_not_stop_the_others() -> None:
    """Only the command that was too slow is told to stop."""
    heard: list[bool] = []

    @command(effects="read", time_limit=0.05)
    def slow() -> str:
        """Too slow."""
        time.sleep(0.3)
        return "late"

    @command(effects="read")
    def looks(context: Context) -> bool:
        """Tells whether it was told to stop."""
        time.sleep(0.15)
        heard.append(context.cancelled.is_set())
        return True

    known = Registry([plugin_from([slow, looks], name="p")])
    calls = [
        Call(id=f"a{n}", plugin=None, command=name)
        for n, name in enumerate(("slow", "looks"))
    ]
    watched = runtime(on_error="continue")
    results = asyncio.run(run_plan(planned(calls, known), watched))
    assert [result.status for result in results] == ["failed", "done"]
    assert heard == [False]
    assert not watched.cancelled.stopped


async def test_a_command_that_cancels_itself_is_a_failed_command() -> None:
    """Only who cancels the run cancels the run."""

    @command(effects="read")
    async def odd() -> None:
        """Raises what asyncio raises for a cancelled task."""
        raise asyncio.CancelledError

    calls = [Call(id=f"a{n}", plugin=None, command="odd") for n in range(2)]
    plan = planned(calls, Registry([plugin_from(odd)]))
    results = await run_plan(plan, runtime(on_error="continue"))
    assert [result.status for result in results] == ["failed", "failed"]


def test_a_thousand_steps_cost_little() -> None:
    """The overhead of a large plan is small, and grows with its length only."""
    took = min(_thousand() for _ in range(3))
    assert took < 0.5  # 0.06 s on an idle machine; a loaded one is no failure


def _thousand() -> float:
    @command(effects="read", blocking=False)
    def quick(n: int, saw: Any = None) -> int:
        """Quick."""
        return n

    @command(effects="once", blocking=False)
    def effect(n: int) -> int:
        """An effect."""
        return n

    known = Registry([plugin_from([quick, effect], name="p")])
    calls = [call(n, "effect" if n % 100 == 99 else "quick") for n in range(1_000)]
    plan = planned(calls, known)
    watched = runtime()
    started = time.thread_time()
    results = asyncio.run(run_plan(plan, watched))
    took = time.thread_time() - started
    assert {result.status for result in results} == {"done"}
    return took


def test_on_error_of_a_session() -> None:
    """The session says what a failure does to a reply's plan."""
    ran: list[str] = []

    @command(effects="once")
    def breaks() -> str:
        """Fails."""
        raise RuntimeError("no")

    @command(effects="once")
    def works() -> str:
        """Works."""
        ran.append("works")
        return "yes"

    session = Session(
        model=ScriptedModel(['[{"tool": "breaks"}, {"tool": "works"}]', "ok"]),
        plugins=[breaks, works],
        options=Options(on_error="continue"),
    )
    answer = session.run_sync("go")
    assert [result.status for result in answer.calls] == ["failed", "done"]
    assert ran == ["works"]


def test_the_last_event_of_a_call_counts_when_a_session_is_resumed() -> None:
    """A step that ran early and was skipped is not there to be referred to."""
    from neuraxis.dialects import find_dialect
    from neuraxis.session.past.resume import restore_history

    def end(status: Any) -> CallFinished:
        return CallFinished(
            id="a1", plugin="p", command="c", tool="c", status=status, value=1
        )

    dialect = find_dialect("intents")
    assert restore_history([end("done")], dialect).values == (("a1", "c", 1),)
    assert restore_history([end("done"), end("skipped")], dialect).values == ()
    again = replace(end("done"), value=2)
    assert restore_history([end("failed"), again], dialect).values == (("a1", "c", 2),)
