"""Fetching from a real server on loopback that behaves badly (checklist 18)."""

from __future__ import annotations

import gzip
import os
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from neuraxis.sandbox.http.client import Limits, Response, fetch
from neuraxis.sandbox.http.connection import RequestFailed
from neuraxis.sandbox.http.urls import RequestRefused

Answer = Callable[[socket.socket, str], None]
MIB = 1024 * 1024


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server on loopback; gives its `host:port`."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    ended = threading.Event()

    def one(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(10)
            asked = b""
            while b"\r\n\r\n" not in asked and (piece := client.recv(65536)):
                asked += piece
                if asked[:1] == b"\x16":  # somebody speaks TLS
                    return
            if asked:  # else the client hung up before it asked
                answer(client, asked.decode("latin-1").split(" ")[1])

    def work() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                client, _ = listener.accept()
                threading.Thread(target=one, args=(client,), daemon=True).start()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        thread.join()
        listener.close()


def reply(
    body: bytes, kind: str = "text/plain", more: str = "", status: str = "200 OK"
) -> Answer:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n{more}\r\n"
    )
    return lambda client, path: client.sendall(head.encode("latin-1") + body)


def get(
    answer: Answer,
    path: str = "/",
    limits: Limits | None = None,
    cancelled: threading.Event | None = None,
) -> Response:
    with serving(answer) as server:
        return fetch(
            f"http://{server}{path}",
            limits=limits or Limits(seconds=5),
            allowed_hosts=(server,),
            cancelled=cancelled,
        )


def test_plain_answer() -> None:
    """Status, type, charset and body come back; the URL is the last one."""
    answer = get(reply("grüß".encode(), "text/plain; charset=UTF-8"), "/x?y=1#z")
    assert (200, "text/plain", "utf-8") == (
        answer.status,
        answer.content_type,
        answer.charset,
    )
    assert "grüß" == answer.body.decode()
    assert answer.url.endswith("/x?y=1")
    assert not answer.truncated


def test_loopback_is_refused_without_its_name() -> None:
    """The same server, not allowed by name, is never connected to."""
    reached: list[str] = []

    def answer(client: socket.socket, path: str) -> None:
        reached.append(path)

    with serving(answer) as server, pytest.raises(RequestRefused):
        fetch(f"http://{server}/")
    assert [] == reached


def test_without_a_scheme_https_is_tried_and_then_http() -> None:
    """C13: the server speaks no TLS, so http answers."""
    with serving(reply(b"plain")) as server:
        answer = fetch(f"{server}/a", allowed_hosts=(server,))
    assert (b"plain", f"http://{server}/a") == (answer.body, answer.url)


def test_a_server_that_is_silent_to_tls_does_not_use_up_the_time() -> None:
    """The handshake has its own, shorter limit, so http still has a chance."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RequestFailed, match="does not speak TLS"):
            fetch(
                f"https://{server}/",
                allowed_hosts=(server,),
                limits=Limits(seconds=9, connect_seconds=0.3),
            )


def test_https_needs_a_tls_server() -> None:
    """A server that is no TLS server is not read; the defaults check certificates."""
    with (
        serving(reply(b"plain")) as server,
        pytest.raises(RequestFailed, match="does not speak TLS"),
    ):
        fetch(f"https://{server}/", allowed_hosts=(server,))
    context = ssl.create_default_context()
    assert context.check_hostname
    assert ssl.CERT_REQUIRED == context.verify_mode


def test_proxy_variables_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment would make the address check worthless."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert b"direct" == get(reply(b"direct")).body


def _redirect(to: str, status: str = "302 Found") -> bytes:
    return f"HTTP/1.1 {status}\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_followed(code: int) -> None:
    """Relative redirects of every kind."""

    def answer(client: socket.socket, path: str) -> None:
        if path == "/start/":
            client.sendall(_redirect("../end?x=1", f"{code} Go"))
        else:
            reply(path.encode())(client, path)

    found = get(answer, "/start/")
    assert b"/end?x=1" == found.body


def test_a_blank_in_a_redirect_is_read_as_browsers_do() -> None:
    """In the path; in a host it stays what no host has."""

    def answer(client: socket.socket, path: str) -> None:
        if path == "/start":
            client.sendall(_redirect("/a b?c d"))
        else:
            reply(path.encode())(client, path)

    assert b"/a%20b?c%20d" == get(answer, "/start").body
    with pytest.raises(RequestRefused, match="percent-encoded"):
        get(lambda client, _: client.sendall(_redirect("http://exam ple.org/")))


def test_redirect_to_another_inner_port_is_refused() -> None:
    """Only the named host and port is open, also behind a redirect."""
    reached: list[str] = []
    with serving(lambda client, path: reached.append(path)) as other:
        location = _redirect(f"http://{other}/secret")
        with pytest.raises(RequestRefused, match=r"not allowed|leads to"):
            get(lambda client, path: client.sendall(location))
    assert [] == reached


def test_redirects_end() -> None:
    """A loop of redirects stops after five."""
    asked: list[str] = []

    def answer(client: socket.socket, path: str) -> None:
        asked.append(path)
        client.sendall(_redirect(f"/{len(asked)}"))

    with pytest.raises(RequestRefused, match="more than 5 times"):
        get(answer)
    assert 6 == len(asked)


def test_a_redirect_without_a_location_is_an_answer() -> None:
    """304 and a 302 without Location are handed on."""
    assert 302 == get(reply(b"", status="302 Found")).status


def test_errors_of_the_server_are_answers() -> None:
    """404 is told with its reason; its type does not matter."""
    answer = get(reply(b"x", "image/png", status="404 Not Found"))
    assert (404, "Not Found") == (answer.status, answer.reason)


def test_a_servers_words_colour_no_terminal() -> None:
    """Reason and type are cut to what can be printed on one line."""
    answer = get(reply(b"", status="404 \x1b[31mred" + "x" * 200))
    assert answer.reason.startswith("[31mred")
    assert len(answer.reason) == 100
    with pytest.raises(RequestRefused) as caught:
        get(reply(b"", "image/\x1b[31m"))
    assert str(caught.value).isprintable()


def _drip(client: socket.socket, start: bytes, piece: bytes) -> None:
    client.sendall(start)
    for _ in range(100):
        time.sleep(0.05)
        client.sendall(piece)


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Drip: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"x"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            b"1\r\nx\r\n",
        ),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["status", "headers", "body", "chunks", "continues"],
)
def test_slow_drip_ends_at_the_deadline(start: bytes, piece: bytes) -> None:
    """One deadline holds for all, however the bytes trickle in."""
    began = time.monotonic()
    with pytest.raises(RequestFailed, match=r"within 0\.6 seconds"):
        get(lambda c, path: _drip(c, start, piece), limits=Limits(seconds=0.6))
    assert time.monotonic() - began < 3


def test_silent_server_ends_at_the_deadline() -> None:
    """A server that takes the request and never answers."""
    with pytest.raises(RequestFailed, match=r"within 0\.4 seconds"):
        get(lambda c, path: time.sleep(2), limits=Limits(seconds=0.4))


def test_cancelling_stops_at_once() -> None:
    """The person's wish to stop is seen while nothing comes in."""
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    began = time.monotonic()
    with pytest.raises(RequestFailed, match="was stopped"):
        get(lambda c, path: time.sleep(3), cancelled=cancelled)
    assert time.monotonic() - began < 2.5


def test_a_resolver_that_hangs_ends_at_the_deadline() -> None:
    """The system's resolver cannot be interrupted: the request does not wait for it."""
    began = time.monotonic()
    with pytest.raises(RequestFailed, match="within"):
        fetch(
            "http://example.com/",
            limits=Limits(seconds=0.3),
            resolver=lambda host, port: time.sleep(2) or [],
        )
    assert time.monotonic() - began < 1.5


def test_endless_headers_are_refused() -> None:
    """Headers are counted; nothing waits for their end."""

    def answer(client: socket.socket, path: str) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            client.sendall(b"X-Header: " + b"y" * 500 + b"\r\n")

    with pytest.raises((RequestRefused, RequestFailed)):
        get(answer)


def test_one_endless_header_line_is_refused() -> None:
    """A header without an end costs no more than its budget."""

    def answer(client: socket.socket, path: str) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            client.sendall(b"y" * 65536)

    with pytest.raises((RequestRefused, RequestFailed)):
        get(answer)


def test_a_long_body_is_cut() -> None:
    """Not more than the limit is held; the cut is told."""

    def answer(client: socket.socket, path: str) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            client.sendall(b"z" * 65536)

    found = get(answer, limits=Limits(seconds=5, body_bytes=MIB))
    assert (MIB, True) == (len(found.body), found.truncated)


def test_a_body_of_just_the_limit_is_whole() -> None:
    """The limit itself is allowed."""
    found = get(reply(b"z" * 1000), limits=Limits(seconds=5, body_bytes=1000))
    assert (1000, False) == (len(found.body), found.truncated)


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate"])
def test_compressed_although_not_asked_for(encoding: str) -> None:
    """Some servers compress anyway: it is read, under the same limit."""
    pack = zlib.compress if encoding == "deflate" else gzip.compress
    more = f"Content-Encoding: {encoding}\r\n"
    assert b"packed" * 100 == get(reply(pack(b"packed" * 100), more=more)).body


def test_gzip_of_several_members_is_read_whole() -> None:
    """As `cat a.gz b.gz` makes it, also over several pieces; padding may follow."""
    more = "Content-Encoding: gzip\r\n"
    texts = [b"one", os.urandom(65_536), b"", b"two"]
    packed = b"".join(map(gzip.compress, texts))
    assert b"".join(texts) == get(reply(packed + bytes(30), more=more)).body
    assert b"" == get(reply(b"", more=more)).body
    with pytest.raises(RequestFailed, match="broken gzip"):
        get(reply(packed[:-6], more=more))


def test_members_of_a_gzip_are_bounded_together() -> None:
    """In what they hold, and in how many there are."""
    more = "Content-Encoding: gzip\r\n"
    with pytest.raises(RequestRefused, match="compressed answer of more than"):
        get(reply(gzip.compress(bytes(3 * MIB)) * 2, more=more))
    with pytest.raises(RequestRefused, match="too many parts"):
        get(reply(gzip.compress(b"") * 1200, more=more))


def test_gzip_bomb_is_refused() -> None:
    """64 MiB in 64 kB: at most the limit is unpacked."""
    bomb = gzip.compress(bytes(64 * MIB))
    with pytest.raises(RequestRefused, match="compressed answer of more than"):
        get(reply(bomb, more="Content-Encoding: gzip\r\n"))


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_other_encodings_are_refused(encoding: str) -> None:
    """What cannot be counted while it is unpacked is not unpacked."""
    with pytest.raises(RequestRefused, match="unasked"):
        get(reply(b"x", more=f"Content-Encoding: {encoding}\r\n"))


def test_broken_gzip_is_told() -> None:
    """Neither a traceback nor half a page."""
    with pytest.raises(RequestFailed, match="broken gzip"):
        get(reply(b"no gzip", more="Content-Encoding: gzip\r\n"))
    half = gzip.compress(b"x" * 1000)[:-6]
    with pytest.raises(RequestFailed, match="broken gzip"):
        get(reply(half, more="Content-Encoding: gzip\r\n"))


@pytest.mark.parametrize(
    "kind",
    [
        "image/png",
        "application/octet-stream",
        "application/pdf",
        "video/mp4",
        "application/zip",
        "application/x-msdownload",
    ],
)
def test_other_types_are_refused(kind: str) -> None:
    """Only text is read; the body of anything else is not."""
    with pytest.raises(RequestRefused, match="only text"):
        get(reply(b"x", kind))


def test_no_type_is_refused() -> None:
    """What a body is must be said."""

    def answer(client: socket.socket, path: str) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

    with pytest.raises(RequestRefused, match="no content type"):
        get(answer)


@pytest.mark.parametrize(
    "kind",
    ["text/html; charset=x", "TEXT/PLAIN", "application/json", "application/ld+json"],
)
def test_text_types_are_read(kind: str) -> None:
    """Text in its forms, whatever case the header has."""
    assert b"x" == get(reply(b"x", kind)).body


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"hello\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nx",
    ],
)
def test_what_is_no_http_is_told(sent: bytes) -> None:
    """A sentence, never an exception of the library."""
    with pytest.raises(RequestFailed):
        get(lambda client, path: client.sendall(sent))


def test_chunks_are_joined() -> None:
    """Chunked bodies are read as bodies."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    body = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    assert b"abcde" == get(lambda client, path: client.sendall(head + body)).body


def test_nobody_listens() -> None:
    """A closed port is told as such, quickly."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        server = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(RequestFailed, match="could not be reached"):
        fetch(f"http://{server}/", allowed_hosts=(server,))


def test_unknown_host() -> None:
    """A name that is not there."""

    def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror("no such host")

    with pytest.raises(RequestFailed, match="there is no such host"):
        fetch("example.com", resolver=nobody)


def test_l_a_public_page_does_not_redirect_into_an_allowed_inner_host() -> None:
    """L: which page of an inner host is read, no page of the web chooses."""
    reached: list[str] = []

    def connect(address: str, port: int, seconds: float) -> socket.socket:
        host, _, real = (public if address == "93.184.216.34" else inner).partition(":")
        return socket.create_connection((host, int(real)), seconds)

    with serving(lambda client, path: reached.append(path)) as inner:
        location = _redirect(f"http://{inner}/secret")
        with (
            serving(lambda client, path: client.sendall(location)) as public,
            pytest.raises(RequestRefused, match=r"not allowed|inner|leads to"),
        ):
            fetch(
                "http://public.example/",
                allowed_hosts=[inner],
                resolver=lambda host, port: ["93.184.216.34"],
                connect=connect,
            )
    assert [] == reached
