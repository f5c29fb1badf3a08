"""Collect candidate values for one parameter in one clause.

Typed parameters take typed spans; free texts are the pieces between the words that
lead up to a value. How well a candidate fits is read from the examples first (the
word before and behind), then from the language's rules, then from its shape.
"""

from __future__ import annotations

from neuraxis.models.local.planner.catalogue import Slot
from neuraxis.models.local.planner.slots import back_references, free_text, typed
from neuraxis.models.local.planner.slots.reading import MOST, SPANNED, Candidate, Reader


def candidates(reader: Reader, slot: Slot) -> list[Candidate]:
    """Return candidate values of a parameter, best first."""
    found: list[Candidate] = []
    match slot.kind:
        case "enum":
            found += typed.members(reader, slot)
        case "boolean":
            found += typed.switches(reader, slot)
        case "datetime":
            found += typed.moments(reader, slot)
        case "object":
            return []
        case kind if kind in SPANNED:
            found += typed.spans(reader, slot, SPANNED[kind])
        case _:
            found += free_text.candidates(reader, slot)
    if (
        slot.kind in ("date", "time", "datetime")
        and not found
        and slot.required
        and not slot.schema.get("format")
    ):
        found += free_text.candidates(reader, slot)
    found += back_references.candidates(reader, slot)
    found.sort(key=lambda item: -item.score)
    return found[:MOST]
