"""Guarded HTTP client for URLs written by a model or a page.

Each hop is checked: the URL as text (`urls`) and every address that its name resolves
to (`addresses`). The connection goes to a checked address, while TLS and the Host
header keep the name; a name that resolves differently a moment later changes nothing.
Nothing is taken from the environment: no proxy, no cookie, no key. One deadline covers
everything, and received bytes are counted before and after decompression. A host that
the user allowed (`allowed_hosts`) may be private.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import re
import socket
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from email.message import Message

from msgspec import Struct

from neuraxis.sandbox.http.connection import (
    Clock,
    File,
    Flag,
    NotReached,
    RequestFailed,
    Wire,
    aside,
    secure,
)
from neuraxis.sandbox.http.urls import (
    RequestRefused,
    Url,
    check_address,
    follow,
    parse,
)

__all__ = ["Limits", "RequestFailed", "RequestRefused", "Response", "fetch", "send"]

MIB = 1024 * 1024
TEXT_TYPES = (
    "text/*",
    "application/json",
    "application/xml",
    "application/xhtml+xml",
    "application/javascript",
    "application/yaml",
    "application/x-yaml",
    "application/x-ndjson",
    "application/ndjson",
    "application/x-javascript",
    "application/csv",
    "application/toml",
    "application/*+json",
    "application/*+xml",
)
_MOST_MEMBERS = 1000
"""Maximum gzip members in one body; each costs time."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
Resolver = Callable[[str, int], Iterable[str]]
Connector = Callable[[str, int, float], socket.socket]


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a request. `content_types`: None allows any; "" a missing one."""

    seconds: float = 20.0
    connect_seconds: float = 5.0
    redirects: int = 5
    header_bytes: int = 64 * 1024
    body_bytes: int = 5 * MIB
    """Bytes as sent and after decompression; a longer plain body is cut."""
    content_types: tuple[str, ...] | None = TEXT_TYPES


class Response(Struct, frozen=True, kw_only=True):
    """Response of the last server; `truncated` says that the body was cut."""

    url: str
    status: int
    reason: str
    content_type: str
    charset: str | None
    body: bytes
    truncated: bool = False
    links: str = ""
    """The `Link` headers, joined by commas: they name the next page."""


def fetch(
    url: str,
    *,
    limits: Limits | None = None,
    allowed_hosts: Collection[str] = (),
    accept: str = "text/html, text/markdown, text/plain, application/json, */*;q=0.1",
    resolver: Resolver | None = None,
    connect: Connector | None = None,
    cancelled: Flag | None = None,
) -> Response:
    """GET a URL. Without a scheme https is tried, then http.

    Args:
        url: the URL as the model wrote it.
        limits: time, sizes, redirects and types; the defaults suit a text page.
        allowed_hosts: `host` or `host:port` that may be an inner one.
        accept: the value of the Accept header.
        resolver: stands in for the system's resolver in tests.
        connect: stands in for `socket.create_connection` in tests.
        cancelled: looked at ten times a second.

    Raises:
        RequestRefused: the URL, an address, a redirect or the answer breaks a rule.
        RequestFailed: the server could not be reached or broke off.
    """
    rules = limits or Limits()
    request = _Request(
        rules=rules,
        clock=_clock(rules, cancelled),
        allowed=tuple(allowed_hosts),
        accept=accept,
        resolver=resolver or _resolve,
        connect=connect or _connect,
    )
    forms = parse(url, request.allowed)
    for form in forms[:-1]:
        try:
            return _follow_all(form, request)
        except NotReached:
            continue
    return _follow_all(forms[-1], request)


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limits: Limits | None = None,
    allowed_hosts: Collection[str] = (),
    cancelled: Flag | None = None,
) -> Response:
    """Send a request of any method to one server.

    A redirect is followed for GET only, and only to the same host and scheme: what the
    request carries (keys, a body) was meant for that server.

    Args:
        method: GET, POST and so on.
        url: with its scheme.
        headers: beside Host, User-Agent and those of the body's length.
        body: None: the request has none.
        limits: time, sizes, redirects and types.
        allowed_hosts: `host` or `host:port` that may be an inner one.
        cancelled: looked at ten times a second.

    Raises:
        RequestRefused: the URL, a header, an address or the answer breaks a rule.
        RequestFailed: the server could not be reached or broke off.
    """
    rules = limits or Limits(content_types=None)
    fields = {"Accept": "*/*", **(headers or {})}
    if not _METHOD.fullmatch(method):
        raise RequestRefused(f"{method[:40]!r} is no HTTP method.")
    for name, value in fields.items():
        if name.lower() in OWN_HEADERS:
            raise RequestRefused(f"The header {name} is set by the connection itself.")
        if not is_header_name(name) or not _HEADER_VALUE.fullmatch(value):
            raise RequestRefused(
                f"The header {name[:60]!r} must be one line of printable characters."
            )
    request = _Request(
        rules=rules,
        clock=_clock(rules, cancelled),
        allowed=tuple(allowed_hosts),
        accept=fields.pop("Accept"),
        resolver=_resolve,
        connect=_connect,
        method=method,
        headers=tuple(fields.items()),
        body=body,
    )
    return _follow_all(parse(url, request.allowed)[-1], request)


OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te"}
    | {"trailer", "keep-alive", "expect", "accept-encoding", "proxy-connection"}
)
"""Headers of the connection: another value could smuggle a second request."""
_METHOD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,16000}")


def is_header_name(name: str) -> bool:
    """Check whether a header may have the name."""
    return _METHOD.fullmatch(name) is not None


def _clock(rules: Limits, cancelled: Flag | None) -> Clock:
    end = time.monotonic() + rules.seconds
    return Clock(end=end, seconds=rules.seconds, cancelled=cancelled)


class _Request(Struct, frozen=True, kw_only=True):
    """State of a request that is the same for all redirects."""

    rules: Limits
    clock: Clock
    allowed: tuple[str, ...]
    accept: str
    resolver: Resolver
    connect: Connector
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    @property
    def bound(self) -> bool:
        """Whether the request was meant for one server only."""
        return self.method != "GET" or bool(self.headers)


def _follow_all(url: Url, request: _Request) -> Response:
    hops = 0
    while True:
        try:
            answer = _single_hop(url, request)
        except NotReached as error:
            if hops:  # the first server was reached, and asked for this one
                raise RequestFailed(str(error)) from None
            raise
        if isinstance(answer, Response):
            return answer
        if hops >= request.rules.redirects:
            raise RequestRefused(
                f"{url.host} redirects more than {request.rules.redirects} times."
            )
        hops += 1
        # a public page must not choose a page of a private host
        then = follow(url, answer, request.allowed if url.named else ())
        if request.bound and (then.scheme, then.authority) != (
            url.scheme,
            url.authority,
        ):
            raise RequestRefused(
                f"{url.host} redirects to {then.host}; a request with a key is made "
                "to the server it was meant for only."
            )
        url = then


# --- one hop -------------------------------------------------------------------


def _single_hop(url: Url, request: _Request) -> Response | str:
    """Return the response of one server, or the URL it redirects to."""
    with contextlib.ExitStack() as stack:
        raw = _connect_to_host(url, request)
        stack.callback(raw.close)
        raw.setblocking(False)
        sock: socket.socket = raw
        if url.scheme == "https":
            sock = secure(
                raw, url.host, url.port, request.clock, request.rules.connect_seconds
            )
            stack.callback(sock.close)
        wire = Wire(sock, request.clock, url.host)
        _send(wire, url, request)
        wire.budget = request.rules.header_bytes
        response = http.client.HTTPResponse(
            File(io.BufferedReader(wire, 16 * 1024)),  # pyright: ignore[reportArgumentType] it only asks for makefile
            method=request.method,
        )
        stack.callback(response.close)
        try:
            response.begin()
        except (http.client.HTTPException, ValueError, OSError) as error:
            raise RequestFailed(
                f"{url.host} did not answer as HTTP ({type(error).__name__})."
            ) from None
        # Bytes read ahead with the headers count against the body's limit.
        wire.budget = request.rules.body_bytes + 2 * MIB
        to = response.headers.get("location")
        if response.status in _REDIRECTS and to and request.method == "GET":
            return _location(to, url)
        return _answer(response, url, request)


def _location(header: str, url: Url) -> str:
    try:
        # Many servers write spaces in `Location`; browsers encode them.
        return header.encode("latin-1").decode("utf-8").replace(" ", "%20")
    except UnicodeError:
        raise RequestRefused(
            f"{url.host} redirects to something that is no URL."
        ) from None


def _answer(
    response: http.client.HTTPResponse, url: Url, request: _Request
) -> Response:
    headers: Message = response.headers
    kind = headers.get_content_type() if headers.get("content-type") else ""
    if response.status < 400:
        _check_type(kind, url, request.rules.content_types)
    try:
        body, truncated = _body(response, url, request.rules.body_bytes)
    except (http.client.HTTPException, ValueError) as error:
        raise RequestFailed(
            f"{url.host} broke its answer off ({type(error).__name__})."
        ) from None
    charset = headers.get_content_charset()
    return Response(
        url=str(url),
        status=response.status,
        reason=_plain(response.reason),
        content_type=kind,
        charset=charset,
        body=body,
        truncated=truncated,
        links=", ".join(headers.get_all("link") or ())[:4000],
    )


def _check_type(kind: str, url: Url, allowed: tuple[str, ...] | None) -> None:
    if allowed is None:
        return
    for pattern in allowed:
        start, star, end = pattern.partition("*")
        if kind == pattern or (star and kind.startswith(start) and kind.endswith(end)):
            return
    expected = "text (HTML, plain text, Markdown, JSON, XML)"
    if not set(TEXT_TYPES) <= set(allowed):
        expected = ", ".join(allowed)
    raise RequestRefused(
        f"{url.host} sent {_plain(kind) or 'no content type'}; only {expected} is read."
    )


def _plain(text: str) -> str:
    """Return a server's text as one short line without control characters."""
    return "".join(char for char in text if char.isprintable())[:100]


def _body(
    response: http.client.HTTPResponse, url: Url, limit: int
) -> tuple[bytes, bool]:
    encoding = (response.headers.get("content-encoding") or "identity").strip().lower()
    decoder = _decoder(encoding, url)
    body = bytearray()
    received = 0
    while piece := response.read(64 * 1024):
        received += len(piece)
        if decoder is None:
            body += piece
        else:
            # One byte over the limit distinguishes a bomb from a page of that size.
            body += decoder.decompress(piece, limit + 1 - len(body))
            if len(body) > limit or received > limit:
                raise RequestRefused(
                    f"{url.host} sent a compressed answer of more than {limit} bytes."
                )
        if len(body) > limit:
            return bytes(body[:limit]), True
    if response.length:
        raise RequestFailed(f"{url.host} closed the connection too early.")
    if decoder is not None and received and not decoder.whole:
        raise RequestFailed(f"{url.host} sent broken {encoding}.")
    return bytes(body), False


class _Decoder:
    """Decoder for gzip (any number of members) and deflate."""

    def __init__(self, encoding: str, bits: int, url: Url) -> None:
        self._encoding, self._bits, self._url = encoding, bits, url
        self._stream = zlib.decompressobj(bits)
        self._members = 1

    @property
    def whole(self) -> bool:
        """Whether the data read so far ends at a member's end."""
        return self._stream.eof

    def decompress(self, piece: bytes, room: int) -> bytes:
        """Decompress a piece to at most `room` bytes."""
        output = b""
        try:
            while piece and len(output) < room:
                if self._stream.eof and not self._another(piece):
                    break
                output += self._stream.decompress(piece, room - len(output))
                piece = self._stream.unused_data
        except zlib.error:
            raise RequestFailed(
                f"{self._url.host} sent broken {self._encoding}."
            ) from None
        return output

    def _another(self, piece: bytes) -> bool:
        """Check whether another gzip member follows, rather than padding."""
        if self._bits <= zlib.MAX_WBITS or piece[:1] != b"\x1f":
            return False
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise RequestRefused(
                f"{self._url.host} sent a compressed answer of too many parts."
            )
        self._stream = zlib.decompressobj(self._bits)
        return True


def _decoder(encoding: str, url: Url) -> _Decoder | None:
    if encoding == "identity":
        return None
    if encoding in ("gzip", "x-gzip"):
        return _Decoder(encoding, 16 + zlib.MAX_WBITS, url)
    if encoding == "deflate":
        return _Decoder(encoding, zlib.MAX_WBITS, url)
    raise RequestRefused(f"{url.host} sent the encoding {encoding[:40]!r} unasked.")


def _send(wire: Wire, url: Url, request: _Request) -> None:
    lines = [
        f"{request.method} {url.target} HTTP/1.1",
        f"Host: {url.authority}",
        "User-Agent: neuraxis (+https://pypi.org/project/neuraxis)",
        f"Accept: {request.accept}",
        "Accept-Encoding: identity",
        "Connection: close",
        *(f"{name}: {value}" for name, value in request.headers),
    ]
    if request.body is not None:
        lines.append(f"Content-Length: {len(request.body)}")
    wire.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    if request.body:
        wire.send(request.body)


# --- addresses and connections -------------------------------------------------


def _connect_to_host(url: Url, request: _Request) -> socket.socket:
    """Connect to a checked address of the host."""
    addresses = _addresses(url, request)
    for address in addresses:
        seconds = min(request.clock.remaining(), request.rules.connect_seconds)
        try:
            return aside(
                functools.partial(request.connect, address, url.port, seconds),
                request.clock,
                lambda late: late.close(),
            )
        except OSError:
            continue
    raise NotReached(f"{url.host} could not be reached on port {url.port}.")


def _addresses(url: Url, request: _Request) -> Sequence[str]:
    if url.address:
        addresses: Sequence[str] = (url.host,)
    else:
        try:
            addresses = aside(
                lambda: list(dict.fromkeys(request.resolver(url.host, url.port))),
                request.clock,
            )
        except (OSError, UnicodeError):
            addresses = ()
    if not addresses:
        raise NotReached(f"{url.host}: there is no such host.")
    for address in addresses:
        check_address(url, address)
    return addresses


def _resolve(host: str, port: int) -> list[str]:
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


def _connect(address: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((address, port), timeout=seconds)
