"""Approvals of one exact call or plan, bound to its digest.

An approval is stored under the call's digest until the call runs, for a limited time.
Any change of the call (an argument, the command's description or schema) changes the
digest, so that the approval no longer applies. One of a plan is one of each call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from msgspec import Struct, field

from neuraxis.events import ApprovalAsked
from neuraxis.formatting import sha256
from neuraxis.planning.plan import Step
from neuraxis.specs import CommandSpec, Json

EXPIRES = 300.0
"""Seconds until an approval expires, and an unanswered question counts as refused."""
MOST_REFUSALS = 3
"""Refusals in a run after which the user is asked no more: asked for ever, people
approve in the end."""


def call_digest(plugin: str, spec: CommandSpec, arguments: Json) -> str:
    """Return the digest of one exact call, with its references resolved."""
    effects = spec.effects
    marks = [effects.kind, effects.destructive, effects.open_world, effects.public]
    texts = [plugin, spec.name, spec.description, spec.parameters, spec.response]
    return value_digest([texts, marks, arguments])


def value_digest(value: Any) -> str:
    """Return the digest of any value."""
    return sha256(_form(value).encode())


def with_integers(value: Any) -> Any:
    """Return a value with its whole floats as integers."""
    match value:
        case dict():
            entries = cast("dict[Any, Any]", value).items()
            return {key: with_integers(item) for key, item in entries}
        case list() | tuple():
            return [with_integers(item) for item in cast("Sequence[Any]", value)]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _form(value: Any) -> str:
    """Return a unique text for a value."""
    match value:
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return f"{{{','.join(sorted(f'{_form(k)}:{_form(v)}' for k, v in pairs))}}}"
        case list() | tuple():
            return f"[{','.join(map(_form, cast('Sequence[Any]', value)))}]"
        case bytes() | bytearray():
            return f"<{sha256(value)}>"
        case int() if not isinstance(value, bool):
            return hex(value)  # Python refuses to write a long one in decimal
        case None | bool() | float() | str():
            return repr(value)
        case _:
            return f"<{type(value).__module__}.{type(value).__qualname__}#{id(value)}>"


class Approvals(Struct, kw_only=True):
    """Approvals of one session that are not used yet.

    Args:
        yes_to: patterns of `plugin.command` that never need to be asked about.
        expires: seconds for which an approval is valid.
        clock: for tests.
    """

    yes_to: Sequence[str] = ()
    expires: float = EXPIRES
    clock: Callable[[], float] = time.monotonic
    offered: set[str] = set()
    """Wider approvals that hold for this session, by their text."""
    said_no: set[str] = set()
    """Digests of calls that were refused last; no wider approval covers them."""
    one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Serialises questions: the answer to one may cover the next."""
    steps: Sequence[Step] = ()
    """The plan that is running."""
    free: set[str] = set()
    """Its calls that may change any of the user's files, by a rule or the default."""
    _granted: dict[str, float] = {}
    _of_plan: dict[str, tuple[ApprovalAsked, str, str, float]] = {}
    """By call id: the question, the plan's digest, the refusal, and the expiry time."""

    def always(self, target: str) -> bool:
        """Whether a pattern of `yes_to` allows the command."""
        return any(fnmatchcase(target, pattern) for pattern in self.yes_to)

    def note(self, asked: ApprovalAsked, *, allowed: bool, wider: str) -> None:
        """Record an answer; `wider`: the offer that was approved, or empty."""
        if not allowed:
            self.said_no.update(asked.refuses)
            return
        self.said_no.difference_update(asked.refuses)
        if wider:
            self.offered.add(wider)

    def grant(self, digest: str) -> None:
        """Record the user's approval of the call with this digest."""
        self._granted[digest] = self.clock() + self.expires

    def take(self, digest: str) -> bool:
        """Consume a valid approval of the call, if there is one."""
        until = self._granted.pop(digest, None)
        return until is not None and self.clock() < until

    def holds(self, digest: str) -> bool:
        """Like `take`, but the approval is not consumed."""
        return self.clock() < self._granted.get(digest, 0.0)

    def begin(self, steps: Sequence[Step]) -> None:
        """Start a plan; approvals of an earlier plan expire."""
        self.steps = steps
        self.one_by_one = asyncio.Lock()  # of the loop that this plan runs in
        self.free.clear()
        self._of_plan.clear()

    def answer_plan(
        self, plan: str, calls: Iterable[ApprovalAsked], no: str = ""
    ) -> None:
        """Record the user's answer about calls of a plan; `no`: the refusal."""
        until = self.clock() + self.expires
        self._of_plan |= {asked.id: (asked, plan, no, until) for asked in calls}

    def take_step(self, asked: ApprovalAsked) -> str:
        """Consume a plan's approval of this exact call; return the plan's digest.

        Empty: there is none, the call has changed, or it needs approval for a reason
        that the user was not shown.
        """
        if not self.is_settled(asked.id) or self.refused(asked.id):
            return ""
        shown, plan, _, until = self._of_plan.pop(asked.id)
        same = shown.digest == asked.digest and asked.reason in shown.reason
        return plan if same and self.clock() < until else ""

    def is_settled(self, call_id: str) -> bool:
        """Whether the user answered about it together with its plan."""
        return call_id in self._of_plan

    def refused(self, call_id: str) -> str:
        """Return why the plan of this call was refused, or empty."""
        return self._of_plan[call_id][2] if self.is_settled(call_id) else ""
