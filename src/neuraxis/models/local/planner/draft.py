"""Plan draft that the planner and its helpers share."""

from __future__ import annotations

from msgspec import Struct, field

from neuraxis.models.gguf.llama import Writer
from neuraxis.models.local.planner.catalogue import Catalogue, Tool
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.rank import Match
from neuraxis.models.local.planner.slots.fill import Filling


class Choice(Struct, frozen=True, kw_only=True):
    """A tool for a clause, with its parameters."""

    match: Match
    filling: Filling
    score: float

    @property
    def tool(self) -> Tool:
        """The tool that was chosen."""
        return self.match.tool


class Work(Struct, kw_only=True):
    """A plan in the making."""

    catalogue: Catalogue
    writer: Writer | None
    before: tuple[Step, ...] = ()
    """Steps of earlier messages: only their values can be carried."""
    steps: list[Step] = field(default_factory=list[Step])
    unnamed: set[int] = field(default_factory=set[int])
    """Steps whose file name was made up here."""
    notes: list[str] = field(default_factory=list[str])
