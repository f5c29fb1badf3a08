"""limits and what is used of them."""

from __future__ import annotations

from msgspec import Struct, field

from neuraxis.messages import NOTHING_USED, Result
from neuraxis.messages import Usage as Tokens
from neuraxis.policy.provenance.tracker import is_of


class Budget(Struct, frozen=True, kw_only=True):
    """Limits of one run of a session."""

    model_calls: int = 20
    """Replies that the model is asked for; then the run ends with `budget`."""
    steps: int = 100
    """Calls that are run; further ones are refused, and the model is told."""
    steps_per_tool: int = 50
    """The same, of one command."""
    seconds: float = 600.0
    """By the clock; then what runs is stopped, and the run ends with `budget`."""
    repeats: int = 2
    """How often the same call may run while nothing with an effect came between.

    Equal items of one `for_each` are not the same call: each is asked for.
    """
    usd: float | None = None
    """US dollars that models may cost; the run ends with the reply that reaches it."""


class Usage(Struct, kw_only=True):
    """What a run has used of its budget; the only thing here that changes."""

    steps: int = 0
    by_tool: dict[str, int] = field(default_factory=dict[str, int])
    seen: dict[str, list[Result]] = field(default_factory=dict[str, list[Result]])
    """What each call gave, in the order of their ends, since the last effect."""
    counted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Each step that is counted above: its call id and its tool."""
    tokens: Tokens = NOTHING_USED
    """Of the models of sessions inside of commands."""
    usd: float = 0.0
    """Cost of all replies whose price is known, in US dollars."""
    ended: dict[str, Result] = field(default_factory=dict[str, Result])
    """What the steps of a plan gave so far, for when it is cut off."""

    def take_back(self, gone: set[str]) -> None:
        """These calls, or these of all items of a step, do not count after all."""
        for call_id, tool in self.counted:
            if is_of(call_id, gone):
                self.steps -= 1
                self.by_tool[tool] -= 1
        self.counted = [one for one in self.counted if not is_of(one[0], gone)]
        kept = {
            key: [one for one in results if not is_of(one.call.id, gone)]
            for key, results in self.seen.items()
        }
        self.seen = {key: results for key, results in kept.items() if results}
