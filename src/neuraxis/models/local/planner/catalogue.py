"""Tool catalogue of the planner, built from plugin specs.

Everything comes from the specs: names, descriptions, schemas, examples. An example of
several calls is cut into clauses, one for each call, so that it teaches each tool.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from neuraxis.models.local.planner.examples import Lesson, learn, lessons, locate
from neuraxis.models.local.planner.kinds import kind_of, resolved
from neuraxis.models.local.planner.language import Language, split_words
from neuraxis.models.local.planner.tokens import Clause
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec


class Slot(Struct, frozen=True, kw_only=True, eq=False):
    """One parameter: what it takes and how people lead up to it."""

    name: str
    schema: Mapping[str, Json]
    kind: str
    required: bool
    words: frozenset[str]
    """Folded words of the name and the description."""
    name_words: tuple[str, ...]
    """Lower-case words of the name."""
    cues: frozenset[str]
    """Words that stand right before a value of it in the examples."""
    after: frozenset[str]
    """Folded words that stand right behind a value of it in the examples."""
    values: tuple[Json, ...]
    """Its values in the examples."""
    choices: tuple[Json, ...]
    sides: frozenset[str]
    """Words that lead up to it and not to its like (from, to)."""

    @property
    def default(self) -> Json:
        """The value that stands where none is given."""
        return self.schema.get("default")


class Sample(Struct, frozen=True, kw_only=True, eq=False):
    """A clause that is known to mean a call of the tool."""

    clause: Clause
    arguments: Mapping[str, Json]
    words: tuple[str, ...]
    """Folded words outside of the values, and `<kind>` for each typed value."""


class Tool(Struct, frozen=True, kw_only=True, eq=False):
    """One command as the planner sees it."""

    name: str
    plugin: str
    spec: CommandSpec
    slots: tuple[Slot, ...]
    samples: tuple[Sample, ...]
    weights: Mapping[str, float]
    """Folded word or concept -> how much the tool is about it."""
    heads: frozenset[str]
    """Folded verbs and their concepts that ask for this tool."""
    noun_words: frozenset[str]
    """Folded words of names, plugin and titles: never part of a value's edge."""
    spoken: frozenset[str] = frozenset()
    """Folded words of its examples, outside of values."""
    foreign: frozenset[str] = frozenset()
    """Such words of other tools only."""

    def slot(self, name: str) -> Slot:
        """The parameter of that name."""
        return next(slot for slot in self.slots if slot.name == name)


class Catalogue(Struct, frozen=True, kw_only=True, eq=False):
    """All tools, with the weight of each word among them."""

    tools: tuple[Tool, ...]
    language: Language
    rarity: Mapping[str, float] = field(default_factory=dict[str, float])
    verbs: frozenset[str] = frozenset()
    """Folded words that begin a clause in examples or descriptions."""
    chains: tuple[Example, ...] = ()

    def idf(self, word: str) -> float:
        """High for words that few tools have."""
        return self.rarity.get(word, math.log(1 + len(self.tools)))

    def tool(self, name: str) -> Tool | None:
        """The tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def build(
    plugins: Sequence[PluginSpec],
    tool_names: Mapping[str, tuple[str, str]],
    language: Language,
) -> Catalogue:
    """The tools of all listed plugins."""
    names = {pair: tool for tool, pair in tool_names.items()}
    found: list[tuple[str, PluginSpec, CommandSpec]] = []
    for plugin in plugins:
        for command in plugin.commands:
            name = names.get((plugin.name, command.name)) or (
                command.tool_name or command.name
            )
            found.append((name, plugin, command))
    taught = lessons(plugins, found, language)
    tools = tuple(
        _tool(name, plugin, command, taught.get(name, []), language)
        for name, plugin, command in found
    )
    nouns = frozenset[str]().union(*(tool.noun_words for tool in tools))
    tools = tuple(replace(tool, foreign=nouns - tool.noun_words) for tool in tools)
    counts: dict[str, int] = {}
    for tool in tools:
        for word in tool.weights:
            counts[word] = counts.get(word, 0) + 1
    rarity = {word: math.log(1 + len(tools) / n) for word, n in counts.items()}
    return Catalogue(
        tools=tools,
        language=language,
        rarity=rarity,
        verbs=frozenset(
            word for tool in tools for word in tool.heads if not word.startswith("=")
        ),
        chains=tuple(
            example
            for plugin in plugins
            for example in (
                *plugin.examples,
                *(x for command in plugin.commands for x in command.examples),
            )
            if len(example.calls) > 1
        ),
    )


def _tool(
    name: str,
    plugin: PluginSpec,
    command: CommandSpec,
    taught: Sequence[Lesson],
    language: Language,
) -> Tool:
    slots = tuple(_slots(command, taught, language))
    samples = tuple(_sample(lesson, slots, language) for lesson in taught)
    weights = _weights(name, plugin, command, slots, samples, language)
    heads: set[str] = set()
    leading = [sample.clause.head for sample in samples]
    leading += [
        language.fold(word)
        for text in (command.description, command.name)
        for word in split_words(text)[:1]
    ]
    leading += [
        language.fold(word)
        for word in split_words(command.name)
        if language.is_verb(word)
    ]
    for word in leading:
        if word in language.verbs:
            heads |= {word, *language.verbs[word]}
    nouns = {
        language.fold(word)
        for text in (
            name,
            command.name,
            plugin.name,
            plugin.title or "",
            *_response_fields(command),
        )
        for word in split_words(text)
    }
    return Tool(
        name=name,
        plugin=plugin.name,
        spec=command,
        slots=slots,
        samples=samples,
        weights=weights,
        heads=frozenset(heads),
        noun_words=frozenset(nouns),
        spoken=frozenset(word for sample in samples for word in sample.words),
    )


def _weights(
    name: str,
    plugin: PluginSpec,
    command: CommandSpec,
    slots: Sequence[Slot],
    samples: Sequence[Sample],
    language: Language,
) -> dict[str, float]:
    """How much the tool is about each word and concept."""
    weights: dict[str, float] = {}

    def add(text: str, weight: float) -> None:
        for word in language.features(text):
            for part, share in _meanings(word, weight, language):
                weights[part] = max(weights.get(part, 0.0), share)

    add(name, 1.0)
    add(command.name, 1.0)
    add(command.description, 0.8)
    add(plugin.name, 0.6)
    add(plugin.title or "", 0.6)
    add(plugin.description_model, 0.4)
    for slot in slots:
        add(slot.name, 0.5)
        add(str(slot.schema.get("description", "")), 0.3)
        for choice in slot.choices:
            add(str(choice), 0.6)
        for value in slot.values:
            if isinstance(value, str) and len(value) < 60:
                add(value, 0.15)
                # "miles" in an example: the tool is about units of any name.
                for word in language.features(value)[:3]:
                    for concept in language.concepts.get(word, ()):
                        weights[concept] = max(weights.get(concept, 0.0), 0.5)
    for field_name in _response_fields(command):
        add(field_name, 0.2)
    for sample in samples:
        for word in sample.words:
            for part, share in _meanings(word, 1.0, language):
                weights[part] = max(weights.get(part, 0.0), share)
    return weights


def _meanings(
    word: str, weight: float, language: Language
) -> Iterable[tuple[str, float]]:
    yield word, weight
    for concept in language.concepts.get(word, ()):
        yield concept, weight


def _response_fields(command: CommandSpec) -> list[str]:
    properties = (command.response or {}).get("properties", {})
    return [str(key) for key in properties]


def _slots(
    command: CommandSpec, taught: Sequence[Lesson], language: Language
) -> Iterable[Slot]:
    properties = cast(
        "Mapping[str, Mapping[str, Json]]", command.parameters.get("properties") or {}
    )
    for name, schema in properties.items():
        schema = resolved(schema, command.parameters)
        values = tuple(args[name] for _, args in taught if name in args)
        values += tuple(schema.get("examples") or ())
        kind = kind_of(name, schema, values, language)
        cues: set[str] = set()
        after: set[str] = set()
        for part, args in taught:
            if name in args:
                learn(part, args[name], cues, after, language)
        words = split_words(name)
        sides = language.table("sides")
        yield Slot(
            name=name,
            schema=schema,
            kind=kind,
            required=name in command.required,
            words=frozenset(
                language.features(f"{name} {schema.get('description', '')}")
            ),
            name_words=tuple(word.casefold() for word in words),
            cues=frozenset(cues),
            after=frozenset(after),
            values=values,
            choices=tuple(schema.get("enum") or ()),
            sides=frozenset(
                cue for word in words for cue in sides.get(word.casefold(), ())
            ),
        )


def _sample(lesson: Lesson, slots: Sequence[Slot], language: Language) -> Sample:
    part, arguments = lesson
    hidden: set[int] = set()
    marks: list[str] = []
    for slot in slots:
        where = locate(part, arguments.get(slot.name, ""))
        if where is not None and slot.kind != "enum":
            hidden.update(range(where[0], where[1] + 1))
            kind = "number" if slot.kind == "integer" else slot.kind
            marks.append(f"<{kind}>")
    words = [
        token.fold
        for index, token in enumerate(part.tokens)
        if index not in hidden
        and token.fold
        and token.low not in language.function_words
    ]
    return Sample(clause=part, arguments=arguments, words=(*words, *marks))
