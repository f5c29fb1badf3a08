"""A person's yes to one exact call: bound to its digest, used once, soon worthless.

A call flows in, its digest flows out; a yes is kept under the digest until the call is
made. Whatever changes in the call (an argument, the command's description or schema)
changes the digest, so that the yes is no longer for it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from neuraxis.specs import CommandSpec, Json

EXPIRES = 300.0
"""Seconds after which a yes is for nothing, and a question without answer a no."""
MOST_REFUSALS = 3
"""After so many times no in one run nobody is asked again: who is asked for ever says
yes in the end."""


def spec_digest(spec: CommandSpec) -> str:
    """What a command is: its name, what it says of itself, its schemas and effects."""
    effects = spec.effects
    return _digest(
        {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
            "response": spec.response,
            "effects": [effects.kind, effects.destructive, effects.open_world],
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
    """The digest of a whole plan: its calls as they are written, in their order."""
    return _digest([call_digest(*call) for call in calls])


def _digest(value: Any) -> str:
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), default=_object, ensure_ascii=True
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _object(value: Any) -> Json:
    """What stands for an object that JSON cannot say: nothing else is like it."""
    if isinstance(value, bytes | bytearray):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    return {
        "object": f"{type(value).__module__}.{type(value).__qualname__}#{id(value)}"
    }


@dataclass(slots=True, kw_only=True)
class Approvals:
    """Yeses of one session that were not used yet.

    Args:
        yes_to: patterns of `plugin.command` that never need to be asked about.
        expires: seconds that a yes is good for.
        clock: for tests.
    """

    yes_to: Sequence[str] = ()
    expires: float = EXPIRES
    clock: Callable[[], float] = time.monotonic
    _granted: dict[str, float] = field(default_factory=dict[str, float])

    def always(self, target: str) -> bool:
        """Whether the person said beforehand that it may run."""
        return any(fnmatchcase(target, pattern) for pattern in self.yes_to)

    def grant(self, digest: str) -> None:
        """A person said yes to the call of this digest."""
        self._granted[digest] = self.clock() + self.expires

    def take(self, digest: str) -> bool:
        """Whether there is a yes for it that is still good; it is used up by this."""
        until = self._granted.pop(digest, None)
        return until is not None and self.clock() < until

    def close(self) -> None:
        """Forget all of them: the plan they were given for has changed."""
        self._granted.clear()
