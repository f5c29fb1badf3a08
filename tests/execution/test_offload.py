"""The event loop goes on while large values are walked, copied, checked and saved."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Session, command
from neuraxis.execution.offload import is_large
from neuraxis.journal import open_journal
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

ROWS = 50_000


async def _run_and_probe(session: Session) -> tuple[Answer, float]:
    """The answer, and the longest stop of the loop in seconds of this process.

    Not of the clock: other processes do not count.
    """
    stops: list[float] = []

    async def beat() -> None:
        while True:
            before = time.thread_time()  # of the loop's thread, on any machine
            await asyncio.sleep(0.001)
            stops.append(time.thread_time() - before)

    beats = asyncio.create_task(beat())
    answer = await session.run("go")
    beats.cancel()
    return answer, max(stops)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("saved", [False, True])
async def test_R6_the_loop_goes_on_beside_large_rows(
    saved: bool, tmp_path: Path
) -> None:
    """Handed on five times, it never stands for 100 ms."""

    @command(effects="read")
    def makes() -> list[dict[str, Any]]:
        """Makes rows."""
        return [{"id": n, "name": f"name {n}", "ok": True} for n in range(ROWS)]

    @command(effects="read")
    def passes(rows: list[dict[str, int | str | bool]]) -> list[dict[str, Any]]:
        """Passes them on."""
        return rows

    steps: list[Any] = [{"tool": "makes"}]
    steps += [{"tool": "passes", "rows": "PREVIOUS"} for _ in range(5)]
    session = Session(
        model=ScriptedModel([json.dumps(steps), "done"]),
        plugins=[makes, passes],
        settings=Settings(),
        **({"journal": open_journal(tmp_path / "j.db")} if saved else {}),
    )
    with session:
        answer, stop = await _run_and_probe(session)
    assert ["done"] * 6 == [result.status for result in answer.calls]
    assert len(answer.calls[5].value) == ROWS
    assert stop < 0.1


def test_R6_small_values_stay_on_the_loop() -> None:
    """A thread for each would cost more than the walk."""
    assert not is_large({"a": [1, "two", 3.0, None], "day": date(2026, 1, 1)})
    assert is_large([0] * 5000)
    assert is_large({"text": ["x" * 200_000]})
    assert is_large(object())
