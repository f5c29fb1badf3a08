"""Fill the parameters of one call from one clause.

Every parameter gets candidates: typed spans, members of its enum, pieces of text
between the words that lead up to values, references to earlier results. A small beam
search takes the combination that fits best, overlaps nowhere and leaves least over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from neuraxis.models.local.planner.catalogue import Tool
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.slots.candidates import candidates
from neuraxis.models.local.planner.slots.reading import OPTIONAL, Candidate, Reader
from neuraxis.models.local.planner.tokens import Clause
from neuraxis.specs import Json

BEAM = 24
STRONG = frozenset({"quoted", "url", "path", "email"})


class Filling(Struct, frozen=True, kw_only=True):
    """What the clause gives for the tool's parameters."""

    arguments: Mapping[str, Json]
    missing: tuple[str, ...]
    """Required parameters without a value."""
    score: float
    left: tuple[int, ...]
    """Tokens with matter that no parameter took."""
    waste: float = 0.0
    """What leaving those tokens over costs."""
    left_spans: tuple[str, ...] = ()
    """Typed spans that no parameter took."""
    taken: Mapping[str, Candidate] = field(default_factory=dict[str, Candidate])


def fill(
    tool: Tool, clause: Clause, steps: Sequence[Step], language: Language
) -> Filling:
    """The best values for the tool's parameters."""
    reader = Reader.of(tool, clause, steps, language)
    ordered = sorted(tool.slots, key=lambda slot: not slot.required)
    beam: list[tuple[float, dict[str, Candidate], frozenset[int]]] = [
        (0.0, {}, frozenset())
    ]
    for slot in ordered:
        options = candidates(reader, slot)
        grown: list[tuple[float, dict[str, Candidate], frozenset[int]]] = []
        for score, taken, used in beam:
            grown.append((score - (1.0 if slot.required else 0.0), taken, used))
            for option in options:
                if option.tokens & used:
                    continue
                # An optional parameter must be worth its being there.
                gain = option.score + (1.0 if slot.required else -0.4)
                if not slot.required and option.score < OPTIONAL:
                    continue
                grown.append(
                    (score + gain, {**taken, slot.name: option}, used | option.tokens)
                )
        # What is left over is counted at once, so that long values are not cut off
        # the beam by short ones that look as good.
        grown.sort(key=lambda item: -(item[0] - reader.cost(item[2])))
        beam = grown[:BEAM]
    score, taken, used = max(beam, key=lambda item: item[0] - reader.cost(item[2]))
    left = reader.left(used)
    return Filling(
        arguments={
            slot.name: taken[slot.name].value
            for slot in tool.slots
            if slot.name in taken
        },
        missing=tuple(
            slot.name for slot in tool.slots if slot.required and slot.name not in taken
        ),
        score=score - reader.cost(used),
        left=left,
        waste=reader.cost(used),
        left_spans=tuple(
            clause.tokens[index].text
            for index in left
            if (span := clause.tokens[index].span) and span.kinds & STRONG
        ),
        taken=taken,
    )
