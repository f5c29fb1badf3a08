"""The threads of a process: shared by its sessions, and none of them in a child."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from neuraxis.engines.in_process import InProcess
from neuraxis.engines.threads import Threads


def _name() -> str:
    return threading.current_thread().name


async def test_sessions_share_the_idle_threads() -> None:
    """A service makes one for each request, and a container counts threads."""
    before = threading.active_count()
    for _ in range(50):
        assert await InProcess().run(_name, (), {}, None) == "neuraxis-command"
    assert threading.active_count() <= before + 2


async def test_what_is_given_up_before_it_began_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its caller was told that it was stopped: nothing is done behind its back."""
    threads, ran, late = Threads(), list[int](), list[threading.Thread]()
    monkeypatch.setattr(threading.Thread, "start", lambda self: late.append(self))
    future = threads.run(lambda: ran.append(1))
    monkeypatch.undo()
    monkeypatch.setattr("neuraxis.engines.threads.IDLE_SECONDS", 0.05)
    future.cancel()
    late[0].start()
    await asyncio.to_thread(late[0].join, 10)
    assert not late[0].is_alive()
    assert ran == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_none_of_them() -> None:
    """A call would wait for ever for a thread that stayed with the parent."""
    code = (
        "import asyncio, os, threading\n"
        "from neuraxis.engines.in_process import InProcess\n"
        "def one():\n"
        "    work = InProcess().run(threading.get_ident, (), {}, None, seconds=20)\n"
        "    return asyncio.run(work)\n"
        "one()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    one()\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), one() > 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "7 True\n", done.stderr
