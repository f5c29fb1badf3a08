"""The loop of `run_sync`: kept from run to run, and never in anybody's way."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.session.event_loop import SyncLoop


async def loop_of() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_one_loop_for_all_runs_of_any_thread() -> None:
    """Made once; closed with its owner, and made again if it is needed again."""
    own = SyncLoop()
    first = own.run(loop_of())
    assert own.run(loop_of()) is first
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(own.run(loop_of())))
    thread.start()
    thread.join()
    assert seen == [first]
    own.close()
    own.close()
    assert first.is_closed()
    second = own.run(loop_of())
    assert second is not first
    own.close()
    assert second.is_closed()


def test_a_forgotten_one_closes_its_loop() -> None:
    """No `ResourceWarning`: warnings are errors here, but not in a finalizer."""
    own = SyncLoop()
    loop = own.run(loop_of())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del own
        gc.collect()
    assert loop.is_closed()
    assert not told


def test_errors_come_out_and_the_loop_stays() -> None:
    """A run that failed is no reason to make another loop."""

    async def wrong() -> None:
        raise ValueError("wrong")

    own = SyncLoop()
    first = own.run(loop_of())
    with pytest.raises(ValueError, match="wrong"):
        own.run(wrong())
    assert own.run(loop_of()) is first
    own.close()


def test_tasks_that_nobody_awaited_are_ended() -> None:
    """As `asyncio.run` does: nothing sleeps on into the next run."""
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("ended")
            raise

    async def starts() -> asyncio.Task[None]:
        task = asyncio.create_task(background())
        await asyncio.sleep(0)
        return task

    own = SyncLoop()
    task = own.run(starts())
    assert task.cancelled()
    assert ended == ["ended"]
    own.close()


def test_an_error_of_such_a_task_is_told() -> None:
    """To the loop's handler, as `asyncio.run` does."""
    told: list[Any] = []

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("while it ended")

    async def starts() -> asyncio.Task[None]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        task = asyncio.create_task(background())
        await asyncio.sleep(0)
        return task

    own = SyncLoop()
    own.run(starts())
    own.close()
    assert [str(context["exception"]) for context in told] == ["while it ended"]


def test_where_a_loop_runs_it_says_so() -> None:
    """And leaves nothing behind that would warn of a coroutine never awaited."""
    own = SyncLoop()

    async def inside() -> None:
        with pytest.raises(RuntimeError, match=r"answer = await session\.run\("):
            own.run(loop_of())

    asyncio.run(inside())


def test_two_threads_at_once_do_not_wait_for_each_other() -> None:
    """The second gets a loop of its own, for this once."""
    own = SyncLoop()
    begun, go_on = threading.Event(), threading.Event()

    async def long() -> asyncio.AbstractEventLoop:
        begun.set()
        await asyncio.to_thread(go_on.wait, 10)
        return asyncio.get_running_loop()

    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(own.run(long())))
    thread.start()
    assert begun.wait(10)
    other = own.run(loop_of())
    own.close()  # it runs: nothing happens
    go_on.set()
    thread.join()
    assert other.is_closed()
    assert seen[0] is not other
    assert own.run(loop_of()) is seen[0]
    own.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_finds_no_loop_that_it_would_share() -> None:
    """What a loop waits on is one object for both processes: closed before."""
    code = (
        "import asyncio, os, warnings\n"
        "from neuraxis.session.event_loop import SyncLoop\n"
        "async def threads():\n"
        "    return await asyncio.to_thread(lambda: 'done')\n"
        "async def loop_of():\n"
        "    return asyncio.get_running_loop()\n"
        "own = SyncLoop()\n"
        "before = own.run(loop_of())\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    assert own.run(threads()) == 'done'\n"
        "    own.close()\n"
        "    os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "assert before.is_closed()\n"
        "print(own.run(threads()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "done\n", done.stderr
    assert not done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_control_c_cancels_and_is_told_as_one() -> None:
    """The work hears a cancellation; the caller a KeyboardInterrupt; then all is as
    it was."""
    heard: list[str] = []

    async def long() -> None:
        main = threading.main_thread().ident
        threading.Timer(0.05, signal.pthread_kill, [main, signal.SIGINT]).start()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    before = signal.getsignal(signal.SIGINT)
    own = SyncLoop()
    started = time.perf_counter()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            own.run(long())
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["cancelled"]
    assert time.perf_counter() - started < 30
    own.close()


def test_a_handler_of_the_program_is_left_alone() -> None:
    """Only Python's own is replaced; one that a command puts in place stays."""

    def mine(number: int, frame: Any) -> None:
        """Nothing."""

    async def look() -> Any:
        return signal.getsignal(signal.SIGINT)

    async def put() -> None:
        signal.signal(signal.SIGINT, mine)

    before = signal.getsignal(signal.SIGINT)
    own = SyncLoop()
    try:
        signal.signal(signal.SIGINT, mine)
        assert own.run(look()) is mine
        signal.signal(signal.SIGINT, signal.default_int_handler)
        own.run(put())
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)
    own.close()


def test_a_session_closes_what_it_kept() -> None:
    """Runs of one session share a loop; no file descriptor is left of it."""
    loops: list[asyncio.AbstractEventLoop] = []

    @command(effects="none", blocking=False)
    async def look() -> bool:
        """Looks."""
        loops.append(asyncio.get_running_loop())
        return True

    block = '<!-- RESPONSE_START -->\n[{"tool": "look"}]\n<!-- RESPONSE_END -->'
    model = ScriptedModel([block, "done", block, "done"])
    with Session(model=model, plugins=[look]) as session:
        for _ in range(2):
            assert session.run_sync("go").text == "done"
        assert loops[0] is loops[1]
        assert not loops[0].is_closed()
    assert loops[0].is_closed()


def test_closing_does_not_wait_for_a_thread_that_hangs() -> None:
    """A command that was stopped may have left one in asyncio's own pool."""
    begun, go_on = threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        go_on.wait(20)

    async def given_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(hangs), 0.02)

    own = SyncLoop()
    own.run(given_up())
    assert begun.is_set()
    started = time.perf_counter()
    own.close()
    assert time.perf_counter() - started < 10
    go_on.set()
