"""Approvals over MCP: the client's person is asked by an elicitation.

Revision 2025-11-25 asks while the call waits; 2026-07-28 answers the call with the
question, and the client calls again with its answer. Without that ability: refused.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import mcp_types as types
from mcp import MCPError

from neuraxis.bridges.json_shapes import as_map
from neuraxis.bridges.mcp_server.client import (
    MOST_WAITING,
    McpClient,
    calling,
    form,
)
from neuraxis.events import ApprovalAsked
from neuraxis.policy.approvals import EXPIRES
from neuraxis.policy.gate import NobodyToAsk

KEY = "approval"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "allow": {"type": "boolean", "title": "Allow this call", "default": False}
    },
    "required": ["allow"],
}


class NeedsYes(Exception):
    """A call that waits for the yes of the client's person."""

    def __init__(self, asked: ApprovalAsked) -> None:
        super().__init__(asked.id)
        self.asked = asked


async def approve(asked: ApprovalAsked) -> bool:
    """Ask the person behind the current request.

    Raises:
        NobodyToAsk: the client has no way to ask, or has not asked yet.
    """
    client = calling()
    if client is None or not client.can("elicitation"):
        raise NobodyToAsk("this MCP client cannot ask its user (elicitation)")
    if client.said_no:
        return False
    if client.is_modern and not client.runs_plan:
        client.waiting = asked
        raise NobodyToAsk("the MCP client asks its user, and then calls again")
    try:
        answers = await client.ask(**{KEY: form(question_text(asked), _SCHEMA)})
    except (MCPError, ValueError) as error:
        raise NobodyToAsk(f"the MCP client did not ask its user: {error}") from error
    return bool(answers[KEY]) and answers[KEY].get("allow") is True


def is_yes(answer: Any) -> bool:
    """Check whether an elicitation's answer allows the call."""
    content = as_map(getattr(answer, "content", None))
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
        request = form(question_text(asked), _SCHEMA)
        return types.InputRequiredResult(
            input_requests={KEY: request}, request_state=token
        )

    def holds(self, token: str) -> bool:
        """Check whether a call with this state answers a question."""
        return token in self._digests

    def answered(
        self, params: types.InputResponseRequestParams, client: McpClient
    ) -> str:
        """Return the digest of the call that was allowed; empty: none was.

        Args:
            params: of the call, with the answer to an earlier one.
            client: is told of a no, so that it is not asked again.
        """
        token = params.request_state or ""
        digest, until = self._digests.pop(token, ("", 0.0))
        answer = (params.input_responses or {}).get(KEY)
        if digest and not is_yes(answer):
            client.said_no = True
            return ""
        return digest if time.monotonic() < until else ""
