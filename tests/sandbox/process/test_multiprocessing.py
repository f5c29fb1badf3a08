"""Scripts that share work between processes, in each sandbox that this machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuraxis.sandbox.process.run import probe, run_python

WORKS = [found.kind for found in probe() if found.works]

SCRIPTS = {
    "condition": (
        "import multiprocessing as m\n"
        "def wake(event, condition):\n"
        "    event.wait(10)\n"
        "    with condition: condition.notify()\n"
        "if __name__ == '__main__':\n"
        "    event, condition = m.Event(), m.Condition()\n"
        "    other = m.Process(target=wake, args=(event, condition))\n"
        "    other.start()\n"
        "    with condition:\n"
        "        event.set()\n"
        "        print(condition.wait(10))\n"
        "    other.join()",
        "True",
    ),
    "recursive lock": (
        "import multiprocessing as m, threading\n"
        "lock, seen = m.RLock(), []\n"
        "lock.acquire(); lock.acquire(); lock.release()\n"
        "def other(): seen.append(lock.acquire(timeout=0.05))\n"
        "thread = threading.Thread(target=other); thread.start(); thread.join()\n"
        "lock.release()\n"
        "thread = threading.Thread(target=other); thread.start(); thread.join()\n"
        "print(seen)",
        "[False, True]",
    ),
    "released too often": (
        "import multiprocessing as m\n"
        "lock = m.Lock()\n"
        "print(lock.acquire(), lock.acquire(block=False), lock.acquire(timeout=0.01))\n"
        "lock.release()\n"
        "try: lock.release()\n"
        "except ValueError as error: print(error)",
        "True False False\nsemaphore or lock released too many times",
    ),
    "not the owner": (
        "import multiprocessing as m\n"
        "try: m.RLock().release()\n"
        "except AssertionError as error: print(error)",
        "attempt to release recursive lock not owned by thread",
    ),
    "array": (
        "import multiprocessing as m\n"
        "def fill(a):\n"
        "    for i in range(len(a)): a[i] = i * i\n"
        "if __name__ == '__main__':\n"
        "    a = m.Array('i', 5)\n"
        "    p = m.Process(target=fill, args=(a,)); p.start(); p.join()\n"
        "    print(list(a))",
        "[0, 1, 4, 9, 16]",
    ),
}


@pytest.mark.skipif("landlock" not in WORKS, reason="the kernel has no Landlock")
@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("mode", ["landlock", "bubblewrap"])
def test_processes_share_locks_and_values(mode: str, name: str, tmp_path: Path) -> None:
    """The same with the standard library's locks and with those of ours."""
    if mode not in WORKS:
        pytest.skip(f"{mode} does not work on this machine")
    script, expected = SCRIPTS[name]
    (tmp_path / "s.py").write_text(script, encoding="utf-8")
    outcome = run_python("s.py", workspace=tmp_path, mode=mode)
    assert (outcome.stdout.strip(), outcome.sandbox) == (expected, mode), outcome


@pytest.mark.skipif("landlock" not in WORKS, reason="the kernel has no Landlock")
def test_nothing_of_it_is_left_in_shared_memory(tmp_path: Path) -> None:
    """The folder that all of the user's programs share is not touched."""
    shared = Path("/dev/shm")
    before = sorted(shared.iterdir()) if shared.is_dir() else []
    (tmp_path / "s.py").write_text(SCRIPTS["array"][0], encoding="utf-8")
    assert run_python("s.py", workspace=tmp_path, mode="landlock").ok
    assert before == (sorted(shared.iterdir()) if shared.is_dir() else [])
