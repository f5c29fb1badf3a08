"""Deferred questions: the user approves or refuses later.

If nobody can be asked now, the question is stored as an event and the run ends. When
the run resumes, the answer, another event, counts only for the call that was shown: the
same id, written arguments and description of the command. A question and its approval
expire at the time that is in the question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.call_errors import SAID_NO, no_from
from neuraxis.events import ApprovalAnswered, ApprovalAsked
from neuraxis.planning.plan import Step
from neuraxis.policy.approvals import call_digest
from neuraxis.specs import Json

EXPIRED = no_from("nobody: the question expired")


class Waits(Exception):
    """Ends the run, since a call waits for the user's answer."""


class Later(Struct, kw_only=True):
    """Questions and answers of a plan that may wait.

    Args:
        seconds: how long a question may be answered.
        postpones: whether further questions wait, too; else the user is asked now.
        asked: the open and answered questions, by call id.
        answered: the answers, by call id.
        clock: for tests.
    """

    seconds: float
    postpones: bool = True
    asked: Mapping[str, ApprovalAsked] = {}
    answered: Mapping[str, ApprovalAnswered] = {}
    clock: Callable[[], float] = time.time

    def question(self, asked: ApprovalAsked, step: Step) -> ApprovalAsked:
        """Return the question about this step as the journal stores it."""
        return replace(
            asked,
            id=step.call.id,
            digest=_digest(step, step.call.arguments),
            written=step.call.arguments,
            parameters=dict(step.command.spec.parameters),
            expires=self.clock() + self.seconds,
        )

    def answer_to(self, asked: ApprovalAsked, step: Step) -> str | None:
        """Return the answer, if any.

        "": approved; any other text: the refusal. It counts only if nothing changed.
        """
        known = self.asked.get(step.call.id)
        if known is None or not _is_same(known, asked):
            return None
        if no := self.refused(known.id):
            return no
        answer = self.answered.get(known.id)
        if self.clock() > known.expires:
            return EXPIRED
        if answer is None or _digest(step, known.written) != known.digest:
            return None
        return "" if step.call.arguments == edited(known, answer) else None

    def refused(self, call_id: str) -> str:
        """Return the user's refusal of this call, or empty.

        It holds whatever has changed since.
        """
        answer = self.answered.get(call_id.partition(".")[0])  # one for a whole loop
        if answer is None or answer.allowed:
            return ""
        return f"{SAID_NO}{answer.reason and f': {answer.reason}'}"

    def is_open(self, asked: ApprovalAsked) -> bool:
        """Whether this question is in the journal already."""
        known = self.asked.get(asked.id)
        return (
            known is not None
            and known.digest == asked.digest
            and _is_same(known, asked)
        )


def _is_same(known: ApprovalAsked, asked: ApprovalAsked) -> bool:
    """Whether two questions have the same reason, scripts and files."""
    one, other = (cast("dict[str, Json]", each.call) for each in (known, asked))
    return known.reason == asked.reason and all(
        one.get(part) == other.get(part) for part in ("code", "replaces", "reads")
    )


def edited(asked: ApprovalAsked, answer: ApprovalAnswered) -> Json:
    """Return the written arguments with the user's changes."""
    written, changed = asked.written, answer.arguments
    if isinstance(changed, dict) and isinstance(written, dict):
        return cast("dict[str, Json]", {**written, **changed})
    return written


def step_of(call_id: str, steps: Sequence[Step]) -> Step | None:
    """Return the step of a call or loop item."""
    whole = call_id.partition(".")[0]
    return next((step for step in steps if step.call.id == whole), None)


def _digest(step: Step, written: Json) -> str:
    """Return a digest that is the same in every process, references unresolved."""
    plugin, spec = step.command.plugin.name, step.command.spec
    bound: Json = {
        "id": step.call.id, "written": written, "for_each": step.call.for_each
    }  # fmt: skip
    return call_digest(plugin, spec, bound)
