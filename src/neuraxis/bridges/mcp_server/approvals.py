"""Approvals over MCP: ask the client's user by an elicitation.

Revision 2025-11-25 asks while the call waits; 2026-07-28 answers the call with the
question, and the client calls again with its answer. Without that ability: refused.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp import MCPError

from neuraxis.bridges.mcp_server.client import (
    MOST_WAITING,
    McpClient,
    calling,
    form,
)
from neuraxis.events import ApprovalAsked
from neuraxis.formatting import visible
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.policy.approvals import EXPIRES
from neuraxis.policy.gate import NobodyToAsk
from neuraxis.specs import Json

KEY = "approval"
_ONCE = "only what is shown here"


class NeedsYes(Exception):
    """Raised for a call that needs the client user's approval."""

    def __init__(self, asked: ApprovalAsked) -> None:
        super().__init__(asked.id)
        self.asked = asked


async def approve(event: ApprovalAsked) -> bool | str:
    """Ask the user of the current request's client.

    Raises:
        NobodyToAsk: the client has no way to ask, or has not asked yet.
    """
    client = calling()
    if client is None or not client.can("elicitation"):
        raise NobodyToAsk("this MCP client cannot ask its user (elicitation)")
    if client.refused:
        return False
    if client.is_modern and not client.runs_plan:
        client.waiting = event
        raise NobodyToAsk("the MCP client asks its user, and then calls again")
    try:
        answers = await client.ask(**{KEY: _question(event)})
    except (MCPError, ValueError) as error:
        raise NobodyToAsk(f"the MCP client gave no valid answer: {error}") from error
    return _allowed_by_form(as_map(answers[KEY]), event)


def _allowed_by_form(content: Mapping[str, Any], event: ApprovalAsked) -> bool | str:
    """Return what a filled-in form approves: nothing, the call, or an offer."""
    if content.get("allow") is not True:
        return False
    wider = content.get("more")
    return str(wider) if wider in event.offers else True


def _question(event: ApprovalAsked) -> types.ElicitRequest:
    allow: Json = {"type": "boolean", "title": "Allow this call", "default": False}
    fields: dict[str, Json] = {"allow": allow}
    if event.offers:
        fields["more"] = {
            "type": "string",
            "title": "What is allowed",
            "enum": [_ONCE, *event.offers],
            "default": _ONCE,
        }
    schema: dict[str, Json] = {"type": "object", "properties": fields}
    return form(question_text(event), {**schema, "required": ["allow"]})


def question_text(event: ApprovalAsked) -> str:
    """Return the question as text: what would run, and why."""
    call: Any = event.call or {}
    calls: list[Any] = list(event.plan) or [call]
    lines: list[str] = []
    for one in calls:
        arguments = json.dumps(one.get("arguments"), ensure_ascii=False, default=str)
        lines.append(f"{one.get('plugin')}.{one.get('command')} {arguments}")
        lost_lines = [
            " ".join(str(line).splitlines()) for line in as_list(one.get("lost"))
        ]
        lines += [f"  {visible(line)}" for line in lost_lines]
    return "\n".join(["May this run?", *lines, f"Why this is asked: {event.reason}"])


class Waiting:
    """Questions that were sent as answers, until the client calls again."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[ApprovalAsked, float]] = {}

    def question(self, event: ApprovalAsked) -> types.InputRequiredResult:
        """Return the answer to a call that needs an approval."""
        token = secrets.token_urlsafe(24)
        while len(self._asked) >= MOST_WAITING:
            del self._asked[next(iter(self._asked))]
        self._asked[token] = (event, time.monotonic() + EXPIRES)
        return types.InputRequiredResult(
            input_requests={KEY: _question(event)}, request_state=token
        )

    def holds(self, token: str) -> bool:
        """Check whether a call with this state answers a question."""
        return token in self._asked

    def answered(
        self, params: types.InputResponseRequestParams, client: McpClient
    ) -> tuple[str, str]:
        """Return the approved call's digest and an offer, or empty texts.

        Args:
            params: of the call, with the answer to an earlier one.
            client: records a refusal, so that it is not asked again.
        """
        token = params.request_state or ""
        if token not in self._asked:
            return "", ""
        event, until = self._asked.pop(token)
        answer = (params.input_responses or {}).get(KEY)
        accepted = getattr(answer, "action", "") == "accept"
        allowed = accepted and _allowed_by_form(
            as_map(getattr(answer, "content", None)), event
        )
        if allowed is False:
            client.refused = True
        if allowed is False or time.monotonic() >= until:
            return "", ""
        return event.digest, allowed if isinstance(allowed, str) else ""
