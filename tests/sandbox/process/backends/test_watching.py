"""M8: a script under Landlock watches no file outside of its workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuraxis.sandbox.process.backends import landlock
from neuraxis.sandbox.process.run import run_python

_SCRIPT = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
made = libc.inotify_init1(0)
seen = libc.inotify_add_watch(made, b"/etc", 0xFFF) if made >= 0 else -1
fan = libc.fanotify_init(0, 0)
print(made >= 0, seen >= 0, fan >= 0)
"""


@pytest.mark.skipif(
    landlock.abi() < landlock.LEAST_ABI, reason="the kernel has no Landlock"
)
def test_m8_nothing_is_watched_under_landlock(tmp_path: Path) -> None:
    """M8: neither inotify nor fanotify can be begun."""
    (tmp_path / "s.py").write_text(_SCRIPT)
    found = run_python("s.py", workspace=tmp_path, mode="landlock")
    assert found.stdout.split() == ["False", "False", "False"], found
