"""Approvals of one exact call or plan, bound to its digest.

An approval is stored under the call's digest until the call runs, for a limited time.
Any change of the call (an argument, the command's description or schema) changes the
digest, so that the approval no longer applies. An approval of a plan covers each of
its calls once, and only what the user could see of it: a value that was unknown then
is not approved.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from msgspec import Struct, field

from neuraxis.messages import Path
from neuraxis.planning.plan import Step
from neuraxis.policy.provenance.labels import Label
from neuraxis.specs import CommandSpec, Json

EXPIRES = 300.0
"""Seconds after which a yes is for nothing, and a question without answer a no."""
MOST_REFUSALS = 3
"""After so many times no in one run nobody is asked again: who is asked for ever says
yes in the end."""


def spec_digest(spec: CommandSpec) -> str:
    """Return the digest of a command's name, description, schemas and effects."""
    effects = spec.effects
    return _digest(
        {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
            "response": spec.response,
            "effects": [
                effects.kind,
                effects.destructive,
                effects.open_world,
                effects.public,
            ],
        }
    )


def call_digest(plugin: str, spec: CommandSpec, arguments: Json) -> str:
    """The digest of one exact call, with its references resolved."""
    return _digest(
        {
            "plugin": plugin,
            "command": spec.name,
            "spec": spec_digest(spec),
            "arguments": arguments,
        }
    )


def plan_digest(calls: Sequence[tuple[str, CommandSpec, Json]]) -> str:
    """Return the digest of a plan: its calls in order, as written."""
    return _digest([call_digest(*call) for call in calls])


def value_digest(value: Any) -> str:
    """The digest of one value of a call."""
    return _digest(value)


def _digest(value: Any) -> str:
    return _sha256(_form(value).encode())


def _form(value: Any) -> str:
    """Return a unique text for a value."""
    match value:
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return f"{{{','.join(sorted(f'{_form(k)}:{_form(v)}' for k, v in pairs))}}}"
        case list() | tuple():
            return f"[{','.join(map(_form, cast('Sequence[Any]', value)))}]"
        case bytes() | bytearray():
            return f"<{_sha256(value)}>"
        case int() if not isinstance(value, bool):
            return hex(value)  # a long one has no other text
        case None | bool() | float() | str():
            return repr(value)
        case _:
            return f"<{type(value).__module__}.{type(value).__qualname__}#{id(value)}>"


def _sha256(data: bytes | bytearray) -> str:
    import hashlib  # slow to import, and needed where a person is asked only

    return hashlib.sha256(data).hexdigest()


Place = tuple[Path, str, Label]
"""A value that matters, by its digest, and what it came from."""


class Seen(Struct, frozen=True, kw_only=True):
    """One call of an approved plan, as the user saw it.

    Args:
        reason: why it was asked about.
        places: the values that it was asked about for; there may be none.
    """

    reason: str
    places: frozenset[Place] = frozenset()


class _PlanYes(Struct, frozen=True, kw_only=True):
    """Approval of a plan; `now` returns the current digest."""

    digest: str
    until: float
    written: str
    now: Callable[[], str]


class Approvals(Struct, kw_only=True):
    """Yeses of one session that were not used yet.

    Args:
        yes_to: patterns of `plugin.command` that never need to be asked about.
        expires: seconds that a yes is good for.
        clock: for tests.
    """

    yes_to: Sequence[str] = ()
    expires: float = EXPIRES
    clock: Callable[[], float] = time.monotonic
    offered: set[str] = field(default_factory=set[str])
    """The wider yeses that hold for this session, in their words."""
    _granted: dict[str, float] = field(default_factory=dict[str, float])
    one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A person is asked one thing at a time: the next may be in what they answer."""
    steps: Sequence[Step] = ()
    """The plan that is running."""
    _plan: _PlanYes | None = None
    _seen: dict[str, Seen] = field(default_factory=dict[str, Seen])
    _refused: dict[str, str] = field(default_factory=dict[str, str])

    def always(self, target: str) -> bool:
        """Whether the person said beforehand that it may run."""
        return any(fnmatchcase(target, pattern) for pattern in self.yes_to)

    def grant(self, digest: str) -> None:
        """A person said yes to the call of this digest."""
        self._granted[digest] = self.clock() + self.expires

    def take(self, digest: str) -> bool:
        """Consume a valid approval of the call, if there is one."""
        until = self._granted.pop(digest, None)
        return until is not None and self.clock() < until

    def holds(self, digest: str) -> bool:
        """As `take`, but the yes is not used up."""
        return self.clock() < self._granted.get(digest, 0.0)

    def begin(self, steps: Sequence[Step]) -> None:
        """Start a plan; approvals of an earlier plan expire."""
        self.steps = steps
        self.one_by_one = asyncio.Lock()  # of the loop that this plan runs in
        self._seen.clear()
        self._refused.clear()

    def grant_plan(
        self, digest: str, now: Callable[[], str], seen: Mapping[str, Seen]
    ) -> None:
        """A person said yes to a plan.

        Args:
            digest: of what was shown.
            now: gives the digest of the plan's calls as they are written.
            seen: by call id, the calls that were asked about.
        """
        until = self.clock() + self.expires
        self._plan = _PlanYes(digest=digest, until=until, written=now(), now=now)
        self._seen.update(seen)

    def is_settled(self, call_id: str) -> bool:
        """Whether a person answered for it, with others of its plan."""
        return call_id in self._seen or call_id in self._refused

    def take_step(self, call_id: str, reason: str, places: Iterable[Place]) -> str:
        """Consume a plan approval that covers this call; return the digest.

        Empty: there is none, or the call is asked about for what was not shown.
        """
        seen, plan = self._seen.pop(call_id, None), self._plan
        if seen is None or plan is None:
            return ""
        if plan.now() != plan.written:
            self._seen.clear()  # the plan has changed: all of it is closed
            return ""
        covered = seen.reason == reason and seen.places.issuperset(places)
        return plan.digest if covered and self.clock() < plan.until else ""

    def refuse(self, call_ids: Iterable[str], why: str) -> None:
        """The plan of these calls was not allowed; `why` is told."""
        self._refused.update(dict.fromkeys(call_ids, why))

    def refused(self, call_id: str) -> str:
        """Return why the plan of this call was refused, or empty."""
        return self._refused.get(call_id, "")
