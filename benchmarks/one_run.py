"""One run of a session and a chain of ten, CPU beside a loop written by hand.

    python benchmarks/one_run.py

The model takes no time; its command is trivial and says that it does not block. A run
is one call and one answer: with the journal in memory, from code that is not async,
with the journal on disk, and at the end of a long conversation. The chain is ten calls,
each on the answer of the one before, in one reply.

Expected: a run of at most 0.2 ms, the chain of at most 1 ms. After 1000 runs a prompt
has 4,000 messages, which are gone through twice.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema_rs

from neuraxis import Budget, Session, command
from neuraxis.messages import Chunk, Prompt
from neuraxis.settings import Settings

START, END = "<!-- RESPONSE_START -->\n", "\n<!-- RESPONSE_END -->"
EVERY = 10**9
LENGTHS = (0, 10, 100, 1000)
"""Runs that a session already had, when one more is measured."""


@command(effects="read", blocking=False)
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


@command(effects="read", blocking=False)
def step(x: int) -> int:
    """The number after x."""
    return x + 1


ONE = f'{START}[{{"tool": "add", "a": 1, "b": 2}}]{END}'
CHAIN = START + json.dumps(
    [{"tool": "step", "x": 0}] + [{"tool": "step", "x": "{{ previous_result }}"}] * 9
)
CHAIN += END


class Model:
    """Says one of two things, in turn, in one piece."""

    name = "scripted"

    def __init__(self, reply: str) -> None:
        self.replies = (reply, "done")
        self.asked = 0

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """The next reply."""
        self.asked += 1
        yield Chunk(text=self.replies[(self.asked - 1) % 2], finish_reason="stop")

    async def close(self) -> None:
        """Nothing to let go of."""


def session(reply: str, journal: str | Path | None = None) -> Session:
    """A session with both commands whose budget is never used up."""
    budget = Budget(steps=EVERY, steps_per_tool=EVERY, repeats=EVERY, model_calls=EVERY)
    return Session(
        model=Model(reply),
        plugins=[add, step],
        settings=Settings(),
        journal=journal,
        budget=budget,
    )


async def by_hand(model: Model, check: Callable[[Any], None]) -> None:
    """The same run, without anything that a runtime is there for."""
    history = [{"role": "user", "content": "go"}]
    while True:
        text = ""
        async for chunk in model.stream(Prompt(messages=())):
            text += chunk.text
        if not text.startswith(START):
            return
        for intent in json.loads(text[len(START) : -len(END)]):
            intent.pop("tool")
            check(intent)
            result = json.dumps({"results": [add(**intent)]})
            history.append({"role": "user", "content": result})


def microseconds(work: Callable[[], None], runs: int, rounds: int) -> float:
    """CPU of one piece of work, the least of some rounds."""
    least = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        for _ in range(runs):
            work()
        least = min(least, (time.process_time() - started) / runs)
    return least * 1e6


def awaited(work: Callable[[], Awaitable[object]], runs: int, rounds: int) -> float:
    """The same for what is awaited, all in one running loop."""

    async def measure() -> float:
        least = float("inf")
        for _ in range(rounds):
            started = time.process_time()
            for _ in range(runs):
                await work()
            least = min(least, (time.process_time() - started) / runs)
        return least * 1e6

    return asyncio.run(measure())


def floor(runs: int, rounds: int) -> float:
    """A run by hand."""
    check = jsonschema_rs.validator_for(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        }
    ).validate
    model = Model(ONE)
    return awaited(lambda: by_hand(model, check), runs, rounds)


def run_of(reply: str, runs: int, rounds: int, journal: Path | None = None) -> float:
    """A run of a session whose history is forgotten before it."""
    with session(reply, journal) as own:

        def forgetful() -> Awaitable[object]:
            own.history.clear()
            return own.run("go")

        return awaited(forgetful, runs, rounds)


def run_of_sync(runs: int, rounds: int) -> float:
    """The same from code that is not async."""
    with session(ONE) as own:

        def forgetful() -> None:
            own.history.clear()
            own.run_sync("go")

        return microseconds(forgetful, runs, rounds)


def after(earlier: int, runs: int, rounds: int) -> float:
    """A run at the end of a conversation of so many."""
    with session(ONE) as own:

        async def begin() -> None:
            for _ in range(earlier):
                await own.run("go")

        asyncio.run(begin())
        said = len(own.history)

        def as_long() -> Awaitable[object]:
            del own.history[said:]
            return own.run("go")

        return awaited(as_long, runs, rounds)


def measured(runs: int, rounds: int) -> dict[str, float]:
    """Every line of the table, in microseconds of CPU."""
    found = {
        "by hand: json, jsonschema-rs, a loop": floor(runs, rounds),
        "a run, awaited": run_of(ONE, runs, rounds),
        "a run, run_sync": run_of_sync(runs, rounds),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "journal.db"
        found["a run, journal on disk"] = run_of(ONE, max(runs // 5, 1), rounds, file)
    found["a chain of ten, 2 model calls"] = run_of(CHAIN, max(runs // 5, 1), rounds)
    for earlier in LENGTHS:
        found[f"a run after {earlier} runs"] = after(
            earlier, max(runs // 10, 1), rounds
        )
    return found


def main() -> None:
    """Prints the table."""
    quick = "--quick" in sys.argv
    found = measured(*((20, 3) if quick else (200, 30)))
    least = next(iter(found.values()))
    for name, value in found.items():
        print(f"{name:38}{value:8.1f} µs{value / least:8.1f} times by hand")


if __name__ == "__main__":
    main()
