"""Transports of the MCP server: stdio, and HTTP on loopback only."""

from __future__ import annotations

import asyncio
import errno
import hmac
import socket
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any, TextIO

import anyio
from mcp.server.stdio import stdio_server

from neuraxis.bridges.mcp_server.server import McpService
from neuraxis.errors import ConfigError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


async def serve_stdio(service: McpService, stdout: TextIO) -> None:
    """Serve one client over standard input and output, until it closes them."""
    server = service.server()
    output = TextIOWrapper(stdout.buffer, encoding="utf-8")
    try:
        async with stdio_server(stdout=anyio.wrap_file(output)) as (incoming, outgoing):
            options = server.create_initialization_options()
            await server.run(incoming, outgoing, options)
    finally:
        output.detach()  # the caller owns it


def http_app(service: McpService, *, host: str = "127.0.0.1", token: str = "") -> Any:
    """Return an ASGI application that serves MCP at `/mcp`.

    Args:
        service: answers the requests.
        host: for the check of the Host header, against DNS rebinding.
        token: clients must send it as `Authorization: Bearer`; empty: none is required.
    """
    app = service.server().streamable_http_app(host=host)
    if not token:
        return app
    expected = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            credentials = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(credentials, expected):
                await send(
                    {"type": "http.response.start", "status": 401, "headers": []}
                )
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return guarded


async def serve_http(
    service: McpService,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve MCP over HTTP on loopback, until cancelled.

    Args:
        service: what answers.
        host: a loopback address.
        port: 0: any free port.
        token: as for `http_app`.
        started: receives the URL.

    Raises:
        ConfigError: the host is not loopback, or the port cannot be used.
    """
    if host not in LOOPBACK:
        raise ConfigError(
            f"--host: expected one of {', '.join(LOOPBACK)}, got {host!r}"
        )
    import uvicorn  # the SDK's HTTP server

    listening = _listening(host, port)
    config = uvicorn.Config(
        http_app(service, host=host, token=token),
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    try:
        while not (server.started or serving.done()):  # noqa: ASYNC110 - uvicorn has no event
            await asyncio.sleep(0.02)
        if server.started:
            started(f"http://{_address(host, listening.getsockname()[1])}/mcp")
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


def _listening(host: str, port: int) -> socket.socket:
    # uvicorn itself would exit if it cannot bind
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        at = _address(host, port)
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"--port: another program listens at {at}: end it, or name another "
                "port (0: a free one)"
            ) from None
        raise ConfigError(f"--port: cannot listen at {at}: {error.strerror}") from None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
