"""Many runs at once: the journal on disk beside that in memory, and beside the peers.

    python benchmarks/load.py --rounds 5

Each run is one request, three commands in three turns of the model, and an answer.
fsync takes 1, 4 and 10 ms (a shim, built with cc and loaded before everything else;
without a compiler the disk's own time is measured). Memory and disk take turns in one
process. Printed for 50 and 500 runs at once: runs a second, the share of the memory's
throughput, the flushes of all runs divided by their number, the flushes that ended
while one run waited for the journal (the median run, and the most), how much longer the
median run took than in memory, divided by the time of a flush (the processor, which
takes turns between all runs, is in this one too), and the longest stop of the event
loop: how long one callback held it. (Where 500 runs begin in one moment, 500 callbacks
are ready, and the last of them waits for all others, in memory too.)

NEURAXIS_LANGGRAPH and NEURAXIS_PYDANTIC_AI name interpreters that have these peers:
langgraph with AsyncSqliteSaver, pydantic-ai in memory (it has no journal).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <sys/types.h>
static long ended;
long flush_count(void) { return __atomic_load_n(&ended, __ATOMIC_RELAXED); }
static int wait_for_disk(void) {
    const char *text = getenv("FSYNC_MS");
    long us = text ? (long)(atof(text) * 1000) : 0;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&left, 0);
    __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
    return 0;
}
int fsync(int fd) { return wait_for_disk(); }
int fdatasync(int fd) { return wait_for_disk(); }
"""
HELD = (1, 4, 10)
AT_ONCE = (50, 500)


async def measure(work: Any, count: int) -> dict[str, float]:
    """Run `count` of them at once; runs a second, median, longest stop of the loop."""
    stops: list[float] = []
    took: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        before = time.perf_counter()
        run(handle)
        stops.append(time.perf_counter() - before)

    async def one(number: int) -> None:
        before = time.perf_counter()
        await work(number)
        took.append(time.perf_counter() - before)

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    flushes, cpu, start = _flushes(), time.process_time(), time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    seconds = time.perf_counter() - start
    asyncio.Handle._run = run  # type: ignore[method-assign]
    return {
        "runs": count / seconds,
        "median": statistics.median(took),
        "stop": max(stops),
        "flushes": (_flushes() - flushes) / count,
        "cpu": (time.process_time() - cpu) / count,
    }


@cache
def _counter() -> Callable[[], int]:
    if "LD_PRELOAD" not in os.environ:
        return lambda: 0
    import ctypes

    # CDLL lets go of the GIL at each call, and the journal's writer takes it: counting
    # alone cost the disk 3 to 5 % of its runs
    return ctypes.PyDLL(None).flush_count


def _flushes() -> int:
    return _counter()()


# --- who is measured ----------------------------------------------------------------


def count_waits(journal: Any) -> dict[str, int]:
    """Flushes that end while a session waits for its journal, by session."""
    waited: dict[str, int] = {}
    settled = journal.settled

    async def counted(session: str) -> None:
        before = _flushes()
        await settled(session)
        waited[session] = waited.get(session, 0) + _flushes() - before

    journal.settled = counted
    return waited


def neuraxis_work(folder: Path | None) -> tuple[Any, Any]:
    from neuraxis import Session, command
    from neuraxis.journal import open_journal
    from neuraxis.models.scripted import ScriptedModel
    from neuraxis.settings import Settings

    @command(effects="once")
    async def act(n: int) -> int:
        """Acts."""
        return n + 1

    journal = None if folder is None else open_journal(folder / "journal.db")
    replies = [json.dumps([{"tool": "act", "n": n}]) for n in range(3)] + ["done"]

    async def run(number: int) -> None:
        given: dict[str, Any] = {} if journal is None else {"journal": journal}
        with Session(
            model=ScriptedModel(replies), plugins=[act], settings=SETTINGS, **given
        ) as session:
            answer = await session.run("go")
        assert len(answer.calls) == 3, answer
        assert all(call.status == "done" for call in answer.calls), answer

    SETTINGS = Settings()
    return run, journal


async def langgraph_work(folder: Path) -> tuple[Any, Any]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, StateGraph

    async def act(state: dict[str, int]) -> dict[str, int]:
        return {"n": state["n"] + 1}

    async def think(state: dict[str, int]) -> dict[str, int]:
        return state

    held = AsyncSqliteSaver.from_conn_string(str(folder / "graph.db"))
    saver = await held.__aenter__()
    graph = StateGraph(dict)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", lambda state: "act" if state["n"] < 3 else END)
    graph.add_edge("act", "think")
    compiled = graph.compile(checkpointer=saver)

    async def run(number: int) -> None:
        config = {"configurable": {"thread_id": str(number)}}
        answer = await compiled.ainvoke({"n": 0}, config)
        assert answer["n"] == 3

    return run, held


def pydantic_ai_work() -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        turn = sum(message.kind == "response" for message in messages)
        if turn < 3:
            return ModelResponse(parts=[ToolCallPart("act", {"n": turn})])
        return ModelResponse(parts=[TextPart("done")])

    agent: Any = Agent(FunctionModel(reply))

    @agent.tool_plain
    async def act(n: int) -> int:
        return n + 1

    async def run(number: int) -> None:
        answer = await agent.run("go")
        assert answer.output == "done"

    return run


# --- the processes ------------------------------------------------------------------


async def ours(count: int, rounds: int) -> list[dict[str, Any]]:
    """Memory and disk in turns, each first as often."""
    found: list[dict[str, Any]] = []
    for turn in range(rounds + 1):  # the first warms up
        pair: dict[str, Any] = {}
        for place in (("memory", "disk"), ("disk", "memory"))[turn % 2]:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                work, journal = neuraxis_work(folder if place == "disk" else None)
                waited = {} if journal is None else count_waits(journal)
                pair[place] = await measure(work, count)
                pair[place]["waited"] = sorted(waited.values())
                if journal is not None:
                    journal.close()
        found.append(pair)
    return found[1:]


async def peer(name: str, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        if name == "pydantic-ai":
            return await measure(pydantic_ai_work(), count)
        work, held = await langgraph_work(Path(folder))
        try:
            return await measure(work, count)
        finally:
            await held.__aexit__(None, None, None)


def child(python: str, shim: str | None, held: float, *given: object) -> Any:
    environment = {**os.environ, "FSYNC_MS": str(held)}
    if shim:
        environment["LD_PRELOAD"] = shim
    done = subprocess.run(
        [python, __file__, "--child", *map(str, given)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{given}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def build_shim(folder: Path) -> str | None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        print("no C compiler: the disk's own flushes are measured")
        return None
    source, made = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM, "utf-8")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", made, source], check=True
    )
    return str(made)


def table(shim: str | None, rounds: int) -> None:
    print(
        "held at once  memory/s  disk/s  share  flushes  waited  most  longer  "
        "stop ms (memory)"
    )
    for held in HELD:
        for count in AT_ONCE:
            pairs = child(sys.executable, shim, held, "ours", count, rounds)
            share = statistics.median(
                pair["disk"]["runs"] / pair["memory"]["runs"] for pair in pairs
            )
            added = statistics.median(
                pair["disk"]["median"] - pair["memory"]["median"] for pair in pairs
            )
            best = {
                place: max(pair[place]["runs"] for pair in pairs)
                for place in ("memory", "disk")
            }
            stop = {
                place: max(pair[place]["stop"] for pair in pairs)
                for place in ("memory", "disk")
            }
            flushes = pairs[-1]["disk"]["flushes"]
            waited = [number for pair in pairs for number in pair["disk"]["waited"]]
            print(
                f"{held:2} ms {count:7} {best['memory']:9.0f} {best['disk']:7.0f} "
                f"{share:6.0%} {flushes:8.2f} {statistics.median(waited):7.0f} "
                f"{max(waited):5} {added * 1000 / held:7.1f} "
                f"{stop['disk'] * 1000:8.0f} ({stop['memory'] * 1000:.0f})"
            )
        for name, variable in (
            ("langgraph", "NEURAXIS_LANGGRAPH"),
            ("pydantic-ai", "NEURAXIS_PYDANTIC_AI"),
        ):
            python = os.environ.get(variable)
            if not python:
                if held == HELD[0]:
                    print(f"{name}: left out, {variable} names no interpreter")
                continue
            for count in AT_ONCE:
                seen = child(python, shim, held, name, count, 1)
                print(
                    f"{held:2} ms {count:7} {name:12} {seen['runs']:6.0f}/s "
                    f"flushes {seen['flushes']:.1f} stop {seen['stop'] * 1000:.0f} ms"
                )


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        name, count, rounds = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        work = ours(count, rounds) if name == "ours" else peer(name, count)
        print(json.dumps(asyncio.run(work)))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table(build_shim(Path(folder)), given.rounds)


if __name__ == "__main__":
    main()
