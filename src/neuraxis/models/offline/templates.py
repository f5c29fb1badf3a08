"""Requests that are worded as an example is.

What of an example's calls does not stand in its question is taken as it is: an empty
file's contents, or a whole program. So all other words must be those of the example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from neuraxis.models.offline import english
from neuraxis.models.offline.catalogue import Arguments, Sample, Tool, locate
from neuraxis.models.offline.tokens import Token, alike
from neuraxis.specs import Json

Place = tuple[str | int, ...]
_SILENT = english.FUNCTION - english.PREPOSITIONS


def worded(
    sample: Sample, tokens: Sequence[Token]
) -> tuple[tuple[Tool, Arguments], ...] | None:
    """Return the example's calls with this request's values, or None."""
    holes: dict[int, list[Place]] = {}
    for number, (_, arguments) in enumerate(sample.calls):
        for place, leaf in _leaves(arguments, (number,)):
            where = locate(sample.tokens, leaf)
            if where is not None and where[1] - where[0] == 1:
                holes.setdefault(where[0], []).append(place)
    parts = [(n, t) for n, t in enumerate(sample.tokens) if _counts(t, n in holes)]
    if all(n in holes or part.low in english.FUNCTION for n, part in parts):
        return None  # no word of its own
    given = [token for token in tokens if _counts(token, False)]
    if len(parts) != len(given):
        return None
    calls: Any = [arguments for _, arguments in sample.calls]
    for (number, part), token in zip(parts, given, strict=True):
        if number in holes:
            if not token.has(part.kind) or token.low in english.TURNING:
                return None
            for place in holes[number]:
                calls = _put(calls, place, token.value)
        elif not _same(part, token):
            return None
    tools = [tool for tool, _ in sample.calls]
    return tuple(zip(tools, calls, strict=True))


def _counts(token: Token, is_hole: bool) -> bool:
    return is_hole or (token.kind != "mark" and token.low not in _SILENT)


def _same(part: Token, token: Token) -> bool:
    if part.kind != "word" or token.kind != "word":
        return part.value == token.value
    return part.stem == token.stem or alike(part.stem, token.stem)


def _leaves(value: Json, place: Place) -> Iterator[tuple[Place, Json]]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Json]", value).items():
            yield from _leaves(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(cast("list[Json]", value)):
            yield from _leaves(item, (*place, number))
    else:
        yield place, value


def _put(tree: Any, place: Place, value: Json) -> Any:
    if not place:
        return value
    copied = cast("dict[Any, Any]", tree.copy())
    copied[place[0]] = _put(tree[place[0]], place[1:], value)
    return copied
