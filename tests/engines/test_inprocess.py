"""The in-process engine: coroutines, threads, limits."""

import asyncio
import threading
import time

import pytest

from neuraxis.engines import TimeLimitReached
from neuraxis.engines.inprocess import InProcess


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
