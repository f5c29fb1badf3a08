"""What "it", "the output" or "the second link" mean: results of earlier commands.

A result of the same plan is a reference, `{{ previous_result['output'] }}`; one of an
earlier turn is its value, or its asset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Arguments, Slot, Tool, resolved
from neuraxis.models.offline.tokens import FUNCTION, Token, alike, stems
from neuraxis.specs import Json

LONGEST = 20_000
"""Characters of an earlier turn's text that are written again."""


class Step(Struct, frozen=True, kw_only=True):
    """One call, planned now or made in an earlier turn."""

    tool: Tool
    arguments: Arguments
    past: bool = False
    value: Any = None
    asset: str = ""


class Field(Struct, frozen=True, kw_only=True):
    """A field of a result; without a name the whole of it."""

    name: str | None
    schema: Mapping[str, Json]

    def fits(self, kind: str, index: int | None) -> bool:
        """Whether a parameter of this kind can take it."""
        said = f"{self.name} {self.schema.get('format')}"
        type_ = self.schema.get("type")
        if type_ == "array" and index is not None:
            type_ = (self.schema.get("items") or {}).get("type", "string")
        match kind:
            case "object":
                return True
            case "text":
                return type_ != "boolean"
            case "list":
                return type_ == "array"
            case "number":
                return type_ in ("integer", "number")
            case _:
                return type_ == "string" and kind in said


def phrases(tokens: Sequence[Token], begin: int) -> Iterator[tuple[int, list[str], int | None]]:
    """Yield phrases that begin here: their end, their nouns, the index they name."""
    place = begin
    sure = False
    while place < len(tokens) and (
        tokens[place].low in english.DETERMINERS | english.PRONOUNS | {"all"}
    ):
        sure = True
        place += 1
        yield place, [], None
    index = None
    if place < len(tokens) and tokens[place].low in english.ORDINALS:
        index = english.ORDINALS[tokens[place].low]
        place += 1
    nouns: list[str] = []
    while place < len(tokens) and tokens[place].kind == "word" and len(nouns) < 2:
        if tokens[place].stem in FUNCTION or not (sure or index is not None or nouns == []):
            break
        nouns.append(tokens[place].stem)
        place += 1
        yield place, list(nouns), index


def refer(
    slot: Slot, tokens: Sequence[Token], begin: int, steps: Sequence[Step]
) -> Iterator[tuple[int, Json, float]]:
    """Yield what phrases here can mean for a parameter: end, value, score."""
    for end, nouns, index in phrases(tokens, begin):
        if not nouns and tokens[end - 1].low not in english.PRONOUNS:
            continue
        if slot.kind in ("path", "folder"):
            path = _path(nouns, steps)
            if path is not None:
                yield end, path, 1.0
            continue
        value = meant(slot, nouns, index, steps)
        if value is not None:
            yield end, value, 0.9 + 0.1 * len(nouns)


def _path(nouns: Sequence[str], steps: Sequence[Step]) -> str | None:
    files = ("file", "script", "program", "document", "cod", "page", "copy")
    if nouns and not set(nouns) <= set(files):
        return None
    for step in reversed(steps):
        found = [
            step.arguments[slot.name]
            for slot in step.tool.slots
            if slot.kind == "path" and isinstance(step.arguments.get(slot.name), str)
        ]
        if found:
            return str(found[-1])
    return None


def meant(
    slot: Slot, nouns: Sequence[str], index: int | None, steps: Sequence[Step]
) -> Json:
    """Return the result that is meant, written for this parameter; None: there is none."""
    for number in range(len(steps) - 1, -1, -1):
        step = steps[number]
        fields = _fields(step)
        whole = not nouns or set(nouns) <= english.RESULTS
        chosen = [f for f in fields if whole or _is_named(f, nouns)]
        if whole and slot.kind == "text":
            chosen = chosen[:1]
        if slot.kind == "object" and whole:
            chosen = [Field(name=None, schema={})] if fields else []
        for field in chosen:
            many = field.schema.get("type") == "array"
            place = index if many else None
            if index is not None and not many:
                continue
            if many and place is None and slot.kind not in ("list", "text", "object"):
                # the link of several: which one is not said
                continue
            if field.fits(slot.kind, place):
                written = _written(step, steps[number + 1 :], field, place, slot)
                if written is not None:
                    return written
        if whole and fields:
            return None  # the nearest result is meant, and it does not fit
    return None


def _fields(step: Step) -> list[Field]:
    response = step.tool.spec.response
    if response is None:
        known = step.tool.spec.effects.readonly or step.value is not None
        return [Field(name=None, schema={})] if known else []
    schema = resolved(response, response)
    properties = cast("Mapping[str, Mapping[str, Json]]", schema.get("properties") or {})
    if not properties:
        return [Field(name=None, schema=schema)]
    required = schema.get("required", list(properties))
    found = [
        Field(name=name, schema=resolved(node, response))
        for name, node in properties.items()
        if name in required and name != step.tool.spec.failure_field
    ]
    return [field for field in found if field.schema.get("type") != "boolean"]


def _is_named(field: Field, nouns: Sequence[str]) -> bool:
    known = stems(field.name or "") + stems(str(field.schema.get("description", "")))
    return all(
        any(noun == word or alike(noun, word) for word in known) or noun in english.RESULTS
        for noun in nouns
    )


def _written(
    step: Step, after: Sequence[Step], field: Field, index: int | None, slot: Slot
) -> Json:
    if step.past:
        return _earlier(step, field, index, slot)
    root = f"results[{-1 - len(after)}]" if after else "previous_result"
    key = f"['{field.name}']" if field.name is not None else ""
    return f"{{{{ {root}{key}{'' if index is None else f'[{index}]'} }}}}"


def _earlier(step: Step, field: Field, index: int | None, slot: Slot) -> Json:
    if step.asset and slot.kind == "object":
        return f"asset://{step.asset}/content/response"
    value = step.value
    if field.name is not None:
        value = value.get(field.name) if isinstance(value, dict) else None
    if index is not None and isinstance(value, list):
        items = cast("list[Any]", value)
        value = items[index] if -len(items) <= index < len(items) else None
    if value is None or slot.kind != "text" or isinstance(value, str):
        return value
    plain = isinstance(value, list) and all(
        isinstance(item, str | int | float) for item in cast("list[Any]", value)
    )
    text = "\n".join(str(item) for item in value) if plain else json.dumps(value, default=str)
    return text if len(text) <= LONGEST else None
