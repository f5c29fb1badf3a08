"""Guarded HTTP for MCP: only the server's host and public hosts.

The user named the server. The hosts that it names for OAuth are untrusted: they must be
public, and the connection goes to the checked address.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from http.client import responses
from typing import Any

import anyio.to_thread
import httpx2
from mcp.client.streamable_http import streamable_http_client

from neuraxis.bridges.mcp_client.transport import MOST_MESSAGE, Inbox
from neuraxis.sandbox.http.addresses import inside, is_metadata

SECONDS = 30.0
STREAM_SECONDS = 300.0
"""Maximum seconds without a byte on an event stream."""


class RefusedAddress(httpx2.ConnectError):
    """Error: the server redirected the client to a private address."""


class TooLarge(httpx2.ReadError):
    """Error: an answer is larger than a message may be."""


class Counted(httpx2.AsyncByteStream):
    """Byte stream of a response that counts its bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MOST_MESSAGE:
                raise TooLarge(f"it sent a message over {MOST_MESSAGE >> 20} MiB")
            yield chunk

    async def aclose(self) -> None:
        """Close the response."""
        await self._stream.aclose()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to one host, and to public ones."""

    def __init__(self, own_host: str, inbox: Inbox) -> None:
        self._own = own_host
        self._inbox = inbox
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request if its host is allowed.

        Raises:
            RefusedAddress: its host is neither the server's nor public.
        """
        host = request.url.host
        if host != self._own:
            address = await _public(host, request.url.port or 443)
            request.extensions = {**request.extensions, "sni_hostname": host}
            request.url = request.url.copy_with(host=address)
        response = await self._inner.handle_async_request(request)
        if request.method == "POST" and host == self._own:
            self._inbox.status = response.status_code if response.is_error else 0
        kind = response.headers.get("content-type", "")
        stream = response.stream
        if not kind.startswith("text/event-stream") and isinstance(
            stream, httpx2.AsyncByteStream
        ):
            response.stream = Counted(stream)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


async def _public(host: str, port: int) -> str:
    try:
        found = await anyio.to_thread.run_sync(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
    except OSError as error:
        raise httpx2.ConnectError(f"{host}: there is no such host") from error
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        kind = "a metadata address" if is_metadata(address) else inside(address)
        if kind is not None:
            raise RefusedAddress(f"{host} leads to {kind}; it is not the server's host")
    return addresses[0]


def with_status(reason: str, inbox: Inbox) -> str:
    """Add the HTTP status to a failure's reason."""
    if not inbox.status:
        return reason
    phrase = responses.get(inbox.status, "")
    return f"{reason} ({f'HTTP {inbox.status} {phrase}'.rstrip()})"


def advice(inbox: Inbox, *, has_key: bool) -> str:
    """Return what to do about a failed request."""
    if inbox.status in (401, 403) and has_key:
        return "; it does not accept the key in its `headers` or `oauth`"
    if inbox.status in (401, 403):
        return (
            '; it wants a key: add "headers": {"Authorization": "Bearer secret://NAME"}'
            ' or "oauth" to its entry in a JSON file with mcpServers, and name that '
            "file instead of the URL"
        )
    if inbox.status in (404, 405):
        return "; is that the address of its MCP endpoint? It often ends in /mcp"
    return ""


@contextlib.asynccontextmanager
async def http(
    url: str, headers: Mapping[str, str], auth: httpx2.Auth | None, inbox: Inbox
) -> AsyncGenerator[tuple[Any, Any]]:
    """Exchange messages with a server over HTTP, without proxies."""
    client = httpx2.AsyncClient(
        transport=GuardedTransport(httpx2.URL(url).host, inbox),
        headers=dict(headers),
        auth=auth,
        timeout=httpx2.Timeout(SECONDS, read=STREAM_SECONDS),
        trust_env=False,
    )
    async with (
        client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MOST_MESSAGE
        ) as streams,
    ):
        yield streams
