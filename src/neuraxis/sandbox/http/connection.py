"""HTTP connection with a deadline, cancellation and a byte limit.

`Clock` is the deadline of a whole request and the user's cancellation; everything that
waits here checks it ten times a second. `Wire` is the raw stream that `http.client`
reads from; it raises an exception if the server sends more than its budget.
"""

from __future__ import annotations

import io
import queue
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from msgspec import Struct

from neuraxis.errors import NeuraxisError
from neuraxis.formatting import in_seconds
from neuraxis.sandbox.http.urls import RequestRefused

_TICK = 0.1
"""Seconds between two checks of the cancel flag."""

_T = TypeVar("_T")


class RequestFailed(NeuraxisError):
    """Error: the server was not reached or did not answer as HTTP."""


class NotReached(RequestFailed):
    """Error: no connection; the other scheme may still work."""


class Flag(Protocol):
    """Cancellation flag, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether the user cancelled."""
        ...


class Clock(Struct, frozen=True, kw_only=True):
    """Deadline and cancellation of a whole request."""

    end: float
    seconds: float
    cancelled: Flag | None

    def remaining(self) -> float:
        """Return the remaining seconds; raise at the deadline or when cancelled."""
        if self.cancelled is not None and self.cancelled.is_set():
            raise RequestFailed("The request was stopped.")
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise RequestFailed(f"No whole answer within {in_seconds(self.seconds)}.")
        return seconds


def aside(
    task: Callable[[], _T], clock: Clock, drop: Callable[[_T], None] | None = None
) -> _T:
    """Run an uninterruptible function in a thread and wait until the deadline."""
    answers: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = (
        queue.SimpleQueue()
    )
    done_event = threading.Event()

    def work() -> None:
        try:
            value = task()
        except Exception as error:  # noqa: BLE001  handed on to the waiting thread
            answers.put((None, error))
            return
        answers.put((value, None))
        if done_event.is_set() and drop is not None:
            drop(value)

    threading.Thread(target=work, name="neuraxis-request", daemon=True).start()
    while True:
        try:
            value, error = answers.get(timeout=min(_TICK, clock.remaining()))
        except queue.Empty:
            continue
        except RequestFailed:
            done_event.set()
            raise
        if error is not None:
            raise error
        return value  # pyright: ignore[reportReturnType]  None only with an error


def secure(
    raw: socket.socket, host: str, port: int, clock: Clock, seconds: float
) -> ssl.SSLSocket:
    """Start TLS on a connected socket; verify the certificate for `host`."""
    until = time.monotonic() + seconds
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    sock: ssl.SSLSocket | None = None
    try:
        sock = context.wrap_socket(
            raw, server_hostname=host, do_handshake_on_connect=False
        )
        while True:
            try:
                sock.do_handshake()
                return sock
            except ssl.SSLWantReadError:
                wait(sock, selectors.EVENT_READ, clock, until)
            except ssl.SSLWantWriteError:
                wait(sock, selectors.EVENT_WRITE, clock, until)
    except (OSError, ValueError, NeuraxisError) as error:
        if sock is not None:
            sock.close()
        raise _named(error, host, port) from None


def _named(error: Exception, host: str, port: int) -> Exception:
    """Return the TLS error in plain words; return other errors unchanged."""
    if isinstance(error, ssl.SSLCertVerificationError):
        # who forges one must not be asked again without TLS
        return RequestFailed(
            f"{host}: its certificate is not valid ({error.verify_message})."
        )
    if isinstance(error, (OSError, ValueError)):
        return NotReached(f"{host} does not speak TLS on port {port}.")
    return error


def wait(
    sock: socket.socket, event: int, clock: Clock, until: float = float("inf")
) -> None:
    """Wait until the socket is readable or writable; `TimeoutError` at `until`."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, event)
        while not selector.select(min(_TICK, clock.remaining())):
            if time.monotonic() >= until:
                raise TimeoutError


class File:
    """File-like adapter that `HTTPResponse` expects of a socket."""

    def __init__(self, reader: io.BufferedReader) -> None:
        self.reader = reader

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return the socket's only stream."""
        return self.reader


class Wire(io.RawIOBase):
    """Raw stream over a non-blocking socket, with deadline and byte limit."""

    def __init__(self, sock: socket.socket, clock: Clock, host: str) -> None:
        super().__init__()
        self.sock = sock
        self.clock = clock
        self.host = host
        self.budget = 0

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def readinto(self, buffer: bytearray, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] always writable here
        """Read bytes from the server; return 0 at the end."""
        if self.budget <= 0:
            raise RequestRefused(f"{self.host} sends more than is read.")
        self.clock.remaining()
        while True:
            try:
                count = self.sock.recv_into(buffer, min(len(buffer), self.budget))
                self.budget -= count
                return count
            except (ssl.SSLWantReadError, BlockingIOError):
                wait(self.sock, selectors.EVENT_READ, self.clock)
            except ssl.SSLWantWriteError:
                wait(self.sock, selectors.EVENT_WRITE, self.clock)
            except ssl.SSLEOFError:
                return 0
            except OSError as error:
                raise RequestFailed(
                    f"{self.host} broke the connection ({type(error).__name__})."
                ) from None

    def send(self, data: bytes) -> None:
        """Send all of `data` to the server."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view) :]
            except (ssl.SSLWantWriteError, BlockingIOError):
                wait(self.sock, selectors.EVENT_WRITE, self.clock)
            except ssl.SSLWantReadError:
                wait(self.sock, selectors.EVENT_READ, self.clock)
            except OSError as error:
                raise RequestFailed(
                    f"{self.host} broke the connection ({type(error).__name__})."
                ) from None
