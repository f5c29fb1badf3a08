"""Requests that are worded as an example is, with other values in its places.

What of an example's calls does not stand in its question is taken as it is: an empty
file's contents, or a whole program. So all other words must be those of the example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Arguments, Sample, Tool, locate
from neuraxis.models.offline.tokens import FUNCTION, Token, alike
from neuraxis.specs import Json

Place = tuple[str | int, ...]


class _Hole(Struct, frozen=True):
    """A value of the example that stands in its question."""

    places: tuple[Place, ...]
    size: int
    kind: str


_Part = Token | _Hole


def worded(sample: Sample, tokens: Sequence[Token]) -> list[tuple[Tool, Arguments]] | None:
    """Return the example's calls with the values of this request, if it is worded so."""
    parts = _parts(sample)
    found = _align(parts, [t for t in tokens if t.kind != "mark"], {}, before="")
    if found is None:
        return None
    calls: list[tuple[Tool, Arguments]] = []
    for number, (tool, arguments) in enumerate(sample.calls):
        given: Any = arguments
        for hole, value in found.items():
            for place in hole.places:
                if place[0] == number:
                    given = _put(given, place[1:], value)
        calls.append((tool, given))
    return calls


def _parts(sample: Sample) -> list[_Part]:
    holes: dict[tuple[int, int], list[Place]] = {}
    for number, (_, arguments) in enumerate(sample.calls):
        for place, leaf in _leaves(arguments, (number,)):
            where = locate(sample.tokens, leaf)
            if where is not None and not (isinstance(leaf, str) and "{{" in leaf):
                holes.setdefault(where, []).append(place)
    parts: list[_Part] = []
    at = 0
    while at < len(sample.tokens):
        where = next((w for w in sorted(holes, reverse=True) if w[0] == at), None)
        token = sample.tokens[at]
        if where is not None:
            kind = token.kind if where[1] - at == 1 else "word"
            parts.append(_Hole(tuple(holes[where]), where[1] - at, kind))
            at = where[1]
            continue
        if token.kind != "mark":
            parts.append(token)
        at += 1
    return parts


def _leaves(value: Json, place: Place) -> list[tuple[Place, Json]]:
    if isinstance(value, Mapping):
        named = cast("Mapping[str, Json]", value)
        return [leaf for key in named for leaf in _leaves(named[key], (*place, key))]
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return [leaf for n, item in enumerate(items) for leaf in _leaves(item, (*place, n))]
    return [(place, value)]


def _put(tree: Any, place: Place, value: Json) -> Any:
    if not place:
        return value
    copied: Any = list(tree) if isinstance(tree, list) else dict(tree)
    copied[place[0]] = _put(tree[place[0]], place[1:], value)
    return copied


def _align(
    parts: Sequence[_Part], tokens: Sequence[Token], found: dict[_Hole, Json], before: str
) -> dict[_Hole, Json] | None:
    """Match word by word; words without matter may stand on either side alone."""
    if not parts and not tokens:
        return found
    part = parts[0] if parts else None
    token = tokens[0] if tokens else None
    if isinstance(part, _Hole):
        for size in range(part.size + 1, 0, -1):
            value = _value(part, tokens[:size]) if len(tokens) >= size else None
            if value is not None:
                rest = _align(parts[1:], tokens[size:], {**found, part: value}, "")
                if rest is not None:
                    return rest
    elif part is not None and token is not None and _same(part, token):
        rest = _align(parts[1:], tokens[1:], found, token.low)
        if rest is not None:
            return rest
    if token is not None and token.low in FUNCTION and token.low not in english.PREPOSITIONS:
        return _align(parts, tokens[1:], found, before)
    if isinstance(part, Token) and part.low in FUNCTION and part.low not in english.PREPOSITIONS:
        return _align(parts[1:], tokens, found, before)
    return None


def _same(part: Token, token: Token) -> bool:
    if part.kind != "word" or token.kind != "word":
        return part.value == token.value
    return part.stem == token.stem or alike(part.stem, token.stem)


def _value(hole: _Hole, tokens: Sequence[Token]) -> Json:
    if hole.kind != "word":
        same = len(tokens) == 1 and tokens[0].has(hole.kind)
        return tokens[0].value if same else None
    if any(t.kind != "word" or t.low in FUNCTION | english.TURNING for t in tokens):
        return None
    return " ".join(token.text for token in tokens)
