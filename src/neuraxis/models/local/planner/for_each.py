"""Detect a clause that repeats one call for several values."""

from __future__ import annotations

import re

from neuraxis.models.local.planner import values
from neuraxis.models.local.planner.catalogue import Slot
from neuraxis.models.local.planner.draft import Choice
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.slots.fill import Filling
from neuraxis.models.local.planner.tokens import Clause
from neuraxis.specs import Json


def spread(part: Clause, choice: Choice, language: Language) -> list[dict[str, Json]]:
    """The arguments of a call for each: "fetch a and b"."""
    filling = choice.filling
    for slot in choice.tool.slots:
        value = filling.arguments.get(slot.name)
        if slot.kind in ("url", "path", "email"):
            taken = filling.taken.get(slot.name)
            more = [
                span.value
                for index in sorted({*filling.left, *(taken.tokens if taken else ())})
                if (span := part.tokens[index].span) and slot.kind in span.kinds
            ]
            if taken is not None and len(more) > 1:
                found = [values.convert(text, slot, language) for text in more]
                return [
                    {**filling.arguments, slot.name: item}
                    for item in found
                    if not isinstance(item, values.Nothing)
                ]
        elif slot.kind in ("place", "identifier") and isinstance(value, str):
            joined = "|".join(
                re.escape(word) for word in language.words("coordination")
            )
            parts = re.split(rf",\s*(?:(?:{joined})\s+)?|\s+(?:{joined})\s+", value)
            if len(parts) > 1 and all(text[:1].isupper() for text in parts):
                return [{**filling.arguments, slot.name: text} for text in parts]
            if more := _likewise(part, filling, slot, language):
                return [
                    {**filling.arguments, slot.name: text} for text in (value, *more)
                ]
    return []


def _likewise(
    part: Clause, filling: Filling, slot: Slot, language: Language
) -> list[str]:
    """Return values behind the same preposition: "in Tokyo and in London"."""
    taken = sorted(filling.taken[slot.name].tokens)
    lead = part.tokens[taken[0]].low
    joined = (",", *language.words("coordination"))
    found: list[str] = []
    for index in filling.left:
        before = [part.tokens[i].low for i in range(max(0, index - 2), index)]
        if part.tokens[index].text[:1].isupper() and (
            (before[-1:] == [lead] and before[0] in joined)
            or (before and before[-1] in joined)
        ):
            found.append(part.tokens[index].text)
    return found
