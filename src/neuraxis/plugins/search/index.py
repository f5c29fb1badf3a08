"""Search index of commands: BM25 with a weight for each field."""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import msgspec

from neuraxis.plugins.search.words import COMMON, stem, words
from neuraxis.specs import CommandSpec, Json, PluginSpec

FIELDS = ("name", "plugin", "description", "parameters", "examples")
WEIGHTS = (2.5, 0.7, 2.0, 0.5, 1.5)
"""How much a word counts in each field."""
LENGTHS = (0.5, 0.6, 0.6, 0.5, 0.5)
"""Length normalisation of each field in BM25F, from 0 to 1."""
SATURATION = 0.7
"""Saturation of BM25F: the weight at which a word has half its maximum score."""
_COMMON_ENTRIES = 60
"""Entries that have a word, from which on it takes time to weigh it."""
_READ = 1_500
"""Characters of a long request that are read, at its beginning and at its end."""
Weights = tuple["array[int]", "array[float]"]
"""Numbers of entries, and a word's score for each."""
_NOTHING: Weights = (array("I"), array("f"))
_STOPPED = frozenset(stem(word) for word in COMMON)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of one command, by field."""

    key: str
    """Its name; what `find` returns."""
    texts: tuple[str, ...]
    """In the order of `FIELDS`."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One command that was found."""

    key: str
    score: float


def entry_of(key: str, plugin: PluginSpec, command: CommandSpec) -> Entry:
    """Return the index entry of a command."""
    names: list[str] = []
    _parameter_texts(command.parameters, names, 0)
    return Entry(
        key=key,
        texts=(
            f"{command.name} {command.tool_name or ''}",
            f"{plugin.name} {plugin.title or ''}",
            command.description,
            " ".join(names),
            " ".join(example.question for example in command.examples),
        ),
    )


def _parameter_texts(schema: Mapping[str, Json], texts: list[str], depth: int) -> None:
    """Collect names and descriptions of the parameters, two levels deep."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, part in cast("Mapping[str, Json]", properties).items():
        texts.append(name)
        if not isinstance(part, Mapping):
            continue
        node = cast("Mapping[str, Json]", part)
        text = node.get("description")
        if isinstance(text, str):
            texts.append(text)
        if depth < 1:
            _parameter_texts(node, texts, depth + 1)


class Index:
    """Commands by their words; entries come and go at any time."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        """By number; the key of a removed entry is empty."""
        self.numbers: dict[str, int] = {}
        self.counts: dict[str, array[int]] = {}
        """By word: number of the entry and a packed count for each field, in turn."""
        self.lengths: list[tuple[int, ...]] = []
        self.weights: dict[str, Weights] = {}
        """By word, for those that were asked for since the last change."""
        self._averages: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def __contains__(self, key: str) -> bool:
        return key in self.numbers

    def add(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those with the same key."""
        for entry in entries:
            self.remove((entry.key,))
            number = len(self.keys)
            self.keys.append(entry.key)
            self.numbers[entry.key] = number
            counted: dict[str, int] = {}
            lengths: list[int] = []
            for field, text in enumerate(entry.texts):
                terms = words(text) if text else []
                lengths.append(len(terms))
                step = 1 << (6 * field)
                for word in terms:
                    counted[word] = _more(counted.get(word, 0), step)
            self.lengths.append(tuple(lengths))
            for word, packed in counted.items():
                listed = self.counts.get(word)
                if listed is None:
                    self.counts[word] = array("I", (number, packed))
                else:
                    listed.append(number)
                    listed.append(packed)
            self._changed()

    def remove(self, keys: Iterable[str]) -> None:
        """Remove the entries with these keys."""
        removed = False
        for key in keys:
            number = self.numbers.pop(key, None)
            if number is not None:
                self.keys[number] = ""
                self.lengths[number] = ()
                removed = True
        if removed:
            self._changed()

    def _changed(self) -> None:
        self.weights.clear()
        self._averages = ()

    def find(
        self,
        request: str,
        most: int = 5,
        *,
        allowed: Callable[[str], bool] | None = None,
    ) -> list[Hit]:
        """Return the commands that fit a request best, the best first."""
        scores: dict[int, float] = {}
        term_weights = self._asked(request)
        for word, times in term_weights.items():
            for number, weight in zip(*self._weighted(word), strict=True):
                scores[number] = scores.get(number, 0.0) + weight * times
        if allowed is not None:
            scores = {
                number: score
                for number, score in scores.items()
                if allowed(self.keys[number])
            }
        best = heapq.nsmallest(
            most, scores.items(), key=lambda item: (-item[1], item[0])
        )
        return [Hit(key=self.keys[number], score=score) for number, score in best]

    def _asked(self, request: str) -> dict[str, float]:
        """Return the words of a request with their weights."""
        if len(request) > 2 * _READ:
            request = f"{request[:_READ]} {request[-_READ:]}"
        terms = words(request)
        telling = [word for word in terms if word not in _STOPPED] or terms
        term_weights: dict[str, float] = {}
        for word in telling:
            term_weights[word] = term_weights.get(word, 0.0) + 1.0
        return {word: 1.0 + math.log(times) for word, times in term_weights.items()}

    def prepare(self) -> None:
        """Compute the scores of common words, which would delay the first search."""
        for word, listed in self.counts.items():
            if len(listed) >= 2 * _COMMON_ENTRIES and word not in _STOPPED:
                self._weighted(word)

    def _weighted(self, word: str) -> Weights:
        """Return a word's score for each entry that contains it."""
        known = self.weights.get(word)
        if known is not None:
            return known
        listed = self.counts.get(word)
        if listed is None:
            return _NOTHING
        averages = self._means()
        numbers: array[int] = array("I")
        counts: array[float] = array("f")
        for offset in range(0, len(listed), 2):
            number, packed = listed[offset], listed[offset + 1]
            lengths = self.lengths[number]
            if not lengths:
                continue  # removed
            weight = 0.0
            for field, average in enumerate(averages):
                times = packed & 63
                if times:
                    share = LENGTHS[field]
                    longer = 1.0 - share + share * lengths[field] / average
                    weight += WEIGHTS[field] * times / longer
                packed >>= 6
                if not packed:
                    break
            numbers.append(number)
            counts.append(weight)
        total, having = len(self.numbers), len(counts)
        rare = math.log(1.0 + (total - having + 0.5) / (having + 0.5))
        made = (numbers, array("f", [rare * w / (SATURATION + w) for w in counts]))
        self.weights[word] = made
        return made

    def _means(self) -> tuple[float, ...]:
        if not self._averages:
            live = [lengths for lengths in self.lengths if lengths]
            sums = [sum(column) for column in zip(*live, strict=True)]
            self._averages = tuple([max(part / len(live), 1e-9) for part in sums])
        return self._averages


def _more(packed: int, step: int) -> int:
    """Return the counts with one more in a field, at most 63."""
    return packed if (packed // step) & 63 == 63 else packed + step
