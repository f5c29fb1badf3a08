"""Find references and values in the steps planned so far.

"it" may be the result of an earlier step (`{{ previous_result['output'] }}`) or a
value that an earlier step was given (the file it wrote). Which of the two follows
from the kind of the parameter and from what the earlier command declares to answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec import Struct

from neuraxis.models.local.planner.catalogue import Slot, Tool
from neuraxis.models.local.planner.kinds import resolved, type_of
from neuraxis.models.local.planner.language import Language, split_words
from neuraxis.specs import Json


class Step(Struct, frozen=True, kw_only=True):
    """One planned call."""

    tool: Tool
    arguments: Mapping[str, Json]


class Field(Struct, frozen=True, kw_only=True):
    """A field of an earlier step's result."""

    step: int
    name: str | None
    """None: the whole result."""
    schema: Mapping[str, Json]
    sure: bool = True
    """False: the result may lack it."""

    def expression(self, now: int, index: int | None = None) -> str:
        """The reference as the step number `now` writes it."""
        root = "previous_result" if self.step == now - 1 else f"results[{self.step}]"
        key = f"['{self.name}']" if self.name is not None else ""
        place = f"[{index}]" if index is not None else ""
        return f"{{{{ {root}{key}{place} }}}}"


def fields(steps: Sequence[Step]) -> list[Field]:
    """All fields of all results, those of the last step first."""
    found: list[Field] = []
    for number in range(len(steps) - 1, -1, -1):
        response = steps[number].tool.spec.response
        if response is None:
            if steps[number].tool.spec.effects.readonly:
                found.append(Field(step=number, name=None, schema={}))
            continue
        schema = resolved(response, response)
        properties = cast("Mapping[str, Json]", schema.get("properties") or {})
        for name, node in properties.items():
            found.append(
                Field(
                    step=number,
                    name=name,
                    schema=resolved(node, response),
                    sure=name in schema.get("required", properties),
                )
            )
        if not properties:
            found.append(Field(step=number, name=None, schema=schema))
    return found


def tells(field: Field) -> bool:
    """Whether the field says more than that the step worked."""
    return type_of(field.schema) not in ("boolean", "null")


def pick(
    steps: Sequence[Step], words: Sequence[str], slot: Slot, language: Language
) -> Field | None:
    """Return the field that a phrase means for the parameter."""
    wanted = set(words)
    # "the results" means what came out, whatever its field is called.
    vague = {language.fold(word) for word in language.words("vague_words")}
    candidates = [
        field
        for field in fields(steps)
        if tells(field)
        and (
            field.sure
            or (wanted - vague)
            & {language.fold(word) for word in split_words(field.name or "")}
        )
    ]
    if not candidates:
        return None

    def score(field: Field) -> float:
        names = {language.fold(word) for word in split_words(field.name or "")}
        described = set(language.features(str(field.schema.get("description", ""))))
        value = 3.0 * bool(names & wanted) + 1.0 * bool(described & wanted)
        value += 1.0 if field.name == slot.name else 0.0
        value += 1.5 if language.fold(slot.kind) in names else 0.0
        value -= 0.0 if field.sure else 2.0
        value -= 1.5 * (len(steps) - 1 - field.step)
        kind = type_of(field.schema)
        if slot.kind in ("integer", "number"):
            value += 1.0 if kind in ("integer", "number") else -1.0
        elif kind in ("string", "array", "object", ""):
            value += 0.5
        if names & {"error", "status", "id", "message"} and not names & wanted:
            value -= 1.0
        tool = steps[field.step].tool
        about = {language.fold(word) for word in split_words(tool.spec.name)}
        return value + 0.5 * bool(about & wanted)

    return max(candidates, key=score)


def carried(steps: Sequence[Step], slot: Slot) -> Json | None:
    """Return the last value of the same name or kind."""
    for exact in (True, False):
        for step in reversed(steps):
            for other in step.tool.slots:
                same = other.name == slot.name if exact else other.kind == slot.kind
                value = step.arguments.get(other.name)
                if same and isinstance(value, str) and "{{" not in value:
                    return value
    return None
