"""One step: what a command does in odd ways ends in a result all the same."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from neuraxis import Answer, Budget, CommandError, Context, Options, Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING


def _block(*intents: dict[str, Any]) -> str:
    return json.dumps(list(intents))


def _answer(plugins: list[Any], *replies: str, **options: Any) -> Answer:
    model = ScriptedModel([*replies, "done"])
    session = Session(model=model, plugins=plugins, policy=EVERYTHING, **options)
    return session.run_sync("go")


class Panic(BaseException):
    """As Rust code under Python (polars, pydantic) raises one."""


@pytest.mark.parametrize("raised", [Panic("index out of bounds"), GeneratorExit("g")])
def test_what_is_no_exception_of_pythons_fails_the_call_only(
    raised: BaseException,
) -> None:
    """In a thread; the run goes on."""

    @command(effects="read")
    def breaks() -> str:
        """Breaks."""
        raise raised

    answer = _answer([breaks], _block({"tool": "breaks"}))
    assert answer.outcome == "answered"
    error = answer.calls[0].error
    assert error is not None
    assert type(raised).__name__ in error.message


def test_an_async_command_that_raises_generator_exit_fails_the_call_only() -> None:
    """It crashed `session.run`; a `def` fails, with or without a thread."""

    @command(effects="read")
    async def at_once() -> str:
        """Breaks."""
        raise GeneratorExit

    @command(effects="read")
    async def later() -> str:
        """Breaks."""
        await asyncio.sleep(0.01)
        raise GeneratorExit

    @command(effects="read", blocking=False)
    def on_the_loop() -> str:
        """Breaks."""
        raise GeneratorExit

    @command(effects="read")
    def in_a_thread() -> str:
        """Breaks."""
        raise GeneratorExit

    plugins = [at_once, later, on_the_loop, in_a_thread]
    calls = [{"tool": each.__name__} for each in plugins]
    answer = _answer(plugins, _block(*calls), options=Options(on_error="continue"))
    assert answer.outcome == "answered"
    told = {call.error.message.split(":", 1)[1] for call in answer.calls if call.error}
    assert len(answer.calls) == len(plugins)
    assert len(told) == 1


def test_a_panic_on_the_loop_fails_the_call_only() -> None:
    """Of a command that needs no thread, among others that overlap."""

    @command(effects="read", blocking=False)
    def breaks() -> str:
        """Breaks."""
        raise Panic("no")

    @command(effects="read")
    async def waits() -> str:
        """Waits."""
        await asyncio.sleep(0)
        raise BaseExceptionGroup("several", [Panic("no")])

    asked = _block({"tool": "breaks"}, {"tool": "waits"})
    answer = _answer([breaks, waits], asked, options=Options(on_error="continue"))
    assert [call.status for call in answer.calls] == ["failed", "failed"]
    assert answer.outcome == "answered"


def test_a_generators_body_has_its_thread_and_its_time_limit() -> None:
    """It holds up nobody else while it runs."""

    @command(effects="read", time_limit=0.2)
    def slowly() -> Iterator[int]:
        """Gives numbers, one by one."""
        for number in range(20):
            time.sleep(0.05)
            yield number

    @command(effects="read")
    async def looks() -> float:
        """The longest time that the loop did not turn."""
        worst, until = 0.0, time.perf_counter() + 0.3
        while (now := time.perf_counter()) < until:
            await asyncio.sleep(0.01)
            worst = max(worst, time.perf_counter() - now)
        return worst

    asked = _block({"tool": "looks"}, {"tool": "slowly"})
    looked, gave = _answer([slowly, looks], asked).calls
    assert looked.value < 0.5
    assert gave.error is not None
    assert gave.error.code == "timeout"


class World:
    """Something that commands look at and change."""

    def __init__(self) -> None:
        self.state = 0

    @command(effects="read")
    def look(self) -> int:
        """How it is."""
        return self.state

    @command(effects="once")
    def change(self) -> int:
        """Changes it."""
        self.state += 1
        return -1

    @command(effects="once")
    def half(self) -> int:
        """Changes it, and fails."""
        self.state += 1
        raise RuntimeError("half done")


def test_after_an_effect_that_failed_a_look_is_a_new_one() -> None:
    """What was seen before it is not told as what is now."""
    look, half = {"tool": "look"}, {"tool": "half"}
    replies = [_block(look), _block(look), _block(half), _block(look)]
    answer = _answer([World()], *replies)
    assert [call.value for call in answer.calls] == [0, 0, None, 1]
    assert answer.calls[-1].warnings == ()


def test_after_an_effect_that_was_there_before_a_look_is_a_new_one() -> None:
    """An equal effect changes as much as the first."""
    look, change = {"tool": "look"}, {"tool": "change"}
    answer = _answer([World()], _block(*[look, look, change] * 3, look))
    assert [call.value for call in answer.calls] == [0, 0, -1, 1, 1, -1, 2, 2, -1, 3]
    assert [bool(call.warnings) for call in answer.calls[-2:]] == [False, False]


def test_a_run_whose_commands_never_wait_ends_in_its_seconds() -> None:
    """No timer is heard there; the next turn sees the clock."""

    @command(effects="read", blocking=False)
    def works(n: int) -> int:
        """Keeps the loop busy."""
        time.sleep(0.05)
        return n

    replies = [_block({"tool": "works", "n": n}) for n in range(15)]
    answer = _answer([works], *replies, budget=Budget(seconds=0.2))
    assert answer.outcome == "budget"
    assert len(answer.calls) < 10


def test_a_failed_task_group_leaves_no_trace_in_the_run() -> None:
    """The run's own time limit is still told as one."""

    @command(effects="read")
    async def group() -> int:
        """Fails in a task of its own."""

        async def fails() -> None:
            await asyncio.sleep(0)
            raise ValueError("in a task")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fails())
        return 1

    @command(effects="read")
    async def waits() -> int:
        """Waits."""
        await asyncio.sleep(30)
        return 1

    replies = [_block({"tool": "group"}), _block({"tool": "waits"})]
    answer = _answer([group, waits], *replies, budget=Budget(seconds=0.3))
    assert answer.outcome == "budget"


@pytest.mark.parametrize("effects", ["once", "read"])
def test_what_was_done_before_the_time_was_up_is_in_the_answer(effects: Any) -> None:
    """Also of the plan in whose middle the run ended, with the call that it cut."""

    @command(effects=effects)
    async def gives(n: int) -> int:
        """Gives a number."""
        return n

    @command(effects=effects)
    async def waits() -> int:
        """Waits."""
        await asyncio.sleep(30)
        return 1

    numbers = [{"tool": "gives", "n": n} for n in (1, 2)]
    asked = _block(*numbers, {"tool": "waits"})
    answer = _answer([gives, waits], asked, budget=Budget(seconds=0.3))
    assert answer.outcome == "budget"
    assert [call.value for call in answer.calls] == [1, 2, None]
    cut = answer.calls[2].error
    assert cut is not None
    assert cut.code == "cancelled"


def test_C12_an_answer_too_large_to_be_said_tells_its_failure_too() -> None:
    """It is kept as an asset, the call has failed and the next one is not run."""
    written: list[str] = []

    @command(effects="read", failure_field="success")
    def runs() -> dict[str, Any]:
        """Fails, and says much of it."""
        return {"success": False, "stderr": "first " + "x" * 20_000 + " last"}

    @command(effects="read")
    def writes(text: str) -> None:
        """Write."""
        written.append(text)

    calls = _block(
        {"tool": "runs"}, {"tool": "writes", "text": "{{ previous_result.stderr }}"}
    )
    first, second = _answer([runs, writes], calls).calls
    assert (first.status, first.stored, second.status) == ("failed", True, "skipped")
    assert first.error is not None
    assert "first" in first.error.message
    assert "last" in first.error.message
    assert len(first.error.message) < 5_000
    assert written == []


@pytest.mark.parametrize("effects", ["read", "once"])
def test_what_was_stopped_may_have_had_its_effect(effects: Any) -> None:
    """A thread goes on, and who acted first and waited then has acted."""
    acted: list[str] = []

    @command(effects=effects, time_limit=0.02)
    async def acts() -> None:
        """Acts and waits."""
        acted.append("x")
        await asyncio.sleep(20)

    error = _answer([acts], _block({"tool": "acts"})).calls[0].error
    assert error is not None
    assert ("may have done its work" in error.message) is (effects == "once")
    assert acted == ["x"]


@pytest.mark.parametrize("items", [None, [1, 2]])
async def test_what_was_cancelled_may_have_had_its_effect(items: Any) -> None:
    """The next request is told so."""

    @command(effects="once")
    async def acts(item: int = 0) -> None:
        """Acts and waits."""
        await asyncio.sleep(20)

    call = {"tool": "acts"} if items is None else {
        "tool": "acts", "item": "{{ item }}", "$for_each": items,
    }  # fmt: skip
    model = ScriptedModel([_block(call), "I see"])
    session = Session(model=model, plugins=[acts], policy=EVERYTHING)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.run("go"), 0.05)
    await session.run("what happened?")
    told = "".join(str(message.content) for message in session.history)
    assert "by the user or by a limit. It may have done its work all the same" in told


def test_what_a_command_warns_of_is_told_beside_its_answer() -> None:
    """To the model and to the program; of a loop each warning once."""

    @command(effects="read")
    def some(of: str, context: Context) -> list[str]:
        """Give some of them."""
        context.warn("Not all are there.")
        return [of]

    calls = (
        _block({"tool": "some", "of": "tea"}),
        _block({"tool": "some", "of": "{{ item }}", "$for_each": ["a", "b"]}),
    )
    model = ScriptedModel([*calls, "done"])
    session = Session(model=model, plugins=[some], policy=EVERYTHING)
    answer = session.run_sync("go")
    assert [call.warnings for call in answer.calls] == [("Not all are there.",)] * 2
    seen = "".join(str(message.content) for message in session.history)
    assert seen.count("Not all are there.") == 2


@pytest.mark.parametrize("on_error", ["fail_fast", "retry"])
def test_a_bug_in_a_command_is_logged_once(
    caplog: pytest.LogCaptureFixture, on_error: Any
) -> None:
    """With its traceback; a failure that the command reports is none."""

    @command(effects="read")
    def breaks() -> None:
        """Break."""
        raise KeyError("Ada")

    @command(effects="read")
    def declines() -> None:
        """Decline."""
        raise CommandError("not today")

    options = Options(on_error=on_error)
    _answer([breaks], _block({"tool": "breaks"}), options=options)
    _answer([declines], _block({"tool": "declines"}), options=options)
    (record,) = [one for one in caplog.records if one.name == "neuraxis.commands"]
    assert (record.name, record.levelname) == ("neuraxis.commands", "WARNING")
    told = record.getMessage()
    assert told.startswith("breaks.breaks (")
    assert 'raise KeyError("Ada")' in told


def test_a_bug_in_a_loop_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """And not for each of its items."""

    @command(effects="read")
    def breaks(number: int) -> int:
        """Break."""
        return {}[number]

    each = {"tool": "breaks", "$for_each": [1, 2, 3], "number": "{{ item }}"}
    _answer([breaks], _block(each))
    # a command that an earlier test gave up may end meanwhile, and is logged, too
    assert caplog.text.count("breaks.breaks (a1) raised:") == 1
