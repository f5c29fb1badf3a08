"""Decision 7: what only looks starts while the model writes, and nothing else does."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neuraxis import Answer, Budget, Context, Options, Policy, Rule, Session, command
from neuraxis.dialects.intents.dialect import Intents
from neuraxis.dialects.native.dialect import Native
from neuraxis.dialects.streaming import TextReader
from neuraxis.errors import ModelBroken
from neuraxis.events import (
    CallFinished,
    CallProgress,
    CallStarted,
    Event,
    ModelFinished,
    PlanChecked,
)
from neuraxis.messages import Call, Chunk, FinishReason, Prompt, Reply, ToolCallDelta
from neuraxis.policy.rules import EVERYTHING
from neuraxis.settings import Settings

START, END = "<!-- RESPONSE_START -->", "<!-- RESPONSE_END -->"
Pieces = Sequence[str | Chunk]


class Typing:
    """A model that waits between the pieces of a reply; `log` says when it ended."""

    name = "typing"

    def __init__(
        self,
        *replies: Pieces,
        log: list[str] | None = None,
        waits: int = 12,
        finish: FinishReason = "stop",
        pause: float = 0,
    ) -> None:
        self.pause = pause
        self.replies = list(replies)
        self.log = [] if log is None else log
        self.waits = waits
        self.finish: FinishReason = finish
        self.prompts: list[Prompt] = []

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        pieces = self.replies[len(self.prompts)]
        self.prompts.append(prompt)
        for piece in pieces:
            yield Chunk(text=piece) if isinstance(piece, str) else piece
            for _ in range(self.waits):
                await asyncio.sleep(self.pause)
        self.log.append("end")
        finish = self.finish if len(self.prompts) == 1 else "stop"
        yield Chunk(finish_reason=finish)

    async def close(self) -> None:
        pass


class World:
    """Commands that say when they run."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.objects: list[Any] = []

    @property
    def plugins(self) -> list[Any]:
        log, objects = self.log, self.objects

        @command(effects="read")
        async def look(word: str = "", fails: bool = False) -> dict[str, str]:
            log.append(f"look {word}")
            await asyncio.sleep(0)
            if fails:
                raise RuntimeError(f"no {word}")
            log.append(f"seen {word}")
            return {"saw": word}

        @command(effects="once")
        async def act(word: str = "", fails: bool = False) -> dict[str, str]:
            log.append(f"act {word}")
            if fails:
                raise RuntimeError(f"no {word}")
            return {"did": word}

        @command(effects="none")
        async def make() -> object:
            objects.append(object())
            log.append("make")
            return objects[-1]

        @command(effects="none")
        async def use(thing: object) -> bool:
            log.append("use")
            return thing is objects[-1]

        @command(effects="read")
        async def hang(word: str = "") -> str:
            log.append("hang")
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                log.append("hang cancelled")
                raise
            return word

        return [look, act, make, use, hang]


def _pieces(*intents: dict[str, Any], size: int = 0) -> list[str]:
    """The block of these intents: a piece each, or pieces of `size` characters."""
    if not size:
        listed = [json.dumps(item) for item in intents]
        cut = [f"{item}," for item in listed[:-1]] + listed[-1:]
        return [f"{START}\n", "[", *cut, "]\n", END]
    text = f"{START}\n{json.dumps(list(intents))}\n{END}"
    return [text[at : at + size] for at in range(0, len(text), size)]


def _run(
    world: World, model: Any, *, plugins: list[Any] | None = None, **options: Any
) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    with Session(
        model=model,
        plugins=[*world.plugins, *(plugins or [])],
        settings=Settings(),
        **{"policy": EVERYTHING, **options},
    ) as session:
        answer = session.run_sync("go", events.append)
    return answer, events


def _told(events: list[Event]) -> list[Any]:
    """What the journal keeps of calls, without times."""
    told: list[Any] = []
    for event in events:
        if isinstance(event, CallStarted):
            told.append((event.id, event.tool, "started", event.origins))
        elif isinstance(event, CallFinished):
            told.append((event.id, event.tool, event.status, event.value, event.error))
    return told


def test_a_read_runs_while_the_model_writes_and_only_once() -> None:
    """It is done when the text ends; its events come behind the checked plan."""
    world = World()
    block = _pieces({"tool": "look", "word": "a"}, {"tool": "look", "word": "b"})
    answer, events = _run(world, Typing(block, ["fine"], log=world.log))
    assert world.log[:5] == ["look a", "seen a", "look b", "seen b", "end"]
    assert [result.value for result in answer.calls] == [{"saw": "a"}, {"saw": "b"}]
    kinds = [type(event) for event in events]
    assert kinds.index(ModelFinished) < kinds.index(PlanChecked)
    assert kinds.index(PlanChecked) < kinds.index(CallStarted)
    (checked,) = [event for event in events if isinstance(event, PlanChecked)]
    assert [note.partition(" ")[0] for note in checked.notes] == ["look:", "look:"]
    assert [result.call.id for result in answer.calls] == ["a1", "a2"]


@pytest.mark.parametrize("dialect", ["envelope_v1", "envelope_v2", "native"])
def test_every_dialect_starts_early(dialect: str) -> None:
    """The same in messages and in native tool calls."""
    world = World()
    writer = Session(
        model=Typing(), plugins=world.plugins, dialect=dialect, settings=Settings()
    )
    writer.prompt()
    names = {spec.commands[0].name: spec.name for spec in writer.registry.specs}
    calls = [
        Call(
            id="",
            plugin=None if dialect == "native" else names["look"],
            command="look",
            arguments={"word": word},
        )
        for word in "ab"
    ]
    pieces: list[str | Chunk] = []
    if isinstance(writer.dialect, Native):
        for index, native in enumerate(writer.dialect.native_calls(calls)):
            pieces += [
                Chunk(
                    tool_calls=(
                        ToolCallDelta(
                            index=index, id=native.id, name=native.name, arguments=part
                        ),
                    )
                )
                for part in (native.arguments[:5], native.arguments[5:])
            ]
        pieces.append(" ")
    else:
        text = writer.dialect.write(calls)
        pieces += [text[at : at + 4] for at in range(0, len(text), 4)]
    model = Typing(pieces, ["fine"], log=world.log)
    answer, _ = _run(world, model, dialect=dialect)
    assert world.log[:5] == ["look a", "seen a", "look b", "seen b", "end"]
    assert [result.value for result in answer.calls] == [{"saw": "a"}, {"saw": "b"}]


def test_a_chain_of_reads_starts_early_with_the_object_itself() -> None:
    """A native object goes from one early step to the next."""
    world = World()
    block = _pieces({"tool": "make"}, {"tool": "use", "thing": "{{ previous_result }}"})
    # an object is stored in a thread
    model = Typing(block, ["fine"], log=world.log, pause=0.005)
    answer, _ = _run(world, model)
    assert world.log == ["make", "use", "end", "end"]
    assert answer.calls[1].value is True
    assert [asset.id for asset in answer.assets] == ["a1"]


def test_an_effect_and_what_stands_behind_it_wait() -> None:
    """The read before it is early, the one behind it is not."""
    world = World()
    block = _pieces(
        {"tool": "look", "word": "a"},
        {"tool": "act", "word": "b"},
        {"tool": "look", "word": "c"},
    )
    _run(world, Typing(block, ["fine"], log=world.log))
    assert world.log[:5] == ["look a", "seen a", "end", "act b", "look c"]


def test_D10_of_a_truncated_reply_nothing_counts() -> None:
    """The read was begun; it is thrown away and nobody is told of it."""
    world = World()
    block = _pieces({"tool": "look", "word": "a"}, {"tool": "look", "word": "b"})[:4]
    again = _pieces({"tool": "look", "word": "c"})
    model = Typing(block, again, ["fine"], log=world.log, finish="length")
    answer, events = _run(world, model)
    assert world.log[0] == "look a"
    assert [result.call.id for result in answer.calls] == ["a1"]
    assert answer.calls[0].value == {"saw": "c"}
    assert {told[0] for told in _told(events)} == {"a1"}
    assert not any("'a'" in repr(event) for event in events if _is_call(event))
    assert "saw" not in model.prompts[1].messages[-1].content


def _is_call(event: Event) -> bool:
    return isinstance(event, CallStarted | CallFinished | PlanChecked)


@pytest.mark.parametrize(
    "ending",
    [
        ', {"tool": "look", "word": 5, "wrod": 1}]',
        ', {"tool": "nobody"}]',
        ', {"tool": "look", "word": "x", "word": "y"}]',
        ', {"word": "x"}]',
        ', {"tool": "look", "word": "{{ results[7] }}"}]',
        ', "look"]',
        "] ]]] {",
    ],
)
def test_a_mistake_at_the_end_undoes_the_beginning(ending: str) -> None:
    """All is told to the model, and nothing of the reply has run."""
    world = World()
    block = [START, '[{"tool": "look", "word": "a"}', ending, END]
    model = Typing(block, ["sorry"], log=world.log)
    answer, events = _run(world, model)
    assert world.log[:2] == ["look a", "seen a"]
    wrong = [event for event in events if isinstance(event, PlanChecked)]
    if wrong[0].problems:
        assert answer.calls == ()
        assert _told(events) == []
    else:  # stray brackets are mended: the reply was right after all
        assert ending == "] ]]] {"
        assert [result.value for result in answer.calls] == [{"saw": "a"}]


def test_a_thought_that_closes_behind_the_block_undoes_it() -> None:
    """`</think>` makes all before it a thought: no call, and no mistake either."""
    world = World()
    block = [*_pieces({"tool": "look", "word": "a"}), "</think>", "Nothing to do."]
    answer, events = _run(world, Typing(block, log=world.log))
    assert answer.text == "Nothing to do."
    assert answer.calls == ()
    assert _told(events) == []


def test_what_was_thrown_away_is_not_kept() -> None:
    """Its value is no asset, its origin is not known, its budget is not spent."""
    world = World()
    block = [*_pieces({"tool": "look", "word": "a"}, {"tool": "make"}), "</think>No."]
    with Session(
        model=Typing(block, log=world.log),
        plugins=world.plugins,
        settings=Settings(),
        policy=EVERYTHING,
    ) as session:
        session.run_sync("go")
        assert world.log == ["look a", "seen a", "make", "end"]
        assert not session.assets.known("a1")
        assert not session.assets.known("a2")
        assert not session.origins.results


def test_a_read_that_still_runs_is_ended_with_a_bad_reply() -> None:
    """No task is left, and the command was told to stop."""
    world = World()
    block = [START, '[{"tool": "hang"}', ', {"tool": "nobody"}]', END]
    _run(world, Typing(block, ["sorry"], log=world.log))
    assert world.log == ["hang", "end", "hang cancelled", "end"]


async def test_cancelling_while_the_model_writes_leaves_nothing() -> None:
    """The run's end is the end of what was begun early."""
    world = World()
    block = [START, '[{"tool": "hang"}', *([" "] * 10_000)]
    session = Session(
        model=Typing(block, log=world.log), plugins=world.plugins, policy=EVERYTHING
    )
    run = asyncio.ensure_future(session.drive("go"))
    for _ in range(1000):
        await asyncio.sleep(0)
        if world.log:
            break
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert world.log == ["hang", "hang cancelled"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    session.close()


def test_a_stream_in_one_piece_or_without_waiting_starts_nothing() -> None:
    """There is no time to win, so nothing is paid: no task, no second reading."""
    for pieces, waits in (
        (["".join(_pieces({"tool": "look", "word": "a"}))], 12),
        (_pieces({"tool": "look", "word": "a"}), 0),
    ):
        world = World()
        _, events = _run(world, Typing(pieces, ["fine"], log=world.log, waits=waits))
        assert world.log == ["end", "look a", "seen a", "end"]
        (checked,) = [event for event in events if isinstance(event, PlanChecked)]
        assert checked.notes == ()


def test_it_can_be_switched_off() -> None:
    """`early_start=False`, and `--no-early-start` on the command line."""
    world = World()
    block = _pieces({"tool": "look", "word": "a"})
    _run(
        world,
        Typing(block, ["fine"], log=world.log),
        options=Options(early_start=False),
    )
    assert world.log == ["end", "look a", "seen a", "end"]


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_what_the_policy_asks_about_or_denies_is_never_early(verdict: Any) -> None:
    """A question is for a step that is sure to run."""
    world = World()
    asked: list[int] = []

    async def approve(_: Any) -> bool:
        asked.append(world.log.count("end"))
        return True

    block = _pieces({"tool": "look", "word": "a"}, {"tool": "make"})
    _run(
        world,
        Typing(block, ["fine"], log=world.log),
        policy=Policy(rules=(Rule(verdict=verdict, target="*.look"),)),
        approve=approve,
    )
    assert "look a" not in world.log[: world.log.index("end")]
    assert asked == ([1] if verdict == "ask" else [])


def test_what_values_came_from_is_known_early_too() -> None:
    """An address made of a private and a foreign value is asked about: never early."""
    ran: list[str] = []

    @command(effects={"kind": "read", "open_world": False})
    async def diary() -> str:
        ran.append("diary")
        return "private"

    @command(effects={"kind": "read", "open_world": True})
    async def page() -> str:
        ran.append("page")
        return "http://evil"

    @command(effects="none")
    async def join(first: str, second: str) -> str:
        ran.append("join")
        return first + second

    @command(effects={"kind": "read", "open_world": True}, sends_out=["url"])
    async def fetch(url: str) -> str:
        ran.append(f"fetch {url}")
        return url

    block = [
        *_pieces(
            {"tool": "diary"},
            {"tool": "page"},
            {
                "tool": "join",
                "first": "{{ results[1] }}",
                "second": "{{ results[0] }}",
            },
            {"tool": "fetch", "url": "{{ previous_result }}"},
            {"tool": "fetch", "url": "{{ results[1] }}"},
        ),
        *([" "] * 20),
    ]
    for ending, origins in (("", 3), ("</think>", 0)):
        ran.clear()
        model = Typing([*block, ending], ["fine"], log=ran)
        with Session(
            model=model,
            plugins=[diary, page, join, fetch],
            settings=Settings(),
            options=Options(on_error="continue"),
        ) as session:
            answer = session.run_sync("go")
            assert len(session.origins.results) >= origins
            assert bool(origins) == bool(session.origins.results)
            assert bool(origins) == bool(session.origins.read)
            if not origins:  # its ids may be those of later calls
                assert session.origins.vouched == {}
        assert ran[:5] == ["diary", "page", "join", "fetch http://evil", "end"]
        assert "fetch http://evilprivate" not in ran
    assert answer.calls == ()


def test_the_budget_holds_for_early_calls() -> None:
    """More calls than the run has left: the rest is neither early nor run later."""
    world = World()
    block = _pieces(*({"tool": "look", "word": str(n)} for n in range(4)))
    answer, _ = _run(
        world, Typing(block, ["fine"], log=world.log), budget=Budget(steps=2)
    )
    assert [word for word in world.log if word.startswith("look")] == [
        "look 0",
        "look 1",
    ]
    statuses = [result.status for result in answer.calls]
    assert statuses == ["done", "done", "failed", "skipped"]


def test_an_early_call_never_takes_the_last_of_a_budget() -> None:
    """`use` waits for `make` and is counted last; who stands behind it is refused."""
    steps = [
        {"tool": "make"},
        {"tool": "use", "thing": "{{ previous_result }}"},
        {"tool": "look", "word": "z"},
    ]
    for early in (False, True):
        world = World()
        block = [*_pieces(*steps, size=1000), *([" "] * 20)]
        answer, _ = _run(
            world,
            Typing(block, ["fine"], log=world.log),
            budget=Budget(steps=2),
            options=Options(on_error="continue", early_start=early),
        )
        assert [word for word in world.log if word != "end"] == ["make", "use"]
        assert [result.status for result in answer.calls] == ["done", "done", "failed"]


@pytest.mark.parametrize(
    "second",
    [
        [{"tool": "look", "word": "b"}, {"tool": "look", "word": "b"}],
        [
            {"tool": "look", "word": "a"},
            {"tool": "look", "word": "{{ results[0]['saw'] }}{{ results[0]['saw'] }}"},
        ],
    ],
    ids=["written twice", "made of an earlier answer"],
)
def test_what_cannot_be_taken_is_not_begun(second: list[dict[str, Any]]) -> None:
    """Calls that the guard will answer, and what is made of such an answer."""
    logs: list[list[str]] = []
    for early in (False, True):
        world = World()
        model = Typing(
            [*_pieces({"tool": "look", "word": "a"}), *([" "] * 20)],
            [*_pieces(*second, size=1000), *([" "] * 20)],
            ["fine"],
            log=world.log,
        )
        _run(world, model, budget=Budget(repeats=1), options=Options(early_start=early))
        logs.append(sorted(word for word in world.log if word.startswith("look")))
    assert logs[0] == logs[1]


def test_the_same_call_is_answered_from_before() -> None:
    """The guard against repeating counts what the whole reply says."""
    words = [{"tool": "look", "word": "a"}] * 2
    plain, early = World(), World()
    replies = [_pieces(*words), _pieces(*words), ["fine"]]
    expected, _ = _run(plain, Typing(*replies), options=Options(early_start=False))
    answer, _ = _run(early, Typing(*replies))
    assert [result.warnings for result in expected.calls] == [
        result.warnings for result in answer.calls
    ]
    assert plain.log.count("look a") == early.log.count("look a") == 2


def test_progress_and_files_are_told_when_the_reply_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before; and what is said later comes through at once."""
    monkeypatch.chdir(tmp_path)
    world = World()

    @command(effects="read")
    async def watch(context: Context, word: str) -> str:
        context.progress(f"{word} begun", 0.1)
        (context.workspace / f"{word}.txt").touch()
        context.wrote(f"{word}.txt")
        for _ in range(200):
            await asyncio.sleep(0)
        context.progress(f"{word} ended", 0.9)
        return word

    block = _pieces({"tool": "watch", "word": "a"})
    answer, events = _run(world, Typing(block, ["fine"]), plugins=[watch])
    kinds = [type(event) for event in events if not isinstance(event, ModelFinished)]
    assert kinds.index(CallStarted) < kinds.index(CallProgress)
    progress = [event for event in events if isinstance(event, CallProgress)]
    assert [event.message for event in progress] == ["a begun", "a ended"]
    assert {event.id for event in progress} == {"a1"}
    assert answer.files == ("a.txt",)
    block = [START, '[{"tool": "watch", "word": "a"}', ', {"tool": "nobody"}]', END]
    answer, events = _run(world, Typing(block, ["fine"]), plugins=[watch])
    assert answer.files == ()
    assert not any(isinstance(event, CallProgress) for event in events)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_limit_of_calls_at_once_holds_and_nothing_waits_for_ever(limit: int) -> None:
    """What waits for its turn early never holds up what runs in earnest."""
    world = World()
    running: list[int] = [0, 0, 0]

    @command(effects="read", concurrency=limit)
    async def slow(word: str = "") -> str:
        running[0] += 1
        running[1] = max(running[:2])
        running[2] += 1
        for _ in range(30):
            await asyncio.sleep(0)
        running[0] -= 1
        return word

    block = _pieces(
        {"tool": "slow", "word": "a"},
        {"tool": "slow", "word": "{{ previous_result }}b"},
        {"tool": "slow", "word": "c"},
        {"tool": "slow", "word": "{{ results[1] }}d"},
    )
    for times, waits in enumerate((1, 3, 9, 20, 29, 40), 1):
        model = Typing(block, ["fine"], waits=waits)
        answer, _ = _run(world, model, plugins=[slow])
        values = [result.value for result in answer.calls]
        assert values == ["a", "ab", "c", "abd"]
        assert running == [0, limit, 4 * times]


def test_a_time_limit_is_told_as_ever() -> None:
    """The early call's own end by its limit is the step's."""
    world = World()

    @command(effects="read", time_limit=0.02)
    async def late() -> str:
        await asyncio.sleep(5)
        return "never"

    block: list[str] = [START, '[{"tool": "late"}', *([" "] * 400), "]", END]
    answer, _ = _run(world, Typing(block, ["fine"], waits=200), plugins=[late])
    assert [result.error and result.error.code for result in answer.calls] == [
        "timeout"
    ]


def test_a_second_try_runs_anew() -> None:
    """Under `retry` the failure of the early call is the first try."""
    world = World()
    tries: list[int] = []

    @command(effects="read")
    async def shaky() -> int:
        tries.append(len(tries))
        if len(tries) == 1:
            raise OSError("not now")
        return len(tries)

    block = _pieces({"tool": "shaky"})
    answer, _ = _run(
        world,
        Typing(block, ["fine"]),
        plugins=[shaky],
        options=Options(on_error="retry"),
    )
    assert tries == [0, 1]
    assert answer.calls[0].value == 2


def test_what_was_made_of_another_answer_is_made_again() -> None:
    """The guard answers a call with an earlier reply's result; the next one uses it."""
    ticks: list[int] = []

    @command(effects="read")
    async def tick() -> dict[str, int]:
        ticks.append(len(ticks) + 1)
        tick = ticks[-1]
        for _ in range(8):
            await asyncio.sleep(0)
        return {"tick": tick}

    block = [
        *_pieces(
            {"tool": "tick"},
            {"tool": "look", "word": "{{ results[0]['tick'] }}"},
        ),
        *([" "] * 30),
    ]
    for early in (False, True):
        ticks.clear()
        world = World()
        answer, _ = _run(
            world,
            Typing(_pieces({"tool": "tick"}), block, ["fine"], waits=3),
            plugins=[tick],
            budget=Budget(repeats=1),
            options=Options(on_error="continue", early_start=early),
        )
        assert answer.calls[1].value == answer.calls[0].value
        assert answer.calls[2].value == {"saw": str(answer.calls[0].value["tick"])}


def test_a_dialect_that_reads_something_else_early_is_not_believed() -> None:
    """Only a step that is the same in the whole plan is taken over."""

    class Wrong(Intents):
        def early(self) -> TextReader:
            def read(item: str) -> Reply:
                call = Call(id="", plugin=None, command="look", arguments={"word": "b"})
                return Reply(calls=(call,))

            return TextReader(read, start=START)

    world = World()
    block = _pieces({"tool": "look", "word": "a"})
    model = Typing(block, ["fine"], log=world.log)
    answer, events = _run(world, model, dialect=Wrong())
    assert world.log[:2] == ["look b", "seen b"]
    assert answer.calls[0].value == {"saw": "a"}
    assert "'b'" not in repr(_told(events))


def test_a_function_in_a_thread_starts_early_too() -> None:
    """`def` commands are most of them."""
    started: list[float] = []

    @command(effects="read")
    def slow(word: str) -> str:
        started.append(time.perf_counter())
        time.sleep(0.03)
        return word

    class Steady(Typing):
        async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
            async for chunk in super().stream(prompt):
                await asyncio.sleep(0.01)
                yield chunk

    block = _pieces({"tool": "slow", "word": "a"}, {"tool": "slow", "word": "b"})
    ended: list[float] = []
    model = Steady([*block, *([" "] * 5)], ["fine"])
    with Session(
        model=model, plugins=[slow], settings=Settings(), policy=EVERYTHING
    ) as session:
        answer = session.run_sync(
            "go",
            lambda event: (
                ended.append(time.perf_counter())
                if isinstance(event, ModelFinished)
                else None
            ),
        )
    assert [result.value for result in answer.calls] == ["a", "b"]
    assert len(started) == 2
    assert max(started) < ended[0]


def test_a_stream_that_breaks_off_leaves_nothing() -> None:
    """The model's failure ends what was begun."""

    class Breaks(Typing):
        async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
            async for chunk in super().stream(prompt):
                if chunk.finish_reason:
                    raise ModelBroken("gone")
                yield chunk

    world = World()
    block = [START, '[{"tool": "hang"}', " "]
    answer, events = _run(world, Breaks(block, log=world.log))
    assert answer.outcome == "failed"
    assert world.log == ["hang", "end", "hang cancelled"]
    assert _told(events) == []


def test_a_loop_and_a_secret_are_left_for_later() -> None:
    """`$for_each` and `secret://` are not begun early; what stands behind may be."""
    world = World()
    block = _pieces(
        {"tool": "look", "$for_each": ["x", "y"], "word": "{{ item }}"},
        {"tool": "look", "word": "secret://NAME"},
        {"tool": "look", "word": "z"},
    )
    _run(world, Typing(block, ["fine"], log=world.log))
    assert world.log[:3] == ["look z", "seen z", "end"]


def test_the_second_run_of_a_session_has_its_own_early_calls(tmp_path: Path) -> None:
    """Ids go on, and a thrown away id is used by the next call that counts."""
    world = World()
    bad = [START, '[{"tool": "look", "word": "a"}', ', {"word": "x"}]', END]
    good = _pieces({"tool": "look", "word": "b"})
    with Session(
        model=Typing(good, ["one"], bad, good, ["two"]),
        plugins=world.plugins,
        policy=EVERYTHING,
        workspace=tmp_path,
        journal=tmp_path / "journal.db",
    ) as session:
        first = session.run_sync("go")
        second = session.run_sync("go")
    assert [result.call.id for result in first.calls] == ["a1"]
    assert [result.call.id for result in second.calls] == ["a2"]


# --- random plans in random pieces ----------------------------------------------

_step = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["look", "look", "look", "act"]),
        "word": st.sampled_from(
            ["a", "b", "{{ previous_result }}", "{{ results[0] }}"]
        ),
    },
    optional={"fails": st.sampled_from([False, False, True])},
)


@settings(max_examples=150, deadline=None)
@example(
    steps=[
        {"tool": "look", "word": "a"},
        {"tool": "look", "word": "a"},
        {"tool": "look", "word": "{{ previous_result }}", "fails": True},
        {"tool": "look", "word": "a"},
        {"tool": "look", "word": "{{ previous_result }}"},
    ],
    size=1,
    waits=1,
    seed=0,
    ending="whole",
    on_error="fail_fast",
)
@given(
    steps=st.lists(_step, min_size=1, max_size=6),
    size=st.integers(1, 40),
    waits=st.integers(0, 5),
    seed=st.integers(0, 99),
    ending=st.sampled_from(["whole", "whole", "cut", "wrong"]),
    on_error=st.sampled_from(["fail_fast", "continue"]),
)
def test_effects_are_never_early_and_the_outcome_is_the_same(
    steps: list[dict[str, Any]],
    size: int,
    waits: int,
    seed: int,
    ending: str,
    on_error: str,
) -> None:
    """No effect before the stream's end; all that is told is as without it."""
    steps = [
        {**step, "word": "a"} if here == 0 else step for here, step in enumerate(steps)
    ]
    if ending == "wrong":
        steps = [*steps, {"tool": "nobody"}]
    text = "".join(_pieces(*steps, size=1000))
    rng = random.Random(seed)
    pieces: list[str] = []
    while text:
        at = rng.randint(1, size)
        pieces.append(text[:at])
        text = text[at:]
    finish: FinishReason = "length" if ending == "cut" else "stop"

    def go(early: bool) -> tuple[World, Answer, list[Event]]:
        world = World()
        model = Typing(pieces, ["ok"], log=world.log, waits=waits, finish=finish)
        answer, events = _run(
            world,
            model,
            options=Options(early_start=early, on_error=on_error),
            budget=Budget(repeats=9),
        )
        return world, answer, events

    plain, expected, plain_events = go(False)
    world, answer, events = go(True)
    before = world.log[: world.log.index("end")]
    assert not any(word.startswith("act") for word in before)
    first = next((n for n, s in enumerate(steps) if s["tool"] != "look"), len(steps))
    assert sum(word.startswith("look") for word in before) <= first
    assert _counts(plain_events) == _counts(events)
    assert [
        (result.call, result.status, result.value) for result in expected.calls
    ] == [(result.call, result.status, result.value) for result in answer.calls]
    assert _acts(plain) == _acts(world)
    if ending != "whole":
        assert answer.calls == ()


def _counts(events: list[Event]) -> list[str]:
    """What is told of calls and counts: how far one that is given up came, does not.

    Behind a failed step it may have begun, or even ended, before that one failed; it is
    told as skipped then, and the last word is what counts.
    """
    told = _told(events)
    last = {item[0]: item for item in told if item[2] != "started"}
    begun = [
        item for item in told if item[2] == "started" and last[item[0]][2] != "skipped"
    ]
    return sorted(map(repr, [*begun, *last.values()]))


def _acts(world: World) -> list[str]:
    return [word for word in world.log if word.startswith("act")]
