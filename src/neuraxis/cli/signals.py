"""Handle signals on the command line: stop the run, then exit.

Only the command line installs handlers; the library never does. A signal cancels the
run, which stops its commands and writes its end; outside a run it ends the command line
at once. Processes that commands left running are ended last.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Coroutine, Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import asyncio

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_GRACE = 1.0
"""Seconds that a process has to end after SIGTERM."""
_ROUNDS = 3
"""Maximum rounds: a command may start another process after one was ended."""


class Signalled(BaseException):
    """The process was asked to end; click takes no notice of it.

    Args:
        number: the signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


class _State:
    """State of the signal handler."""

    def __init__(self) -> None:
        self.number = 0
        """The signal that came, or 0."""
        self.stop: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None
        """Cancels the current run."""
        self.is_terminal: tuple[int, ...] = ()


_STATE = _State()


def install() -> None:
    """Handle Ctrl-C, SIGTERM and SIGHUP; one that is ignored (`nohup`) stays so."""
    if threading.current_thread() is not threading.main_thread():
        return
    _STATE.number, _STATE.stop = 0, None
    _STATE.is_terminal = tuple(number for number in (1, 2) if _is_terminal(number))
    for name in _NAMES:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _handle(number: int, _: FrameType | None) -> None:
    earlier = _STATE.number
    if number != signal.SIGINT:
        if earlier and earlier != signal.SIGINT:
            return  # shells and service managers send both, one after the other
        if number == getattr(signal, "SIGHUP", 0):
            _leave_terminal()
    _STATE.number = number
    if _STATE.stop is not None and not earlier:
        loop, task = _STATE.stop
        with contextlib.suppress(RuntimeError):  # closed in between
            loop.call_soon_threadsafe(task.cancel)
        return
    raise_received()


def _leave_terminal() -> None:
    """Redirect output to nowhere, since the terminal is gone."""
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        for descriptor in _STATE.is_terminal:
            os.dup2(nothing, descriptor)


def raise_received() -> NoReturn:
    """Raise the exception for a received signal.

    Raises:
        KeyboardInterrupt: Ctrl-C; `chat` goes on after it.
        Signalled: the process is to end.
    """
    if _STATE.number in (0, signal.SIGINT):
        _STATE.number = 0
        raise KeyboardInterrupt
    raise Signalled(_STATE.number)


@contextlib.contextmanager
def cancelled_by_signals() -> Generator[None]:
    """Let a signal cancel the current task.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed meanwhile.
        Signalled: another signal came meanwhile.
    """
    import asyncio  # slow to import, and most commands run nothing

    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("no task runs here")
    _STATE.stop = asyncio.get_running_loop(), task
    try:
        yield
    finally:
        _STATE.stop = None


@contextlib.contextmanager
def children_ended() -> Generator[None]:
    """End the processes that were started inside if it is interrupted."""
    before = frozenset(descendants())
    try:
        yield
    except (KeyboardInterrupt, Signalled):
        end_descendants(before)
        raise


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, which `cancelled_by_signals` may cancel.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; its child processes are ended.
        Signalled: another signal came; so are they.
    """
    import asyncio  # slow to import, and most commands run nothing

    from neuraxis.session.event_loop import SyncLoop

    loop = SyncLoop()  # `asyncio.run` waits for threads that hang
    try:
        with children_ended():
            try:
                loop.run(work)
            except asyncio.CancelledError:
                raise_received()
            if _STATE.number:  # a signal came at its very end
                raise_received()
    finally:
        loop.close()


def end_descendants(spared: Collection[int]) -> None:
    """End all child processes except `spared`: terminate, then kill."""
    for _ in range(_ROUNDS):
        children = [pid for pid in descendants() if pid not in spared]
        if not children:
            return
        for number in children:
            _send(number, signal.SIGTERM)
        until = time.monotonic() + _GRACE
        while children and time.monotonic() < until:
            time.sleep(0.02)
            children = [pid for pid in descendants() if pid in children]
        for number in children:
            _send(number, getattr(signal, "SIGKILL", signal.SIGTERM))


def _send(number: int, signal_number: int) -> None:
    with contextlib.suppress(OSError):  # it ended by itself
        os.kill(number, signal_number)


def descendants() -> list[int]:
    """Return the ids of all child processes, parents first."""
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    pids, at = [os.getpid()], 0
    while at < len(pids):
        pids += children.get(pids[at], ())
        at += 1
    return pids[1:]


def _processes() -> Iterator[tuple[int, int]]:
    """Each process that is no zombie, and its parent."""
    folder = Path("/proc")
    if sys.platform == "linux":
        for entry in folder.iterdir():
            if entry.name.isdigit():
                try:
                    text = (entry / "stat").read_text(
                        encoding="utf-8", errors="replace"
                    )
                except OSError:
                    continue  # ended a moment ago
                # the name in brackets may hold anything
                state, parent, *_ = text.rpartition(")")[2].split()
                if state not in ("Z", "X"):
                    yield int(entry.name), int(parent)
    elif os.name == "posix":
        yield from _listed()


def _listed() -> Iterator[tuple[int, int]]:
    import subprocess  # as above

    with subprocess.Popen(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True
    ) as lister:
        text = lister.communicate()[0]
    for line in text.splitlines():
        pid, parent, state = line.split()[:3]
        if not state.startswith("Z") and int(pid) != lister.pid:
            yield int(pid), int(parent)


def leave(code: int) -> NoReturn:
    """End the process with `code`, without waiting for threads that go on."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            stream.flush()
    current = threading.current_thread()
    if any(
        not thread.daemon and thread is not current for thread in threading.enumerate()
    ):
        os._exit(code)
    sys.exit(code)
