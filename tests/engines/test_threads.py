"""The threads of a process: shared by its sessions, and none of them in a child."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from neuraxis import Session
from neuraxis.engines.in_process import InProcess
from neuraxis.engines.threads import THREADS, Threads, limit_threads
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings


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


async def test_R7_calls_beyond_the_limit_wait_for_a_thread() -> None:
    """At most so many run at once; the rest begin when one ends, in their order."""
    threads, release, lock = Threads(limit=2), threading.Event(), threading.Lock()
    begun: list[int] = []
    both = threading.Event()
    most = busy = 0

    def work(number: int) -> None:
        nonlocal most, busy
        with lock:
            begun.append(number)
            busy += 1
            most = max(most, busy)
            if busy == 2:
                both.set()
        release.wait(10)
        with lock:
            busy -= 1

    jobs = [threads.start(partial(work, number)) for number in range(6)]
    assert [job.queued is None for job in jobs] == [True, True, *[False] * 4]
    threads.give_up(jobs[3])
    # a loaded machine begins threads late
    assert await asyncio.to_thread(both.wait, 10)
    release.set()
    await asyncio.wait_for(
        asyncio.gather(*(job.future for job in jobs if job is not jobs[3])), 10
    )
    assert most == 2
    assert sorted(begun[:2]) == [0, 1]
    assert sorted(begun) == [0, 1, 2, 4, 5]
    threads.close()


async def test_R7_a_call_inside_of_a_command_waits_for_no_thread() -> None:
    """Its caller has the only one, and waits for it."""
    threads = Threads(limit=1)

    async def inner() -> str:
        return await threads.run(_name)

    outer = threads.start(lambda: asyncio.run(inner()))
    assert await asyncio.wait_for(outer.future, 10) == "neuraxis-command"
    threads.close()


async def test_R7_without_a_thread_of_the_system_calls_wait_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exhausted is no error of a call, as long as one of ours will end."""
    threads, release = Threads(), threading.Event()
    first = threads.start(lambda: release.wait(10))

    def exhausted(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", exhausted)
    second = threads.start(_name)
    release.set()
    assert await asyncio.wait_for(first.future, 10)
    assert await asyncio.wait_for(second.future, 10) == "neuraxis-command"
    threads.close()


@pytest.mark.parametrize("wrong", [0, -1, "many", "1.5", True])
def test_R7_a_limit_that_is_no_number_is_refused(wrong: object) -> None:
    """The settings' mistake is told by its name."""
    with pytest.raises(ConfigError, match=r"commands\.threads"):
        limit_threads(wrong)


def test_R7_the_settings_limit_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the whole process; a variable gives it as a text."""
    monkeypatch.setattr(THREADS, "limit", 7)
    limit_threads(None)
    assert THREADS.limit == 7
    given = Settings().override({"commands.threads": "3"}, "test")
    Session(model=ScriptedModel([]), plugins=(), settings=given).close()
    assert THREADS.limit == 3
