"""Places of a command's calls: how many may run at once, and who keeps one."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis.engines.slots import Slot, Slots

SHORT, LONG = 0.02, 20.0


async def _taken(places: Slots, seconds: float = LONG) -> Slot:
    place = await places.take(seconds)
    assert place is not None
    return place


async def test_so_many_at_once_and_no_more() -> None:
    """The next one waits until a call is over."""
    places = Slots(2)
    first, second = await _taken(places), await _taken(places)
    third = asyncio.ensure_future(places.take(LONG))
    await asyncio.sleep(0)
    assert not third.done()
    second.end_call()
    assert await third is not None
    first.end_call()


async def test_who_came_first_is_first() -> None:
    """Nobody is passed by a later one."""
    places = Slots(1)
    held = await _taken(places)
    order: list[int] = []

    async def one(number: int) -> None:
        place = await _taken(places)
        order.append(number)
        await asyncio.sleep(0)
        place.end_call()

    tasks = [asyncio.create_task(one(number)) for number in range(5)]
    await asyncio.sleep(0)
    held.end_call()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_a_thread_keeps_the_place_of_a_call_that_is_over() -> None:
    """Nobody else runs until it ends; who waits for long enough is told."""
    places = Slots(1)
    late = await _taken(places)
    late.thread_started()
    late.end_call()
    assert await places.take(SHORT) is None
    waiting = asyncio.ensure_future(places.take(LONG))
    await asyncio.sleep(SHORT)
    assert not waiting.done()
    late.thread_ended()
    assert await waiting is not None
    # from here on the place is that of a call which only takes its time
    waiting = asyncio.ensure_future(places.take(SHORT))
    await asyncio.sleep(5 * SHORT)
    assert not waiting.done()
    waiting.cancel()


async def test_the_last_of_several_threads_gives_the_place_back() -> None:
    """One that ends before the call is over gives nothing back."""
    places = Slots(1)
    place = await _taken(places)
    for _ in range(3):
        place.thread_started()
    place.thread_ended()
    place.end_call()
    place.thread_ended()
    assert await places.take(SHORT) is None
    place.thread_ended()
    assert await places.take(SHORT) is not None


async def test_a_slow_call_is_waited_for_without_end() -> None:
    """Only threads of calls that are over make the others give up."""
    places = Slots(2)
    late, slow = await _taken(places), await _taken(places)
    late.thread_started()
    late.end_call()
    waiting = asyncio.ensure_future(places.take(SHORT))
    await asyncio.sleep(5 * SHORT)
    assert not waiting.done()
    slow.end_call()
    assert await waiting is not None


async def test_a_thread_that_begins_behind_the_end_has_no_place() -> None:
    """What a call left running in the background gives back what it does not have."""
    places = Slots(1)
    over = await _taken(places)
    over.end_call()
    over.thread_started()
    over.thread_ended()
    late = await _taken(places)
    late.thread_started()
    late.end_call()
    late.thread_ended()
    late.thread_started()
    late.thread_ended()
    await _taken(places)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(places.take(LONG), SHORT)


async def test_who_stops_waiting_takes_no_place_along() -> None:
    """A run that is cancelled while its call waits."""
    places = Slots(1)
    held = await _taken(places)
    waiting = asyncio.ensure_future(places.take(LONG))
    await asyncio.sleep(0)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    held.end_call()
    assert await places.take(SHORT) is not None


STEPS = st.lists(st.sampled_from(["take", "begin", "end", "leave"]), max_size=60)


@given(most=st.integers(1, 3), steps=STEPS, data=st.data())
def test_no_order_of_events_makes_or_loses_a_place(
    most: int, steps: list[str], data: st.DataObject
) -> None:
    """A place is held by a call that is not over, or that has threads."""

    async def play() -> None:
        places = Slots(most)
        running: list[Slot] = []
        over: list[Slot] = []
        threads: Counter[Slot] = Counter()
        for step in steps:
            late = [place for place in over if threads[place]]
            if step == "take":
                if len(running) + len(late) < most:
                    running.append(await _taken(places))
                elif len(late) == most:
                    assert await places.take(0) is None
            elif step == "begin" and running:
                place = data.draw(st.sampled_from(running))
                place.thread_started()
                threads[place] += 1
            elif step == "end" and +threads:
                place = data.draw(st.sampled_from([*(+threads)]))
                place.thread_ended()
                threads[place] -= 1
            elif step == "leave" and running:
                place = running.pop()
                place.end_call()
                over.append(place)
        held = len(running) + sum(threads[place] > 0 for place in over)
        for _ in range(most - held):
            await _taken(places)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_refused(places), 0)

    async def _refused(places: Slots) -> None:
        if await places.take(0) is None:
            raise TimeoutError

    asyncio.run(play())
