"""One call from text to result and back: our functions on the way, CPU, the import.

    python benchmarks/one_call.py

The command is trivial and says that it does not block; the journal is in memory.
Expected: at most 15 functions, at most 30 µs; `import neuraxis` under 100 ms.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import jsonschema_rs

import neuraxis
from neuraxis import Budget, Session, command
from neuraxis.execution.scheduler import run_plan
from neuraxis.messages import Completion
from neuraxis.models.scripted import ScriptedModel
from neuraxis.planning.build import build
from neuraxis.session.config import RunState, runtime_of

TEXT = (
    '<!-- RESPONSE_START -->\n[{"tool": "add", "a": 1, "b": 2}]\n<!-- RESPONSE_END -->'
)
PACKAGE = str(Path(neuraxis.__file__).parent)


@command(effects="none", blocking=False)
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers.

    Args:
        a: one.
        b: the other.
    """
    return {"sum": a + b}


def one_call(session: Session):
    parts = session._config
    runtime = runtime_of(parts, RunState(), session._emit, threading.Event())
    decode, encode = session.dialect.decode, session.dialect.encode
    completion = Completion(text=TEXT)
    find, known = session.registry.find, session.assets.known

    async def go() -> str:
        reply = decode(completion, next_id=parts.next_id)
        plan = build(reply.calls, find, known_assets=known)
        return encode(await run_plan(plan, runtime))

    return go


def functions_on_the_way(go) -> list[str]:
    seen: dict[str, None] = {}

    def profile(frame, event, _):
        file = frame.f_code.co_filename
        name = frame.f_code.co_name
        if event == "call" and file.startswith(PACKAGE) and name[0] != "<":
            seen[f"{file[len(PACKAGE) + 1 :]}:{name}"] = None

    async def watched():
        for _ in range(20):  # the first few of each data class are made another way
            await go()
        sys.setprofile(profile)
        try:
            await go()
        finally:
            sys.setprofile(None)

    asyncio.run(watched())
    return list(seen)


def cpu(make, calls: int = 500, rounds: int = 30) -> float:
    """Microseconds of CPU, the least of many rounds; each is a session of its own."""

    async def batch() -> float:
        go = make()
        for _ in range(50):
            await go()
        started = time.process_time()
        for _ in range(calls):
            await go()
        return (time.process_time() - started) / calls

    return min(asyncio.run(batch()) for _ in range(rounds)) * 1e6


def floor_cpu(calls: int = 2000, rounds: int = 10) -> float:
    """Parse, validate, call and write the answer by hand, on the same machine now."""
    check = jsonschema_rs.validator_for(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        }
    ).validate
    text = '[{"tool": "add", "a": 1, "b": 2}]'

    def batch() -> float:
        started = time.process_time()
        for _ in range(calls):
            intent = json.loads(text)[0]
            intent.pop("tool")
            check(intent)
            json.dumps({"sum": add(**intent)})
        return (time.process_time() - started) / calls

    return min(batch() for _ in range(rounds)) * 1e6


def import_ms(module: str, rounds: int = 7) -> float:
    """Milliseconds over bare Python, the least of several processes."""

    def least(code: str) -> float:
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - started)
        return min(times) * 1000

    return least(f"import {module}") - least("pass")


def main() -> None:
    every = 10**9
    budget = Budget(steps=every, steps_per_tool=every, repeats=every)

    def make():
        return one_call(Session(model=ScriptedModel([]), plugins=[add], budget=budget))

    go = make()
    print(asyncio.run(go()))
    seen = functions_on_the_way(go)
    print(f"own functions on the way: {len(seen)} (at most 15)")
    for name in seen:
        print(f"    {name}")
    ours, floor = cpu(make), floor_cpu()
    print(f"one call: {ours:.1f} µs CPU (at most 30)")
    print(
        f"by hand with json and jsonschema-rs: {floor:.1f} µs; {ours / floor:.1f} times"
    )
    print(f"import neuraxis: {import_ms('neuraxis'):.0f} ms over Python (at most 100)")
    print(
        f"import neuraxis.session: {import_ms('neuraxis.session'):.0f} ms over Python"
    )


if __name__ == "__main__":
    main()
