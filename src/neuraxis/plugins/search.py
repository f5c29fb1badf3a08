"""Commands and a person's question in; the commands that fit, best first, out.

BM25 over names, descriptions and parameters. An index is made once for many questions.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from neuraxis.later import dataclass, pattern
from neuraxis.specs import CommandSpec, Json, PluginSpec

_WORD = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_K1 = 1.2
_B = 0.75
_NAME_WEIGHT = 3
_STOP = frozenset(
    _WORD.findall(
        "a an the of to in on for and or is are be it its this that with by from as at "
        "i me my we you your please can could would what which how do does"
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One command that fits, and how well."""

    plugin: PluginSpec
    command: CommandSpec
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The words of many commands: where each occurs, and how often."""

    commands: tuple[tuple[PluginSpec, CommandSpec], ...]
    occurrences: dict[str, list[tuple[int, float]]]
    """Word -> the numbers of the commands, each with the word's share of the score."""


def build_index(specs: Iterable[PluginSpec]) -> Index:
    """The index of all commands of the plugins."""
    commands = tuple((spec, command) for spec in specs for command in spec.commands)
    counts = [Counter(_document(*pair)) for pair in commands]
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    found: dict[str, list[tuple[int, float]]] = {}
    for number, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        norm = _K1 * (1 - _B + _B * length / (average or 1.0))
        for word, times in count.items():
            share = times * (_K1 + 1) / (times + norm)
            found.setdefault(word, []).append((number, share))
    for places in found.values():
        rarity = math.log(1 + (len(commands) - len(places) + 0.5) / (len(places) + 0.5))
        places[:] = [(number, share * rarity) for number, share in places]
    return Index(commands=commands, occurrences=found)


def search(
    specs: Index | Iterable[PluginSpec], query: str, most: int = 10
) -> tuple[Hit, ...]:
    """The commands that fit the query, best first; those that share no word are out."""
    index = specs if isinstance(specs, Index) else build_index(specs)
    scores: dict[int, float] = {}
    for word in dict.fromkeys(_words(query)):
        for number, share in index.occurrences.get(word, ()):
            scores[number] = scores.get(number, 0.0) + share
    best = heapq.nsmallest(most, scores.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Hit(
            plugin=index.commands[number][0],
            command=index.commands[number][1],
            score=score,
        )
        for number, score in best
    )


def _document(plugin: PluginSpec, command: CommandSpec) -> Iterator[str]:
    for text in (command.name, command.tool_name or "", plugin.name):
        for word in _words(text):
            yield from [word] * _NAME_WEIGHT
    yield from _words(command.description)
    yield from _words(plugin.description_model)
    for name, schema in command.parameters.get("properties", {}).items():
        yield from _words(name)
        if isinstance(schema, dict):
            yield from _words(
                str(cast("dict[str, Json]", schema).get("description", ""))
            )
    for example in command.examples:
        yield from _words(example.question)


def _words(text: str) -> Iterator[str]:
    for found in _WORD.findall(text):
        word = found.lower()
        if word in _STOP:
            continue
        if not word.isascii() and len(word) > 2:
            # Scripts without spaces: pairs of signs stand for words.
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        yield _stem(word)


def _stem(word: str) -> str:
    """Cut the commonest English endings, so that `crops` meets `crop`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3]
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word
