"""The way of one call stays short: what a person debugs, and what every call pays."""

import asyncio
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import neuraxis
from neuraxis import Budget, Session, command
from neuraxis.execution.scheduler import run_plan
from neuraxis.messages import Completion
from neuraxis.models.scripted import ScriptedModel
from neuraxis.planning.build import build
from neuraxis.session.config import State, runtime_of

TEXT = (
    '<!-- RESPONSE_START -->\n[{"tool": "add", "a": 1, "b": 2}]\n<!-- RESPONSE_END -->'
)
PACKAGE = str(Path(neuraxis.__file__).parent)


@command(effects="none", blocking=False)
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


def test_at_most_thirty_functions_from_text_to_result_and_back() -> None:
    """Decode, plan, run, journal, keep, encode; counted by the profiler."""
    budget = Budget(steps=99, repeats=99)
    session = Session(model=ScriptedModel([]), plugins=[add], budget=budget)
    parts: Any = session._parts  # pyright: ignore[reportPrivateUsage]
    emit: Any = session._emit  # pyright: ignore[reportPrivateUsage]
    runtime = runtime_of(parts, State(), emit, threading.Event())
    seen: set[str] = set()

    async def one() -> str:
        reply = session.dialect.decode(Completion(text=TEXT), next_id=parts.next_id)
        plan = build(
            reply.calls, session.registry.find, known_assets=session.assets.known
        )
        return session.dialect.encode(await run_plan(plan, runtime))

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(PACKAGE) and code.co_name[0] != "<"
        if event == "call" and ours:
            seen.add(f"{code.co_filename[len(PACKAGE) + 1 :]}:{code.co_name}")

    async def both() -> str:
        await one()  # schemas are compiled at the first call
        sys.setprofile(profile)
        try:
            return await one()
        finally:
            sys.setprofile(None)

    assert '"response":{"sum":3}' in asyncio.run(both())
    assert 8 < len(seen) <= 30, sorted(seen)


def test_importing_neuraxis_imports_next_to_nothing() -> None:
    """Nothing at import time: no third-party package, no asyncio, no network."""
    import subprocess

    code = (
        "import sys; before = set(sys.modules); import neuraxis; "
        "print(sorted(m for m in set(sys.modules) - before if 'neuraxis' not in m))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = done.stdout
    for heavy in ("asyncio", "yaml", "httpx2", "click", "rich", "jsonschema_rs", "ssl"):
        assert f"'{heavy}'" not in loaded
