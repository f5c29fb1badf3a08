"""Ask the user questions of MCP servers (elicitation and sampling).

A server may ask only while one of its commands runs. The policy may deny, else the user
answers; if the user cannot be asked, the question is declined.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import msgspec

from neuraxis import call_errors
from neuraxis.bridges.untrusted_text import visible
from neuraxis.events import ApprovalAsked
from neuraxis.execution.nested import ParentRun
from neuraxis.policy.approvals import call_digest
from neuraxis.policy.ask import ask_person
from neuraxis.policy.gate import Gate
from neuraxis.policy.rules import Policy
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec, Json

MOST_QUESTIONS = 5
"""Maximum questions of a server during one call; more are refused."""
MOST_TEXT = 2_000


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Question of a server: a form, a page to visit, or sampling."""

    server: str
    kind: Literal["form", "url", "sampling"]
    message: str
    """The server's message, without escape codes."""
    schema: Mapping[str, Json] = {}
    """Schema of the form's content."""
    url: str = ""


QUESTIONS = tuple(CommandSpec(name=kind) for kind in ("form", "url", "sampling"))
"""Kinds of questions, for policy rules."""
AnswerQuestion = Callable[[Question], Any]
"""The program's answer: a mapping (content), True, or None for a refusal."""


class RunningCall:
    """A running call, and the questions asked during it."""

    def __init__(self, server: str, outer: object) -> None:
        self.server = server
        self.outer = outer if isinstance(outer, ParentRun) else None
        self.asked = 0
        self.refused = 0

    async def allowed(self, question: Question, answer: AnswerQuestion | None) -> Any:
        """Return the answer: a mapping, True (go ahead), or None (no)."""
        self.asked += 1
        reply: Any = None
        if self.asked <= MOST_QUESTIONS:
            if answer is not None:
                result: object = answer(question)
                reply = await result if inspect.isawaitable(result) else result
            elif self.outer is not None:
                reply = (
                    True if await _ask_user(question, self.outer, self.asked) else None
                )
        if reply is None or reply is False:
            self.refused += 1
            return None
        return reply


async def _ask_user(question: Question, outer: ParentRun, number: int) -> bool:
    gate = outer.runtime.gate
    spec = CommandSpec(name=question.kind, description=question.message)
    arguments: dict[str, Json] = {"message": question.message}
    if question.url:
        arguments["url"] = question.url
    if question.schema:
        arguments["form"] = dict(question.schema)
    # a rule may forbid it; rules that allow commands do not answer questions
    rules = Policy(rules=gate.policy.rules, default=_default(gate.policy))
    decision = rules.decide(question.server, spec, arguments)
    if decision.verdict == "deny":
        return False
    target = f"{question.server}.{question.kind}"
    if gate.approvals.always(target):
        return True
    digest = call_digest(question.server, spec, arguments)
    reason = f"the MCP server {question.server} asks this while its command runs"
    event = ApprovalAsked(
        id=f"{outer.call_id}.question{number}",
        call={
            "plugin": question.server,
            "command": question.kind,
            "arguments": arguments,
        },
        reason=reason,
        digest=digest,
        summary=call_errors.summary(target, arguments, reason),
        origins=dict.fromkeys(arguments, f"written by the server {question.server}"),
    )
    work = _put(event, digest, gate)
    if asyncio.get_running_loop() is outer.loop:
        return await work
    try:
        future = asyncio.run_coroutine_threadsafe(work, outer.loop)
    except RuntimeError:  # the run has ended
        work.close()
        return False
    return await asyncio.wrap_future(future)


def _default(policy: Policy) -> Literal["ask", "deny"]:
    return "deny" if policy.default == "deny" else "ask"


async def _put(event: ApprovalAsked, digest: str, gate: Gate) -> bool:
    async with gate.approvals.one_by_one:
        return not await ask_person(event, lambda: digest, gate)


def form_content(answer: Any, schema: Mapping[str, Json]) -> dict[str, Json] | None:
    """Return an answered form's content; None: it cannot be filled in.

    An approval fills in the defaults; a mapping is used if it fits the schema.
    """
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    content: dict[str, Json] = {
        name: node["default"]
        for name, node in properties.items()
        if isinstance(node, Mapping) and "default" in node
    }
    if isinstance(answer, Mapping):
        content.update(cast("Mapping[str, Json]", answer))
    return (
        content
        if Schema({**schema, "x-formats": "annotation"}).valid(content)
        else None
    )


def message_text(text: str) -> str:
    """Return a server's message, safe to show."""
    return visible(text, MOST_TEXT)
