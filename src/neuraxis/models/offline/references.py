"""Resolve references to earlier results: "it", "the second link"."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Arguments, Node, Slot, Tool, resolved
from neuraxis.models.offline.tokens import Token, alike, stems
from neuraxis.specs import Json

LONGEST = 20_000  # maximum characters of an earlier turn's text that are repeated
_FILES = frozenset(("file", "script", "program", "document", "cod", "page", "copy"))
_WHOLE: tuple[str, Node] = ("", {})
_LEADS = english.DETERMINERS | english.PRONOUNS | {"all"}


class Step(Struct, frozen=True, kw_only=True):
    """One call, planned now or made in an earlier turn."""

    tool: Tool
    arguments: Arguments
    past: bool = False
    value: Any = None
    asset: str = ""


def refer(
    slot: Slot, tokens: Sequence[Token], begin: int, steps: Sequence[Step]
) -> Iterator[tuple[int, Json, float]]:
    """Yield possible referents for a parameter: end, value, score."""
    for end, nouns, index in _phrases(tokens, begin):
        if not nouns and tokens[end - 1].low not in english.PRONOUNS:
            continue
        filed = slot.kind in ("path", "folder")
        value = _path(nouns, steps) if filed else meant(slot, nouns, index, steps)
        if value is not None:
            yield end, value, 0.9 + 0.1 * len(nouns)


def _phrases(
    tokens: Sequence[Token], begin: int
) -> Iterator[tuple[int, list[str], int | None]]:
    place = begin
    while place < len(tokens) and tokens[place].low in _LEADS:
        place += 1
        yield place, [], None
    index = english.ORDINALS.get(tokens[place].low) if place < len(tokens) else None
    begins = place = place if index is None else place + 1
    while place < min(len(tokens), begins + 2) and tokens[place].kind == "word":
        if tokens[place].low in english.FUNCTION or (place > begins == begin):
            break
        place += 1
        yield place, [token.stem for token in tokens[begins:place]], index


def _path(nouns: Sequence[str], steps: Sequence[Step]) -> str | None:
    if not _FILES.issuperset(nouns):
        return None
    paths = [
        str(step.arguments[slot.name])
        for step in steps
        for slot in step.tool.slots
        if slot.kind == "path" and slot.name in step.arguments
    ]
    return paths[-1] if paths else None


def meant(
    slot: Slot, nouns: Sequence[str], index: int | None, steps: Sequence[Step]
) -> Json:
    """Return the result in the parameter's form, or None."""
    is_whole = english.RESULTS.issuperset(nouns)
    for number in range(len(steps) - 1, -1, -1):
        step, after = steps[number], len(steps) - 1 - number
        fields = _fields(step)
        chosen = fields if is_whole else [f for f in fields if _is_named(*f, nouns)]
        if is_whole and slot.kind == "text":
            chosen = chosen[:1]
        if is_whole and slot.kind == "object" and fields:
            # a text parameter gets the text; other results are passed as objects
            chosen = [] if fields[0][1].get("type") == "string" else [_WHOLE]
        for name, schema in chosen:
            many = schema.get("type") == "array"
            if (index is not None and not many) or not _fits(slot, name, schema, index):
                continue
            if step.past:
                written = _earlier(step, name, index, slot)
            else:
                root = f"results[{-1 - after}]" if after else "previous_result"
                key = f"['{name}']" if name else ""
                item = "" if index is None else f"[{index}]"
                written = f"{{{{ {root}{key}{item} }}}}"
            if written is not None:
                return written
        if is_whole and fields:
            return None  # the nearest result is meant, but does not fit
    return None


def _fields(step: Step) -> list[tuple[str, Node]]:
    response = step.tool.spec.response
    if response is None:
        is_readable = step.tool.spec.effects.readonly or step.value is not None
        return [_WHOLE] if is_readable else []
    schema = resolved(response, response)
    properties = cast("Mapping[str, Node]", schema.get("properties") or {})
    sure = schema.get("required", properties)
    present = [(n, resolved(properties[n], response)) for n in properties if n in sure]
    fields = [(n, node) for n, node in present if node.get("type") != "boolean"]
    return fields if properties else [("", schema)]


def _fits(slot: Slot, name: str, schema: Node, index: int | None) -> bool:
    types: Json = schema.get("type")
    if types == "array" and index is not None:
        types = cast("Node", schema.get("items") or {}).get("type", "string")
    if slot.kind in ("object", "text"):
        return slot.kind == "object" or index is None or types != "object"
    if slot.kind in ("list", "number"):
        return types in (["array"] if slot.kind == "list" else ["integer", "number"])
    return bool(types == "string") and slot.kind in f"{name} {schema.get('format')}"


def _is_named(name: str, schema: Node, nouns: Sequence[str]) -> bool:
    name_stems = [*english.RESULTS, *stems(f"{name} {schema.get('description', '')}")]
    return all(
        noun in name_stems or any(alike(noun, w) for w in name_stems) for noun in nouns
    )


def _earlier(step: Step, name: str, index: int | None, slot: Slot) -> Json:
    if step.asset and slot.kind == "object":
        return f"asset://{step.asset}/content/response"
    value = step.value
    if name:
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        value = fields.get(name)
    items = cast("list[Any]", value) if isinstance(value, list) else []
    if index is not None:
        value = items[index] if -len(items) <= index < len(items) else None
    if value is None or slot.kind != "text" or isinstance(value, str):
        return cast("Json", value)
    plain = items and all(isinstance(item, str | int | float) for item in items)
    text = "\n".join(map(str, items)) if plain else json.dumps(value, default=str)
    return text if len(text) <= LONGEST else None
