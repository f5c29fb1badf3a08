"""Many random plans through one session leave nothing behind (benchmarks/soak.py)."""

from __future__ import annotations

import asyncio
from types import ModuleType

import pytest

from benchmark_file import benchmark


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    return benchmark("soak")


def test_random_plans_leave_nothing_behind(soak: ModuleType) -> None:
    """No task, thread, process or file more at the end; memory is flat."""
    found = asyncio.run(soak.soak(400, looks=4))
    early, last = found.seen[1], found.seen[-1]
    assert found.calls > 400
    assert set(found.statuses) == {"done", "failed", "skipped"}
    assert (last.tasks, last.processes, last.files) == (1, 0, early.files)
    assert last.threads <= early.threads + 3  # threads wait for work, then end
    # 1,000 answers are kept for references; beyond them nothing may grow
    assert last.objects < early.objects + 15_000
    assert last.megabytes < early.megabytes + 25
