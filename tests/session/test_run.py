"""A run in the hands of who started it: its events come when they happen."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Context, Options, Run, Session, command
from neuraxis.errors import SessionBusy
from neuraxis.events import (
    CallFinished,
    CallProgress,
    CallStarted,
    Event,
    Inside,
    ModelChunk,
)
from neuraxis.journal import open_journal
from neuraxis.messages import Call, Chunk, Prompt
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING

ACT = '[{"tool": "act"}]'


def _acting(*replies: str, **named: Any) -> tuple[Session, list[str]]:
    """A session whose command says when it began, and when it has acted."""
    done: list[str] = []

    @command(effects="once")
    async def act() -> bool:
        """Acts."""
        done.append("begun")
        await asyncio.sleep(0.05)
        done.append("acted")
        return True

    model = ScriptedModel(list(replies))
    session = Session(model=model, plugins=[act], policy=EVERYTHING, **named)
    return session, done


async def test_why_a_model_waits_is_told_while_it_waits() -> None:
    """A busy server is no silence: the model goes on only after the note was seen."""
    seen = asyncio.Event()

    class Busy:
        name = "busy"

        async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
            yield Chunk(note="asks again after 30.0 s: HTTP 429")
            await asyncio.wait_for(seen.wait(), 10)
            yield Chunk(text="Here I am.", finish_reason="stop")

        async def close(self) -> None:
            pass

    run = Session(model=Busy(), plugins=[]).run("hello")
    async for event in run:
        if isinstance(event, ModelChunk) and event.note:
            assert (event.text, event.note) == ("", "asks again after 30.0 s: HTTP 429")
            seen.set()
    assert (await run).text == "Here I am."


@pytest.mark.parametrize("debug", [False, True])
def test_progress_of_a_thread_is_heard_while_it_runs(debug: bool) -> None:
    """The command goes on only after its progress was seen."""
    seen = threading.Event()

    @command(effects="read")
    def works(context: Context) -> bool:
        """Tells that it works."""
        context.progress("half of it", 0.5)
        return seen.wait(5)

    model = ScriptedModel(['[{"tool": "works"}]', "done"])
    session = Session(model=model, plugins=[works], policy=EVERYTHING)

    async def watch() -> list[Event]:
        events: list[Event] = []
        async for event in session.run("go"):
            events.append(event)
            if isinstance(event, CallProgress):
                seen.set()
        return events

    events = asyncio.run(asyncio.wait_for(watch(), 20), debug=debug)
    kinds = CallProgress | CallFinished
    told = [event for event in events if isinstance(event, kinds)]
    assert [type(event) for event in told] == [CallProgress, CallFinished]
    assert isinstance(told[1], CallFinished)
    assert told[1].value is True


async def test_the_answer_of_a_watched_run_is_that_of_the_same_run() -> None:
    """Nothing is done twice; each further `await` gives it again."""
    session, done = _acting(ACT, "done", "another")
    run = session.run("go")
    async for _ in run:
        pass
    assert (await run).text == "done"
    assert await run is run.answer
    assert done == ["begun", "acted"]


async def test_a_run_can_be_awaited_while_another_task_watches_it() -> None:
    """Who stops waiting ends nothing."""
    session, done = _acting(ACT, "done")
    run, events = session.run("go"), 0

    async def watch() -> None:
        nonlocal events
        async for _ in run:
            events += 1

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run, 0.01)
    assert (await run).text == "done"
    await watching
    assert events > 3
    assert done == ["begun", "acted"]


async def test_a_run_is_begun_once() -> None:
    """Also where it has no answer: it says so, and what to do."""
    session, done = _acting(ACT, "done")
    run = session.run("go")
    task = asyncio.ensure_future(run)
    await asyncio.sleep(0.02)
    with pytest.raises(RuntimeError, match="begun already"):
        await run
    with pytest.raises(RuntimeError, match=r"session\.run\(\.\.\.\) makes another"):
        run.__aiter__()
    assert (await task).text == "done"
    assert (await run).text == "done"
    assert done == ["begun", "acted"]


async def _grouped(run: Run[Any]) -> Answer:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run)  # type: ignore[arg-type, var-annotated]
    return task.result()


async def _gathered(run: Run[Any]) -> Answer:
    (answer,) = await asyncio.gather(run)
    return answer


async def _made_a_task(run: Run[Any]) -> Answer:
    return await asyncio.create_task(run)  # type: ignore[arg-type]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "how", [lambda run: run, _grouped, _gathered, _made_a_task], ids=str
)
def test_a_run_is_taken_where_a_coroutine_is(how: Any, debug: bool) -> None:
    """By `asyncio.run`, tasks and groups of them."""
    session, done = _acting(ACT, "done", ACT, "again")
    for text in ("done", "again"):
        run = session.run("go")
        assert asyncio.run(how(run), debug=debug).text == text
        assert run.answer is not None
    assert done == ["begun", "acted"] * 2


async def test_a_task_of_a_run_is_cancelled_with_it() -> None:
    """As where it is awaited: the command is stopped, the session goes on."""
    session, done = _acting(ACT, "again")
    task: asyncio.Task[Any] = asyncio.create_task(session.run("go"))  # type: ignore[arg-type]
    while done != ["begun"]:  # noqa: ASYNC110 - the command runs in a thread
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["begun"]
    assert (await session.run("and now?")).text == "again"


async def test_two_tasks_take_one_run() -> None:
    """The second is told that it was begun, and disturbs nothing."""
    session, done = _acting(ACT, "done")
    run: Any = session.run("go")
    first = asyncio.create_task(run)
    await asyncio.sleep(0.02)
    second = asyncio.create_task(run)
    with pytest.raises(RuntimeError, match="begun already"):
        await second
    assert (await first).text == "done"
    assert await asyncio.create_task(run) is run.answer
    assert done == ["begun", "acted"]


async def test_a_run_whose_task_never_began_is_not_warned_of() -> None:
    """As a coroutine's is not: who cancelled or closed it knows."""
    session, done = _acting(ACT)
    task: asyncio.Task[Any] = asyncio.create_task(session.run("go"))  # type: ignore[arg-type]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    session.run("go").close()
    del task
    gc.collect()
    assert done == []


@pytest.mark.parametrize("kept", [False, True])
async def test_leaving_the_events_ends_the_run_and_the_next_begins(kept: bool) -> None:
    """Without a word in between: what was left is waited for."""
    session, done = _acting(ACT, "never", "again")
    run = session.run("go")
    events = aiter(run) if kept else run
    async for event in events:
        if isinstance(event, CallStarted):
            break
    if kept:
        await events.aclose()  # type: ignore[union-attr]
    del events
    answer = await session.run("and now?")
    assert answer.text == "never"
    assert done in (["begun"], [])
    with pytest.raises(RuntimeError, match="begun already"):
        await run
    assert len(asyncio.all_tasks()) == 1


async def test_a_request_that_is_cancelled_while_it_watches_leaves_nothing() -> None:
    """The run has ended when its watcher has."""
    session, done = _acting(ACT, "never")

    begun = asyncio.Event()

    async def request() -> None:
        async for event in session.run("go"):
            if isinstance(event, CallStarted):
                begun.set()

    task = asyncio.create_task(request())
    await begun.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert len(asyncio.all_tasks()) == 1
    assert "acted" not in done


def test_a_run_that_nobody_awaits_is_told() -> None:
    """As a coroutine is; not where it was told already."""
    session, _ = _acting("done")
    with pytest.warns(RuntimeWarning, match="the run of 'go' was never awaited"):
        session.run("go")
    with pytest.raises(AttributeError, match="is the answer's"):
        print(session.run("go").text)  # type: ignore[attr-defined]
    gc.collect()


@pytest.mark.parametrize("kind", [CallStarted, CallFinished])
def test_what_a_watcher_raises_is_not_the_commands(kind: type) -> None:
    """It ends the run and comes out as it is; nothing is done behind it."""
    session, done = _acting(ACT, "fine")

    def watch(event: Event) -> None:
        if isinstance(event, kind):
            raise ValueError("the socket is gone")

    with pytest.raises(ValueError, match="the socket is gone"):
        session.run_sync("go", watch)
    assert done == ([] if kind is CallStarted else ["begun", "acted"])
    assert session.run_sync("and now?").text == "fine"


async def test_what_a_watcher_of_calls_raises_comes_out() -> None:
    """Also out of a plan that no model wrote, and of one that overlaps."""
    session, done = _acting()

    def watch(event: Event) -> None:
        if isinstance(event, CallStarted):
            raise ValueError("the socket is gone")

    calls = [
        Call(id=own, plugin=None, command="act", arguments={}) for own in ("x", "y")
    ]
    with pytest.raises(ValueError, match="the socket is gone"):
        await session.call_all(calls, watch)
    assert done == []


async def test_what_a_watcher_raises_of_a_session_inside_ends_the_one_around() -> None:
    """It is not taken for a failure of the command that made the session."""

    @command(effects="once")
    async def ask(context: Context) -> str:
        """Ask another."""
        inner = Session(
            model=ScriptedModel(["inside"]), options=Options(parent=context)
        )
        return (await inner.run("go")).text

    def watch(event: Event) -> None:
        if isinstance(event, Inside):
            raise ValueError("the socket is gone")

    model = ScriptedModel(['[{"tool": "ask"}]', "done"])
    session = Session(model=model, plugins=[ask], policy=EVERYTHING)
    with pytest.raises(ValueError, match="the socket is gone"):
        await session.drive("go", watch=watch)


async def test_closing_is_put_off_while_a_request_is_answered(tmp_path: Path) -> None:
    """Its results are kept; then the file is let go of."""
    path = tmp_path / "journal.db"
    session, done = _acting(ACT, "done", journal=path)
    task = asyncio.ensure_future(session.run("go"))
    while done != ["begun"]:  # noqa: ASYNC110 - the command runs in a thread
        await asyncio.sleep(0.01)
    session.close()
    answer = await task
    assert (answer.text, answer.error) == ("done", "")
    again = open_journal(path)
    kinds = [type(entry.event) for entry in again.read(session.id)]
    assert CallFinished in kinds
    with pytest.raises(Exception, match="was closed"):
        await session.run("more")


async def test_a_journal_that_is_handed_in_stays_open(tmp_path: Path) -> None:
    """It is that of many sessions; what one held back is written when it closes."""
    journal = open_journal(tmp_path / "journal.db")
    first, _ = _acting("one", journal=journal)
    second, _ = _acting("two", journal=journal)
    first.attach("words")
    first.close()
    other = open_journal(tmp_path / "journal.db")
    assert len(other.read(first.id)) == 2
    assert (await second.run("go")).text == "two"
    journal.close()


async def test_calls_are_written_when_they_have_ended(tmp_path: Path) -> None:
    """Nothing comes behind them that would write them."""
    session, _ = _acting(journal=tmp_path / "journal.db")
    await session.call(Call(id="x", plugin=None, command="act", arguments={}))
    entries = open_journal(tmp_path / "journal.db").read(session.id)
    assert isinstance(entries[-1].event, CallFinished)


def test_of_two_requests_at_once_one_is_refused() -> None:
    """Also where they come from two threads at the same moment."""
    begun, go_on = threading.Event(), threading.Event()

    @command(effects="read")
    def look() -> bool:
        """Looks."""
        begun.set()
        return go_on.wait(5)

    model = ScriptedModel(['[{"tool": "look"}]', "done"])
    session = Session(model=model, plugins=[look], policy=EVERYTHING)
    answers: list[str] = []
    thread = threading.Thread(
        target=lambda: answers.append(session.run_sync("go").text)
    )
    thread.start()
    assert begun.wait(5)
    with pytest.raises(SessionBusy, match="already answering"):
        session.run_sync("me, too")
    go_on.set()
    thread.join()
    assert answers == ["done"]
