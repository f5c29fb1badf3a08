"""The in-process engine: coroutines, threads, limits."""

import asyncio
import contextlib
import sys
import threading
import time

import pytest

from neuraxis.engines import TimeLimitReached, in_process
from neuraxis.engines.in_process import InProcess


def _double(x: int) -> int:
    return 2 * x


async def _adouble(x: int) -> int:
    await asyncio.sleep(0)
    return 2 * x


async def test_all_three_ways_give_the_value() -> None:
    """async, threaded and non-blocking."""
    engine, stop = InProcess(), threading.Event()
    assert await engine.run(_adouble, (), {"x": 2}, stop, is_async=True) == 4
    assert await engine.run(_double, (), {"x": 2}, stop) == 4
    assert await engine.run(_double, (2,), {}, stop) == 4
    assert await engine.run(_double, (), {"x": 2}, stop, blocking=False) == 4
    engine.close()


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_def_that_gives_a_coroutine_is_awaited(blocking: bool) -> None:
    """As a wrapper of an `async def` does; also then it has its time limit."""
    engine, stop = InProcess(), threading.Event()

    def wrapped(x: float) -> object:
        return _sleep(x)

    async def _sleep(x: float) -> float:
        await asyncio.sleep(x)
        return x

    async def twice(x: float) -> object:
        return _sleep(x)

    assert await engine.run(twice, (0.0,), {}, stop, is_async=True) == 0.0
    assert await engine.run(wrapped, (0.0,), {}, stop, blocking=blocking) == 0.0
    with pytest.raises(TimeLimitReached):
        await engine.run(wrapped, (9.0,), {}, stop, blocking=blocking, seconds=0.1)
    engine.close()


@pytest.mark.parametrize(
    "error", [ValueError("no"), TimeoutError("own"), StopIteration()]
)
async def test_the_commands_exception_comes_out(error: Exception) -> None:
    """Its own TimeoutError is no time limit; StopIteration is told as an error."""

    def bad() -> None:
        raise error

    engine = InProcess()
    expected = RuntimeError if isinstance(error, StopIteration) else type(error)
    with pytest.raises(expected):
        await engine.run(bad, (), {}, threading.Event(), seconds=5)
    engine.close()


async def test_a_command_that_exits_ends_nothing_but_itself() -> None:
    """`sys.exit` in a plugin written as a script is an error of the call."""
    engine = InProcess()
    with pytest.raises(RuntimeError, match=r"called sys\.exit\(3\)"):
        await engine.run(lambda: sys.exit(3), (), {}, threading.Event())
    assert await engine.run(_double, (2,), {}, threading.Event()) == 4
    engine.close()


async def test_a_hung_command_ends_in_its_time_limit() -> None:
    """The caller goes on; the command is told to stop."""
    engine, stop = InProcess(), threading.Event()
    started = time.perf_counter()
    with pytest.raises(TimeLimitReached):
        await engine.run(lambda: stop.wait(20), (), {}, stop, seconds=0.05)
    assert time.perf_counter() - started < 2
    assert stop.is_set()
    engine.close()


async def test_ten_blocking_calls_overlap() -> None:
    """As many threads as calls: ten calls of 50 ms do not wait for each other."""
    engine, stop = InProcess(), threading.Event()
    barrier = threading.Barrier(10)
    await asyncio.gather(
        *(engine.run(barrier.wait, (10,), {}, stop) for _ in range(10))
    )
    before = threading.active_count()
    await engine.run(_double, (), {"x": 1}, stop)
    assert threading.active_count() == before  # an idle thread was used again
    engine.close()


async def test_a_coroutine_that_waits_is_begun_once_and_told_of_everything() -> None:
    """Results and errors of what it waits for reach it, in a task of its own."""
    engine, seen = InProcess(), list[object]()
    loop = asyncio.get_running_loop()

    async def command() -> str:
        seen.append(asyncio.current_task())
        first = loop.create_future()
        loop.call_soon(first.set_result, "one")
        seen.append(await first)
        second = loop.create_future()
        loop.call_soon(second.set_exception, KeyError("two"))
        try:
            await second
        except KeyError as error:
            seen.append(error.args)
        await asyncio.sleep(0)
        return "done"

    said = await engine.run(command, (), {}, None, is_async=True, seconds=5)
    assert said == "done"
    assert seen[0] is not asyncio.current_task()
    assert seen[1:] == ["one", ("two",)]
    engine.close()


@pytest.mark.parametrize("pauses", [0, 1, 3])
async def test_a_coroutines_time_limit_and_its_clean_up(pauses: int) -> None:
    """It is cancelled where it waits, cleans up, and the caller is told."""
    engine, stop, cleaned = InProcess(), threading.Event(), list[str]()

    async def command() -> None:
        try:
            for _ in range(pauses):
                await asyncio.sleep(0)
            await asyncio.sleep(20)
        finally:
            cleaned.append("up")

    with pytest.raises(TimeLimitReached):
        await engine.run(command, (), {}, stop, is_async=True, seconds=0.03)
    assert (cleaned, stop.is_set()) == (["up"], True)
    engine.close()


async def test_a_time_limit_counts_from_the_first_line() -> None:
    """Work before the first wait is part of a coroutine's time."""
    engine = InProcess()

    async def command() -> str:
        time.sleep(0.05)  # noqa: ASYNC251 - work that does not wait
        await asyncio.sleep(0.5)
        return "too late"

    with pytest.raises(TimeLimitReached):
        await engine.run(command, (), {}, None, is_async=True, seconds=0.04)
    engine.close()


async def test_cancelling_the_caller_reaches_a_coroutine() -> None:
    """Ctrl-C in the middle of a command: it is cancelled and told to stop."""
    engine, stop, seen = InProcess(), threading.Event(), list[str]()

    async def command() -> None:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    running = asyncio.create_task(
        engine.run(command, (), {}, stop, is_async=True, seconds=5)
    )
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (seen, stop.is_set()) == (["cancelled"], True)
    engine.close()


async def test_what_the_command_raises_at_once_comes_out() -> None:
    """A coroutine that never waits raises through; a TimeoutError is its own."""
    engine = InProcess()

    async def command() -> None:
        raise TimeoutError("own")

    with pytest.raises(TimeoutError, match="own"):
        await engine.run(command, (), {}, None, is_async=True, seconds=5)
    engine.close()


# --- given up ------------------------------------------------------------------


async def test_R3_a_coroutine_that_swallows_its_cancellation_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller goes on, and what it returns in the end is thrown away and noted."""
    monkeypatch.setattr(in_process, "CLEAN_UP_SECONDS", 0.05)
    engine, stop, release = InProcess(), threading.Event(), asyncio.Event()
    ended = asyncio.Event()

    async def stubborn() -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        ended.set()
        return "late"

    with pytest.raises(TimeLimitReached) as raised:
        await asyncio.wait_for(
            engine.run(stubborn, (), {}, stop, is_async=True, seconds=0.05), 5
        )
    assert raised.value.still_running
    assert stop.is_set()
    assert not ended.is_set()
    release.set()
    await asyncio.wait_for(ended.wait(), 5)
    await asyncio.sleep(0)
    assert "stubborn returned" in caplog.text
    assert "discarded" in caplog.text


async def test_R3_a_cancelled_caller_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C during a coroutine that swallows it: the run ends all the same."""
    monkeypatch.setattr(in_process, "CLEAN_UP_SECONDS", 0.05)
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    running = asyncio.create_task(
        InProcess().run(stubborn, (), {}, None, is_async=True)
    )
    await asyncio.sleep(0.01)
    running.cancel()
    done, _ = await asyncio.wait((running,), timeout=5)
    assert running in done
    assert running.cancelled()
    release.set()
    await asyncio.sleep(0.01)


def test_R3_a_loop_ends_beside_a_command_that_was_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`asyncio.run` cancels it once more and waits: it is closed then."""
    monkeypatch.setattr(in_process, "CLEAN_UP_SECONDS", 0.05)

    async def stubborn() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def program() -> None:
        with pytest.raises(TimeLimitReached):
            await InProcess().run(stubborn, (), {}, None, is_async=True, seconds=0.05)

    thread = threading.Thread(target=asyncio.run, args=(program(),), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("hears", [True, False])
async def test_R7_a_def_past_its_limit_is_told_as_what_it_is(hears: bool) -> None:
    """One that hears that it is to stop is stopped; any other still runs."""
    stop, release = threading.Event(), threading.Event()

    def command() -> None:
        (stop if hears else release).wait(20)

    with pytest.raises(TimeLimitReached) as raised:
        await InProcess().run(command, (), {}, stop, seconds=0.05)
    assert raised.value.still_running is not hears
    release.set()


async def test_R8_the_end_of_one_engine_ends_no_thread_of_others() -> None:
    """A session for each request uses the same thread again and again."""
    threads = set[threading.Thread]()  # not their numbers, which are used again
    for _ in range(20):
        engine = InProcess()
        threads.add(await engine.run(threading.current_thread, (), {}, None))
        engine.close()
    assert len(threads) <= 2


async def test_an_async_def_that_blocks_the_loop_past_its_limit_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No time limit can end it, and nothing said so."""

    async def slow(seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
        return "done"

    run = InProcess().run
    for seconds in (0.0, 0.2):
        value = await run(
            slow, (seconds,), {}, None, is_async=True, blocking=False, seconds=0.1
        )
        assert value == "done"
    assert caplog.text.count("blocked the event loop for 0.2 s") == 1
