"""Many plans of random shape through one session; what is left behind is counted.

    python benchmarks/soak.py [PLANS]        default: 10,000

Plans have 1 to 10 steps of commands in threads, coroutines and plain functions, with
references, failures, time limits, native objects, loops and wrong calls. Memory, tasks,
threads, processes and open files are looked at all along.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from neuraxis import Budget, Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING
from neuraxis.settings import Settings


class Native:
    """An object that cannot be said."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.body = bytes(1_000)


@command(effects="none", blocking=False)
def plain(n: int, saw: Any = None) -> dict[str, Any]:
    """A plain function."""
    return {"n": n, "saw": saw}


@command(effects="read")
def thread(n: int, saw: Any = None) -> dict[str, Any]:
    """Runs in a thread."""
    return {"n": n, "items": list(range(n % 5))}


@command(effects="read")
async def coroutine(n: int, saw: Any = None) -> dict[str, Any]:
    """Runs on the loop."""
    await asyncio.sleep(0)
    return {"n": n, "items": [str(n)] * (n % 4)}


@command(effects="once")
async def effect(n: int, saw: Any = None) -> dict[str, Any]:
    """Changes something."""
    return {"n": n}


@command(effects="read", asset_refs=["saw"])
async def native(n: int, saw: Any = None) -> object:
    """Answers an object."""
    return Native(n)


@command(effects="idempotent")
async def fails(n: int, saw: Any = None) -> dict[str, Any]:
    """Fails now and then."""
    if n % 3 == 0:
        raise RuntimeError("now and then")
    return {"n": n}


@command(effects="read", time_limit=0.001)
async def slow(n: int, saw: Any = None) -> dict[str, Any]:
    """Never ends in time."""
    await asyncio.sleep(1)
    return {"n": n}


TOOLS = [plain, thread, coroutine, effect, native, fails, slow]
_NAMES = ["plain", "thread", "coroutine", "effect", "native", "fails", "slow", "nope"]
_WEIGHTS = [8, 4, 8, 4, 1, 2, 0.2, 0.2]


def reply(dice: random.Random) -> str:
    """The text of one random plan."""
    intents: list[dict[str, Any]] = []
    for here in range(dice.choice((1, 1, 2, 3, 5, 8, 10))):
        (tool,) = dice.choices(_NAMES, _WEIGHTS)
        intent: dict[str, Any] = {"tool": tool, "n": dice.randrange(1_000)}
        if here and dice.random() < 0.4:
            intent["saw"] = f"{{{{ results[{dice.randrange(here)}] }}}}"
        if dice.random() < 0.05:
            intent["$for_each"] = list(range(dice.randrange(6)))
            intent["n"] = "{{ item }}"
        intents.append(intent)
    return json.dumps(intents)


@dataclass
class Seen:
    """What there was at one moment."""

    plans: int
    megabytes: float
    tasks: int
    threads: int
    processes: int
    files: int
    objects: int


@dataclass
class Soak:
    """The figures of a whole soak."""

    seen: list[Seen] = field(default_factory=list)
    calls: int = 0
    assets: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


async def soak(plans: int, looks: int = 10, *, seed: int = 1) -> Soak:
    """Run that many plans in one session, each as one request."""
    dice = random.Random(seed)
    asked = 0

    def answer(prompt: Any) -> str:
        nonlocal asked
        asked += 1
        return (
            "done"
            if prompt.messages[-1].results or _corrected(prompt)
            else (reply(dice))
        )

    found = Soak()
    with TemporaryDirectory() as folder:
        session = Session(
            model=ScriptedModel(answer),
            plugins=TOOLS,
            budget=Budget(steps=1_000, steps_per_tool=1_000),
            policy=EVERYTHING,
            settings=Settings(),
            workspace=folder,
            journal=Path(folder) / "journal.db",
        )
        started = time.perf_counter()
        for number in range(plans):
            done = await session.drive("go")
            found.calls += len(done.calls)
            for result in done.calls:
                status = result.status
                found.statuses[status] = found.statuses.get(status, 0) + 1
            # a conversation grows by what is said and by the objects that are kept
            # for it; here only the rest is looked at
            found.assets += len(session.assets.ids)
            for asset in session.assets.ids:
                session.assets.forget(asset)
            session.history.clear()
            session.model.prompts.clear()  # type: ignore[attr-defined]
            if number % max(1, plans // looks) == 0 or number == plans - 1:
                found.seen.append(_look(number + 1))
        found.seconds = time.perf_counter() - started
        session.close()
    return found


def _corrected(prompt: Any) -> bool:
    return '"errors"' in prompt.messages[-1].content


def _look(plans: int) -> Seen:
    gc.collect()
    here = psutil.Process(os.getpid())
    return Seen(
        plans=plans,
        megabytes=here.memory_info().rss / 1e6,
        tasks=len(asyncio.all_tasks()),
        threads=threading.active_count(),
        processes=len(here.children(recursive=True)),
        files=here.num_fds(),
        objects=len(gc.get_objects()),
    )


def main() -> None:
    plans = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    found = asyncio.run(soak(plans))
    print(
        f"{plans} plans, {found.calls} calls {found.statuses}, "
        f"{found.assets} objects kept, in {found.seconds:.0f} s"
    )
    print("  plans      MB  tasks  threads  processes  files  objects")
    for seen in found.seen:
        print(
            f"{seen.plans:7} {seen.megabytes:7.1f} {seen.tasks:6} {seen.threads:8} "
            f"{seen.processes:10} {seen.files:6} {seen.objects:8}"
        )


if __name__ == "__main__":
    main()
