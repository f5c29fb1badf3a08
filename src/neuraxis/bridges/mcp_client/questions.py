"""Questions of MCP servers (elicitation and sampling), put to the person.

A server may ask only while one of its commands runs. The policy may deny, the person
answers, and where nobody can be asked the answer is no.
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
"""Questions of a server during one call; more are refused unasked."""
MOST_TEXT = 2_000


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A server's question: a form, a page to visit, or sampling."""

    server: str
    kind: Literal["form", "url", "sampling"]
    message: str
    """The server's own words, without escape codes."""
    schema: Mapping[str, Json] = {}
    """Of the form's content."""
    url: str = ""


QUESTIONS = tuple(CommandSpec(name=kind) for kind in ("form", "url", "sampling"))
"""What a server may ask, for policy rules."""
AnswerQuestion = Callable[[Question], Any]
"""The program's own answer: a mapping (content), True, or None for a refusal."""


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
        decision: Any = None
        if self.asked <= MOST_QUESTIONS:
            if answer is not None:
                given: object = answer(question)
                decision = await given if inspect.isawaitable(given) else given
            elif self.outer is not None:
                decision = (
                    True if await _by_person(question, self.outer, self.asked) else None
                )
        if decision is None or decision is False:
            self.refused += 1
            return None
        return decision


async def _by_person(question: Question, outer: ParentRun, number: int) -> bool:
    gate = outer.runtime.gate
    spec = CommandSpec(name=question.kind, description=question.message)
    arguments: dict[str, Json] = {"message": question.message}
    if question.url:
        arguments["url"] = question.url
    if question.schema:
        arguments["form"] = dict(question.schema)
    # a rule may forbid it; what allows commands does not answer a server's questions
    rules = Policy(rules=gate.policy.rules, default=_default(gate.policy))
    decision = rules.decide(question.server, spec, arguments)
    if decision.verdict == "deny":
        return False
    target = f"{question.server}.{question.kind}"
    if gate.approvals.always(target):
        return True
    digest = call_digest(question.server, spec, arguments)
    reason = f"the MCP server {question.server} asks this while its command runs"
    asked = ApprovalAsked(
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
    work = _put(asked, digest, gate)
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


async def _put(asked: ApprovalAsked, digest: str, gate: Gate) -> bool:
    async with gate.approvals.one_by_one:
        return not await ask_person(asked, lambda: digest, gate)


def form_content(given: Any, schema: Mapping[str, Json]) -> dict[str, Json] | None:
    """Return the content of an answered form; None: it cannot be filled.

    A yes fills in the defaults; a mapping is taken where it fits the schema.
    """
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    content: dict[str, Json] = {
        name: node["default"]
        for name, node in properties.items()
        if isinstance(node, Mapping) and "default" in node
    }
    if isinstance(given, Mapping):
        content.update(cast("Mapping[str, Json]", given))
    return (
        content
        if Schema({**schema, "x-formats": "annotation"}).valid(content)
        else None
    )


def message_text(text: str) -> str:
    """Return a server's message, safe to show."""
    return visible(text, MOST_TEXT)
