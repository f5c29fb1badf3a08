"""What trees of processes and folders are seen to use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neuraxis.sandbox.process import usage
from neuraxis.sandbox.process.job import MIB, Limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
TREE = (
    "import os, sys, time\n"
    "r, w = os.pipe()\n"
    "if os.fork() == 0:\n"
    "    b = bytearray(os.urandom(1 << 20)) * 40\n"
    "    os.write(w, b'x'); time.sleep(30)\n"
    "os.read(r, 1); print('up', flush=True); time.sleep(30)"
)


@pytest.mark.parametrize("source", ["/proc", "/no-proc-here"])
def test_a_tree_is_summed_and_killed(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Memory and tasks of a child count; killing reaches it; also by `ps` (macOS)."""
    monkeypatch.setattr(usage, "_PROC", source)
    process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"up\n"
        used = usage.usage(process.pid)
        assert (len(used.pids), used.tasks) == (2, 2)
        assert used.memory > 40 * MIB
        exact = usage.usage(process.pid, beyond=1)
        assert 40 * MIB < exact.memory <= used.memory
        usage.kill(process.pid)
        assert process.wait(5) == -9
    child = used.pids[1]
    deadline = time.monotonic() + 3
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def test_each_limit_has_its_sentence() -> None:
    """The first that is exceeded is named with its value."""
    limits = Limits(memory=MIB, processes=4, cpu_seconds=2)

    def told(tasks: int = 1, memory: int = 1, cpu: float = 0) -> str:
        used = usage.Usage(pids=(), tasks=tasks, memory=memory, cpu_seconds=cpu)
        return usage.exceeded(used, limits)

    assert told() == ""
    assert told(memory=MIB + 1) == "It used more than 1 MiB of memory and was stopped."
    assert "more than 4 processes and threads" in told(tasks=9)
    assert "more than 2 seconds of processor time" in told(cpu=2.5)


def test_a_folder_is_measured_without_following_links(tmp_path: Path) -> None:
    """Links count as themselves; sockets and hidden folders are counted."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big").write_bytes(os.urandom(MIB))
    folder = tmp_path / "ws"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "f").write_bytes(os.urandom(100_000))
    (folder / "link").symlink_to(outside)
    found = usage.disk(folder)
    assert found.files == 3
    assert 100_000 <= found.used < MIB
    assert (found.sockets, found.hidden, found.deep) == (0, 0, False)


def test_deep_folders_are_seen(tmp_path: Path) -> None:
    """Also where their path is too long for the system."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(usage.DEEPEST + 20):
        os.mkdir("d" * 60, dir_fd=here)
        below = os.open("d" * 60, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    before = usage.Disk(used=0, files=0, sockets=0, hidden=0, deep=False)
    found = usage.disk(tmp_path)
    assert found.deep
    assert "nested" in usage.outgrown(before, found, Limits())


def test_deleted_files_held_open_count(tmp_path: Path) -> None:
    """They take room though no name leads to them."""
    with (tmp_path / "f").open("wb") as file:
        file.write(os.urandom(300_000))
        file.flush()
        (tmp_path / "f").unlink()
        device = tmp_path.stat().st_dev
        assert usage.removed_but_open([os.getpid()], device) >= 300_000
