"""The list of URL tricks: none through, no ordinary one refused (checklist 17)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuraxis.sandbox.http.addresses import inside
from neuraxis.sandbox.http.client import Limits, fetch
from neuraxis.sandbox.http.connection import RequestFailed
from neuraxis.sandbox.http.urls import RequestRefused

TRICKS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "url_tricks.yaml").read_text(encoding="utf-8")
)
ROWS = [
    (group["expect"], url)
    for group in TRICKS["groups"]
    for url in map(str, group["urls"])
]
REFUSED = [url for expect, url in ROWS if expect == "refuse"]
ALLOWED = [url for expect, url in ROWS if expect == "allow"]
QUICK = Limits(seconds=5, connect_seconds=1)


class World:
    """A DNS and a network of one server that answers every GET alike."""

    def __init__(self, answer: bytes = b"") -> None:
        self.answer = answer
        self.reached: list[str] = []

    def resolve(self, host: str, port: int) -> list[str]:
        found = TRICKS["dns"].get(host)
        if found is None:
            raise socket.gaierror(f"no such host: {host}")
        return list(found)

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        self.reached.append(address)
        if not self.answer:
            raise ConnectionRefusedError
        ours, theirs = socket.socketpair()
        threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()
        return ours

    def _serve(self, theirs: socket.socket) -> None:
        with theirs:
            theirs.recv(65536)
            theirs.sendall(self.answer)

    def fetch(self, url: str, **more: Any) -> Any:
        return fetch(
            url, limits=QUICK, resolver=self.resolve, connect=self.connect, **more
        )


def test_the_list_is_long_enough() -> None:
    """At least 120 tricks and 20 ordinary addresses, none twice."""
    assert len(REFUSED) >= 120
    assert len(ALLOWED) >= 20
    assert len(ROWS) == len(set(ROWS))


@pytest.mark.parametrize("url", REFUSED)
def test_refused_url_reaches_nothing(url: str) -> None:
    """No connection is tried; the sentence is one line without control characters."""
    world = World()
    with pytest.raises(RequestRefused) as caught:
        world.fetch(url)
    assert [] == world.reached
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("url", ALLOWED)
def test_ordinary_url_is_tried_at_its_public_address(url: str) -> None:
    """The guard lets it through to a checked address (here nobody answers)."""
    world = World()
    with pytest.raises(RequestFailed, match="could not be reached"):
        world.fetch(url)
    assert world.reached
    assert [] == [address for address in world.reached if inside(address)]


@pytest.mark.parametrize("url", [u for u in REFUSED if "://" in u and u.isascii()])
def test_redirect_to_a_refused_url_reaches_nothing_more(url: str) -> None:
    """What is refused as a URL is refused as the target of a redirect."""
    clean = url.replace("\r", "").replace("\n", "")
    head = f"HTTP/1.1 302 Found\r\nLocation: {clean}\r\nContent-Length: 0\r\n\r\n"
    world = World(head.encode())
    if clean != url or clean.strip() != clean or not clean.isprintable():
        return  # a header cannot hold it
    if clean.startswith("//"):
        return  # a redirect may leave the scheme out; covered below
    with pytest.raises((RequestRefused, RequestFailed)):
        world.fetch("http://example.com/start")
    assert {"93.184.216.34"} == set(world.reached)
    assert [] == [address for address in world.reached if inside(address)]


@pytest.mark.parametrize(
    "location",
    ["//127.0.0.1/", "//localhost/x", "//user@example.com/", "\\\\127.0.0.1\\x"],
)
def test_redirect_without_a_scheme_is_checked(location: str) -> None:
    """A scheme-relative Location is joined first, then checked."""
    head = f"HTTP/1.1 301 Moved\r\nLocation: {location}\r\n\r\n".encode()
    world = World(head)
    with pytest.raises(RequestRefused):
        world.fetch("http://example.com/")
    assert ["93.184.216.34"] == world.reached


def test_every_answer_of_a_name_must_be_public() -> None:
    """One inner address among public ones is enough to refuse (DNS mix)."""
    world = World(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhi")
    with pytest.raises(RequestRefused, match=r"mixed\.test leads to this machine"):
        world.fetch("http://mixed.test/")


def test_rebinding_has_no_second_look() -> None:
    """The name is resolved once a hop; the checked address is the one connected to."""
    world = World(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhi")
    answers = [["93.184.216.34"], ["127.0.0.1"]]
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers.pop(0)

    answer = fetch("http://evil.test/", resolver=rebinding, connect=world.connect)
    assert b"hi" == answer.body
    assert (["evil.test"], ["93.184.216.34"]) == (asked, world.reached)


def test_rebinding_between_hops_is_seen() -> None:
    """A redirect to the same name is resolved and checked again."""
    world = World(b"HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n")
    answers = [["93.184.216.34"], ["127.0.0.1"]]
    with pytest.raises(RequestRefused, match="this machine"):
        fetch(
            "http://evil.test/",
            resolver=lambda host, port: answers.pop(0),
            connect=world.connect,
        )
    assert ["93.184.216.34"] == world.reached


@pytest.mark.parametrize(
    ("allowed", "url", "ok"),
    [
        ("127.0.0.1:8931", "http://127.0.0.1:8931/", True),
        ("127.0.0.1:8931", "http://127.0.0.1:8932/", False),
        ("127.0.0.1:8931", "http://127.0.0.2:8931/", False),
        ("127.0.0.1:8931", "http://0x7f.0.0.1:8931/", False),
        ("127.0.0.1:8931", "http://localhost:8931/", False),
        ("localhost", "http://localhost:8080/", True),
        ("localhost", "http://localhost:22/", False),
        ("intranet", "http://intranet/", True),
        ("INTRANET", "http://Intranet/", True),
        ("printer.local:631", "http://printer.local:631/", True),
        ("[::1]:9000", "http://[::1]:9000/", True),
        ("[::1]:9000", "http://[0:0::1]:9000/", True),
        ("example.com:22", "http://example.com:22/", True),
        ("metadata.google.internal", "http://metadata.google.internal/", False),
        ("169.254.169.254", "http://169.254.169.254/", True),
        ("localhost", "http://user@localhost/", False),
        ("localhost", "http://evil.localhost/", False),
        ("", "http://localhost/", False),
        ("*", "http://localhost/", False),
    ],
)
def test_allowed_hosts_are_exact(allowed: str, url: str, ok: bool) -> None:
    """A host is opened by its exact name, with its exact port where one is given."""
    world = World(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhi")
    if ok:
        assert b"hi" == world.fetch(url, allowed_hosts=(allowed,)).body
    else:
        with pytest.raises(RequestRefused):
            world.fetch(url, allowed_hosts=(allowed,))
        assert [] == world.reached


def test_redirect_inside_needs_the_name_too() -> None:
    """Allowing one inner host opens no other one behind a redirect."""
    head = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9999/\r\n\r\n"
    with pytest.raises(RequestRefused, match="port 9999"):
        World(head).fetch("http://intranet/", allowed_hosts=("intranet",))


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        ("http://Example.COM", "GET / HTTP/1.1", "example.com"),
        ("http://example.com:8080/a?b#c", "GET /a?b HTTP/1.1", "example.com:8080"),
        ("http://example.com?x=1", "GET /?x=1 HTTP/1.1", "example.com"),
        ("http://example.com/Köln", "GET /K%C3%B6ln HTTP/1.1", "example.com"),
        ("http://example.com/a%20b|c", "GET /a%20b%7Cc HTTP/1.1", "example.com"),
        ("http://bücher.example/", "GET / HTTP/1.1", "xn--bcher-kva.example"),
    ],
)
def test_request_as_sent(url: str, line: str, host: str) -> None:
    """Request line and Host header; no cookie, key, proxy or compression is asked."""
    seen: list[bytes] = []

    class Listening(World):
        def _serve(self, theirs: socket.socket) -> None:
            with theirs:
                seen.append(theirs.recv(65536))
                theirs.sendall(self.answer)

    Listening(b"HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\n").fetch(url)
    lines = seen[0].decode("ascii").split("\r\n")
    assert (line, f"Host: {host}") == (lines[0], lines[1])
    names = [text.partition(":")[0].lower() for text in lines[1:] if text]
    assert ["host", "user-agent", "accept", "accept-encoding", "connection"] == names


def _address_rows() -> list[tuple[str, bool]]:
    public = ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8"]
    inner = ["nonsense", "", "1.2.3", "::", "fe80::1%3", "2001:db8::", "9999::1"]
    return [(text, True) for text in public] + [(text, False) for text in inner]


@pytest.mark.parametrize(("address", "public"), _address_rows())
def test_addresses(address: str, public: bool) -> None:
    """Nothing is public unless it is known to be."""
    check: Callable[[str], str | None] = inside
    assert public == (check(address) is None)


@pytest.mark.parametrize("location", ["example.com:443", "example.com:80/x", "x:8080"])
def test_redirect_without_slashes_is_no_other_host(location: str) -> None:
    """A person may leave the scheme out; in a redirect the word before `:` is one."""
    head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode()
    world = World(head)
    with pytest.raises(RequestRefused, match="only http and https"):
        world.fetch("http://example.com/")
    assert ["93.184.216.34"] == world.reached
