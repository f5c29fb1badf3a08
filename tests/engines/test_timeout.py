"""Seconds for a coroutine: a timer only for what waits, and nothing lost by it."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from neuraxis.engines import TimeLimitReached
from neuraxis.engines.timeout import within

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="")


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_what_never_waits_sets_no_timer() -> None:
    """Its value and its error come out; the loop holds no timer."""

    async def quick() -> int:
        return 3

    async def wrong() -> int:
        raise ValueError("its own")

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        assert await within(5, quick()) == 3
        with pytest.raises(ValueError, match="its own"):
            await within(5, wrong())
        assert not loop._scheduled

    run(main())


def test_what_waits_goes_on_as_if_it_were_awaited() -> None:
    """Futures, tasks, generators and context variables, over several waits."""

    async def slow() -> list[Any]:
        NAME.set("inside")
        found = [await asyncio.to_thread(lambda: 1)]
        await asyncio.sleep(0)
        found += await asyncio.gather(asyncio.sleep(0.001, 2), asyncio.sleep(0, 3))
        return [*found, NAME.get()]

    async def main() -> None:
        assert await within(5, slow()) == [1, 2, 3, "inside"]
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    run(main())


def test_too_long_is_cancelled_where_it_waits() -> None:
    """It may still clean up, and has ended when that is told."""
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("cleaned up")
            raise

    async def main() -> None:
        with pytest.raises(TimeLimitReached):
            await within(0.01, slow())
        assert ended == ["cleaned up"]
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        await asyncio.sleep(0)  # nothing of it is left for the next wait

    run(main())


def test_its_own_time_out_is_its_own() -> None:
    """A TimeoutError of the work is no time limit of ours."""

    async def slow() -> None:
        async with asyncio.timeout(0.005):
            await asyncio.sleep(60)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await within(5, slow())

    run(main())


def test_the_seconds_count_from_the_start() -> None:
    """Also those before it first waits."""
    import time

    async def busy() -> None:
        time.sleep(0.03)  # noqa: ASYNC251 - it blocks, to be late
        await asyncio.sleep(0.02)

    async def main() -> None:
        with pytest.raises(TimeLimitReached):
            await within(0.02, busy())

    run(main())


def test_cancelling_from_outside_goes_through() -> None:
    """The work hears it; the task is cancelled, not timed out."""
    heard: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            heard.append("heard")

    async def main() -> None:
        task = asyncio.create_task(within(5, slow()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert heard == ["heard"]

    run(main())
