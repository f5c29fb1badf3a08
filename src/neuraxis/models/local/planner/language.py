"""Load a language's rules from its YAML file.

All that the planner knows of a language stands in `languages/*.yaml`. Words are
compared folded: lower case, without common endings, so that "writing", "writes" and
"Write" are one word; words of like meaning share a concept (`=write`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, cast

import yaml
from msgspec import Struct

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*", re.UNICODE)
_PACKAGE = "neuraxis.models.local"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Language(Struct, frozen=True, kw_only=True, eq=False):
    """Rules of one language; `rules` is the file's content."""

    code: str
    rules: Mapping[str, Any]
    function_words: frozenset[str]
    verbs: Mapping[str, frozenset[str]]
    """Folded verb (or its first word) -> concepts."""
    verb_phrases: tuple[str, ...]
    """Verbs of several words, lower case, longest first."""
    concepts: Mapping[str, frozenset[str]]
    """Folded word -> concepts, verbs and nouns."""
    endings: tuple[tuple[str, str, int], ...]
    irregular: Mapping[str, str]
    prepositions: frozenset[str]
    determiners: frozenset[str]

    def words(self, key: str) -> tuple[str, ...]:
        """A list of the file."""
        return tuple(self.rules.get(key) or ())

    def table(self, key: str) -> Mapping[str, Any]:
        """A mapping of the file."""
        return cast("Mapping[str, Any]", self.rules.get(key) or {})

    def fold(self, word: str) -> str:
        """The word without its ending."""
        low = word.casefold().replace("’", "'")
        if (base := self.irregular.get(low)) is not None:
            return self._final(low) if base == low else self.fold(base)
        for ending, put, least in self.endings:
            if low.endswith(ending) and len(low) - len(ending) >= least:
                low = low[: len(low) - len(ending)] + put
                if (
                    ending in ("ing", "ed", "er", "ers")
                    and len(low) > 3
                    and low[-1] == low[-2]
                    and low[-1] not in "lsz"
                ):
                    low = low[:-1]
                break
        return self._final(low)

    def _final(self, low: str) -> str:
        return low[:-1] if len(low) > 3 and low[-1] in self._silent else low

    @property
    def _silent(self) -> str:
        return str(self.rules.get("final_letters") or " ")

    def features(self, text: str) -> list[str]:
        """Folded words of a text that carry matter, in order."""
        return [
            self.fold(word)
            for word in split_words(text)
            if word.casefold() not in self.function_words
        ]

    def is_verb(self, word: str) -> bool:
        """Whether a request may begin with this word."""
        return self.fold(word) in self.verbs


def split_words(text: str) -> list[str]:
    """Words of a text; `file_path`, `filePath` and `FilePath` are two words."""
    return [
        part
        for found in WORD.findall(text.replace("_", " "))
        for part in _CAMEL.split(found)
        if part
    ]


def load(code: str) -> Language:
    """The rules of a language; English where there are none."""
    known = available()
    return _load(code if code in known else "en")


@cache
def available() -> tuple[str, ...]:
    """Codes of the languages that have rules."""
    folder = resources.files(_PACKAGE).joinpath("languages")
    return tuple(
        sorted(
            item.name.removesuffix(".yaml")
            for item in folder.iterdir()
            if item.name.endswith(".yaml")
        )
    )


def guess(text: str) -> Language:
    """The language whose function words are most frequent in the text."""
    words = [word.casefold() for word in WORD.findall(text)]
    best, most = "en", 0.0
    for code in sorted(available(), key=lambda code: code != "en"):
        language = load(code)
        count = sum(word in language.function_words for word in words)
        # Between equals the first word decides, which is most often a verb.
        if count > 0 or (words and language.is_verb(words[0])):
            count += 0.5 * bool(words and language.is_verb(words[0]))
        if count > most:
            best, most = code, count
    return load(best)


@cache
def _load(code: str) -> Language:
    text = (
        resources.files(_PACKAGE)
        .joinpath("languages", f"{code}.yaml")
        .read_text(encoding="utf-8")
    )
    # A file of ours. The base loader makes texts, lists and mappings and nothing else:
    # no object, and `on` and `no` are words here, which `safe_load` reads as truths.
    rules = cast("dict[str, Any]", yaml.load(text, Loader=yaml.CBaseLoader))
    if code != "en":
        # Names in manifests are English in every country, and what a language's file
        # does not say is said as in English.
        english = _load("en").rules
        rules = {**english, **rules}
        for key in ("kinds", "sides", "aliases", "file_types", "verbs", "nouns", "say"):
            rules[key] = _joined(english[key], rules[key])
    endings = tuple((end, put, int(least)) for end, put, least in rules["endings"])
    bare = Language(
        code=code,
        rules=rules,
        function_words=frozenset(str(rules["function_words"]).casefold().split()),
        verbs={},
        verb_phrases=(),
        concepts={},
        endings=endings,
        irregular=rules.get("irregular") or {},
        prepositions=frozenset(rules.get("prepositions") or ()),
        determiners=frozenset(rules.get("determiners") or ()),
    )
    verbs, phrases = _groups(bare, rules["verbs"])
    nouns, _ = _groups(bare, rules.get("nouns") or {})
    concepts = dict(verbs)
    for word, groups in nouns.items():
        concepts[word] = concepts.get(word, frozenset()) | groups
    return Language(
        code=code,
        rules=rules,
        function_words=bare.function_words,
        verbs=verbs,
        verb_phrases=tuple(sorted(phrases, key=len, reverse=True)),
        concepts=concepts,
        endings=endings,
        irregular=bare.irregular,
        prepositions=bare.prepositions,
        determiners=bare.determiners,
    )


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables; lists under one key one after the other."""
    joined = dict(first)
    for key, value in second.items():
        both = isinstance(value, list) and isinstance(joined.get(key), list)
        joined[key] = [*joined[key], *value] if both else value
    return joined


def _groups(
    language: Language, groups: Mapping[str, Iterable[str]]
) -> tuple[dict[str, frozenset[str]], list[str]]:
    found: dict[str, set[str]] = {}
    phrases: list[str] = []
    for name, members in groups.items():
        for member in members:
            words = member.split()
            if len(words) > 1:
                phrases.append(member)
            found.setdefault(language.fold(words[0]), set()).add(f"={name}")
    return {word: frozenset(names) for word, names in found.items()}, phrases
