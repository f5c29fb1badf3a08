"""SIGKILL at random moments, as `benchmarks/kills.py` does it 300 times."""

from __future__ import annotations

import os
import sys

import pytest
from benchmarks.kills import kills


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.timeout(300)
def test_N2_R4_nothing_announced_is_lost_and_nothing_done_twice() -> None:
    """Twenty times, in one process, in eight and in eight threads."""
    found = kills(20, seed=os.getpid())
    assert found["announced"] > 0
    assert (found["lost"], found["twice"], found["undone"]) == (0, 0, 0), found
