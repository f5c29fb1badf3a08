"""What a plan costs beside its commands: many steps, ten at once, ten in a row.

python benchmarks/plans.py
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from neuraxis import Budget, Session, command
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING
from neuraxis.settings import Settings


@command(effects="read", blocking=False)
def quick(n: int) -> int:
    """Returns at once."""
    return n + 1


@command(effects="once", blocking=False)
def effect(n: int) -> int:
    """Changes something, at once."""
    return n


@command(effects="read")
def sleeps(n: int) -> int:
    """A `def` command that takes 50 ms."""
    time.sleep(0.05)
    return n


def session(replies: Sequence[str] = ()) -> Session:
    return Session(
        model=ScriptedModel(list(replies)),
        plugins=[quick, effect, sleeps],
        budget=Budget(steps=10_000, steps_per_tool=10_000),
        policy=EVERYTHING,
        settings=Settings(),
    )


def calls(*given: tuple[str, Any]) -> list[Call]:
    return [
        Call(id=f"a{place}", plugin=None, command=tool, arguments={"n": n})
        for place, (tool, n) in enumerate(given)
    ]


def best(given: list[Call], times: int, clock: Any) -> float:
    """Seconds of the fastest of some runs: check, run and keep, memory journal."""

    async def run() -> float:
        found: list[float] = []
        for _ in range(times):
            with session() as here:
                await here.call(
                    Call(id="w", plugin=None, command="sleeps", arguments={"n": 0})
                )
                started = clock()
                results = await here.call_all(given)
                found.append(clock() - started)
                assert {item.status for item in results} == {"done"}
        return min(found)

    return asyncio.run(run())


def conversation(times: int) -> float:
    """Seconds of a run whose model writes ten dependent calls, then an answer."""
    chain = [{"tool": "quick", "n": 0}]
    chain += [{"tool": "quick", "n": "{{ previous_result }}"} for _ in range(9)]
    replies = [json.dumps(chain), "done"] * times

    async def run() -> float:
        found: list[float] = []
        with session(replies) as here:
            for _ in range(times):
                started = time.perf_counter()
                answer = await here.drive("go")
                found.append(time.perf_counter() - started)
                assert answer.calls[-1].value == 10
        return min(found)

    return asyncio.run(run())


def main() -> None:
    reads = calls(*[("quick", n) for n in range(1_000)])
    mixed = calls(*[("effect" if n % 100 == 99 else "quick", n) for n in range(1_000)])
    for name, given in (("1,000 reads", reads), ("1,000 steps, 10 effects", mixed)):
        print(f"{name:32} {1e3 * best(given, 5, time.thread_time):8.1f} ms CPU")
    ten = calls(*[("sleeps", n) for n in range(10)])
    took = best(ten, 5, time.perf_counter)
    print(f"{'ten independent 50 ms calls':32} {1e3 * took:8.1f} ms")
    row = calls(("quick", 0), *[("quick", "{{ previous_result }}")] * 9)
    took = best(row, 50, time.perf_counter)
    print(f"{'ten dependent calls':32} {1e3 * took:8.2f} ms")
    print(f"{'the same in 2 model calls':32} {1e3 * conversation(50):8.2f} ms")


if __name__ == "__main__":
    main()
