"""A plan in the making: what the planner and its helpers hand each other."""

from __future__ import annotations

from dataclasses import field

from neuraxis.later import dataclass
from neuraxis.models.local.llm.llama import Writer
from neuraxis.models.local.planner.catalogue import Catalogue, Tool
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.rank import Match
from neuraxis.models.local.planner.slots.fill import Filling


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A tool for a clause, with its parameters."""

    match: Match
    filling: Filling
    score: float

    @property
    def tool(self) -> Tool:
        """The tool that was chosen."""
        return self.match.tool


@dataclass(slots=True, kw_only=True)
class Work:
    """A plan in the making."""

    catalogue: Catalogue
    writer: Writer | None
    before: tuple[Step, ...] = ()
    """Steps of earlier messages: only their values can be carried."""
    steps: list[Step] = field(default_factory=list[Step])
    unnamed: set[int] = field(default_factory=set[int])
    """Steps whose file name was made up here."""
    notes: list[str] = field(default_factory=list[str])
