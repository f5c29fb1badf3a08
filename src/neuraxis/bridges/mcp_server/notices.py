"""Progress of a call as MCP notifications and log messages."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext

from neuraxis.bridges.mcp_server.client import McpClient
from neuraxis.events import CallProgress, Event


class Logging:
    """Sessions of older protocol revisions that want log messages."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()

    def set_level(
        self, context: ServerRequestContext[Any, Any], level: types.LoggingLevel
    ) -> None:
        """Handle a session's `logging/setLevel`; our messages have the level info."""
        if level in ("debug", "info"):
            self._wanted.add(_session(context))
        else:
            self._wanted.discard(_session(context))

    def wants(self, client: McpClient) -> bool:
        """Check whether the client wants log messages of the level info."""
        context = client.context
        if client.is_modern:
            return "info" in allowed_log_levels(context.protocol_version, context.meta)
        return _session(context) in self._wanted


def _session(context: ServerRequestContext[Any, Any]) -> str:
    headers = getattr(context.request, "headers", {})
    return str(headers.get("mcp-session-id", ""))  # stdio has one session


class Progress:
    """Passes progress on to the client, in order."""

    def __init__(self, client: McpClient, logging: Logging) -> None:
        self._client = client
        self._logging = logging
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[CallProgress | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def hear(self, event: Event) -> None:
        """Handle an event of the session; any thread may call it."""
        if isinstance(event, CallProgress):
            self._loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: CallProgress) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._send())
        self._queue.put_nowait(event)

    async def _send(self) -> None:
        number = 0
        while (event := await self._queue.get()) is not None:
            number += 1
            part = event.fraction
            done = float(number) if part is None else part * 100
            context = self._client.context
            await context.session.report_progress(
                done, None if part is None else 100.0, event.message
            )
            if event.message and self._logging.wants(self._client):
                params = types.LoggingMessageNotificationParams(
                    level="info", logger=event.id, data=event.message
                )
                await context.session.send_notification(
                    types.LoggingMessageNotification(params=params), context.request_id
                )

    async def close(self) -> None:
        """Send the remaining messages."""
        await asyncio.sleep(0)  # events of this loop are queued by now
        if self._task is not None:
            self._queue.put_nowait(None)
            await asyncio.gather(self._task, return_exceptions=True)
