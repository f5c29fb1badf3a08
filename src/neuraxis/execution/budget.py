"""Budget limits of a run, and its usage of them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from neuraxis.formatting import Named
from neuraxis.messages import NOTHING_USED, Result
from neuraxis.messages import Usage as Tokens
from neuraxis.planning.for_each import is_of


class Budget(Struct, frozen=True, kw_only=True, metaclass=Named):
    """Limits of one run of a session."""

    model_calls: int = 20
    """Maximum replies of the model; then the run ends with the outcome `budget`.

    Those of sessions inside its commands count, but the last is the session's own.
    """
    steps: int = 100
    """Maximum calls; further ones are refused, and the model is told why."""
    steps_per_tool: int = 50
    """Maximum calls of one command."""
    seconds: float = 600.0
    """Wall-clock limit; when it is reached, running commands stop and the run ends."""
    repeats: int = 2
    """Maximum times that the same call runs without another effect in between.

    A further one gets the earlier result; with an effect it fails instead, and only
    calls of earlier replies count. Equal items of a `for_each` are not the same call.
    """
    usd: float | None = None
    """Maximum cost of models in US dollars, checked before each reply."""


class Usage(Struct, kw_only=True):
    """Budget that a run has used; mutable."""

    model_calls: int = 0
    """Replies, with those of sessions inside commands."""
    steps: int = 0
    by_tool: dict[str, int] = {}
    seen: dict[str, list[Result]] = {}
    """Results by call, in completion order, since the last effect."""
    counted: list[tuple[str, str]] = []
    """Counted steps: call id and tool of each."""
    tokens: Tokens = NOTHING_USED
    """Of the models of sessions inside commands."""
    usd: float = 0.0
    """Cost of all replies whose price is known, in US dollars."""
    ended: dict[str, Result] = {}
    """Results of the current plan so far, stopped calls too, for a cut-off run."""

    crashed: set[str] = set()
    """Calls of which an unexpected exception was logged."""

    def replies(self, limit: int) -> Iterator[int]:
        """Count a run's own replies while the limit allows one."""
        own = 0
        while self.model_calls < limit:
            self.model_calls += 1
            own += 1
            yield own

    def take_back(self, gone: set[str]) -> None:
        """Uncount these calls, including those of all items of a `for_each`."""
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
