"""Budget limits of a run, and its usage of them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from neuraxis.formatting import Named
from neuraxis.messages import NOTHING_USED, Result
from neuraxis.messages import Usage as Tokens
from neuraxis.planning.plan import belongs_to


class Budget(Struct, frozen=True, kw_only=True, metaclass=Named):
    """Limits of one run of a session."""

    model_calls: int = 20
    """Maximum replies of the model; then the run ends with the outcome `budget`.

    Replies in nested sessions count, but the last one is the session's own.
    """
    steps: int = 100
    """Maximum calls; further ones are refused with an error for the model."""
    steps_per_tool: int = 50
    """Maximum calls of one command."""
    seconds: float = 600.0
    """Wall-clock limit; when it is reached, running commands stop and the run ends."""
    repeats: int = 2
    """Maximum times that the same call may have run in earlier replies.

    Only runs since the last other effect count. A further call gets the earlier
    result; one with an effect fails instead. Equal calls of one reply all run.
    """
    usd: float | None = None
    """Maximum cost of models in US dollars, checked before each reply."""
    tokens: int | None = None
    """Maximum tokens of models, read and written, checked before each reply.

    They count as the server reports them; some servers report none.
    """


class Usage(Struct, kw_only=True):
    """Budget that a run has used; mutable."""

    model_calls: int = 0
    """Replies, with those in nested sessions."""
    steps: int = 0
    by_tool: dict[str, int] = {}
    seen: dict[str, list[Result]] = {}
    """Results by call, in completion order, since the last effect."""
    planned: set[str] = set()
    """Ids of the current plan's calls: equal ones among them all run."""
    counted: list[tuple[str, str]] = []
    """Counted steps: call id and tool of each."""
    tokens: Tokens = NOTHING_USED
    """Tokens of all replies, with those in nested sessions."""
    usd: float = 0.0
    """Cost of all replies whose price is known, in US dollars."""
    ended: dict[str, Result] = {}
    """Results of the current plan so far, also of stopped calls."""
    crashed: set[str] = set()
    """Ids of calls whose unexpected exception was logged."""

    def replies(self, limit: int) -> Iterator[int]:
        """Count a run's own replies while the limit allows one."""
        count = 0
        while self.model_calls < limit:
            self.model_calls += 1
            count += 1
            yield count

    def uncount(self, discarded: set[str]) -> None:
        """Remove these calls, and their loops' items, from the usage."""
        for call_id, tool in self.counted:
            if belongs_to(call_id, discarded):
                self.steps -= 1
                self.by_tool[tool] -= 1
        self.counted = [
            item for item in self.counted if not belongs_to(item[0], discarded)
        ]
        remaining = {
            key: [item for item in results if not belongs_to(item.call.id, discarded)]
            for key, results in self.seen.items()
        }
        self.seen = {key: results for key, results in remaining.items() if results}
