"""A server on loopback that writes every request down and answers `{}`."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Captured:
    """One request as it came."""

    def __init__(self, method: str, target: str, headers: Any, body: bytes) -> None:
        self.method, self.target, self.headers, self.body = (
            method,
            target,
            headers,
            body,
        )


class Server:
    """What came, and how the next requests are answered."""

    def __init__(self) -> None:
        self.requests: list[Captured] = []
        self.answer: tuple[int, dict[str, str], bytes] = (
            200,
            {"Content-Type": "application/json"},
            b"{}",
        )
        self.url = ""
        self.page: Callable[[str], bytes] | None = None


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Serve until the block ends."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length)
            state.requests.append(Captured(self.command, self.path, self.headers, body))
            status, headers, said = state.answer
            if state.page is not None:
                said = state.page(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(said)

        do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
