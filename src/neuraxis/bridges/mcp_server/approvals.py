"""Approvals over MCP: the client's person is asked by an elicitation.

Revision 2025-11-25 asks while the call waits; 2026-07-28 answers the call with the
question, and the client calls again with its answer. Without that ability: refused.
"""

from __future__ import annotations

import contextvars
import json
import secrets
import time
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext

from neuraxis.bridges.json_shapes import mapping
from neuraxis.events import ApprovalAsked
from neuraxis.policy.approvals import EXPIRES

KEY = "approval"
MOST_WAITING = 1_000
"""Questions without an answer that are remembered."""
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "allow": {"type": "boolean", "title": "Allow this call", "default": False}
    },
    "required": ["allow"],
}


class Asker:
    """Asks the person behind one request."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._context = context
        self.said_no = False
        """The person answered this request already."""
        self.waiting: ApprovalAsked | None = None
        """A question that only the answer to the request can ask."""

    @property
    def is_modern(self) -> bool:
        """Whether the protocol is one of requests without a session."""
        return self._context.protocol_version >= "2026"

    def _can_ask(self) -> bool:
        wanted = types.ClientCapabilities(
            elicitation=types.ElicitationCapability(
                form=types.FormElicitationCapability()
            )
        )
        return self._context.session.check_client_capability(wanted)

    async def ask(self, asked: ApprovalAsked) -> bool:
        """Return whether the person said yes."""
        if self.said_no or not self._can_ask():
            return False
        if self.is_modern:
            self.waiting = asked
            return False
        try:
            answer = await self._context.session.elicit_form(
                question_text(asked), _SCHEMA, self._context.request_id
            )
        except MCPError:
            return False
        return is_yes(answer)


CURRENT: contextvars.ContextVar[Asker | None] = contextvars.ContextVar(
    "neuraxis_mcp_asker", default=None
)
"""Who asks for the request that is being answered."""


async def approve(asked: ApprovalAsked) -> bool:
    """Ask the person behind the current request, where there is one."""
    asker = CURRENT.get()
    return asker is not None and await asker.ask(asked)


def is_yes(answer: Any) -> bool:
    """Check whether an elicitation's answer allows the call."""
    content = mapping(getattr(answer, "content", None))
    return getattr(answer, "action", "") == "accept" and content.get("allow") is True


def question_text(asked: ApprovalAsked) -> str:
    """Return the question in words: what would run, and why."""
    call: Any = asked.call or {}
    calls = list(asked.plan) or [call]
    lines = [
        f"{one.get('plugin')}.{one.get('command')} "
        f"{json.dumps(one.get('arguments'), ensure_ascii=False, default=str)}"
        for one in calls
    ]
    return "\n".join(["May this run?", *lines, f"Why this is asked: {asked.reason}"])


class Waiting:
    """Questions that were sent as answers, until the client calls again."""

    def __init__(self) -> None:
        self._digests: dict[str, tuple[str, float]] = {}

    def question(self, asked: ApprovalAsked) -> types.InputRequiredResult:
        """Return the answer to a call that needs a yes."""
        token = secrets.token_urlsafe(24)
        while len(self._digests) >= MOST_WAITING:
            del self._digests[next(iter(self._digests))]
        self._digests[token] = (asked.digest, time.monotonic() + EXPIRES)
        request = types.ElicitRequest(
            params=types.ElicitRequestFormParams(
                message=question_text(asked), requested_schema=_SCHEMA
            )
        )
        return types.InputRequiredResult(
            input_requests={KEY: request}, request_state=token
        )

    def answered(self, params: types.CallToolRequestParams, asker: Asker) -> str:
        """Return the digest of the call that was allowed; empty: none was.

        Args:
            params: of the call, with the answer to an earlier one.
            asker: is told of a no, so that it does not ask again.
        """
        token = params.request_state or ""
        digest, until = self._digests.pop(token, ("", 0.0))
        answer = (params.input_responses or {}).get(KEY)
        if digest and not is_yes(answer):
            asker.said_no = True
            return ""
        return digest if time.monotonic() < until else ""
