"""A small web server on loopback for the tests of plugins."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Page = tuple[int, str, bytes]
"""Status, content type, body."""


@contextmanager
def serving(pages: Mapping[str, Page], asked: list[str]) -> Iterator[str]:
    """Serve pages by path (without query); gives `127.0.0.1:port`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            missing: Page = (404, "text/plain", b"no such page")
            status, kind, body = pages.get(self.path.partition("?")[0], missing)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
