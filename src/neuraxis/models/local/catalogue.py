"""What the planner knows of the tools: plugin specs in, tools with their slots out.

Everything comes from the specs: names, descriptions, schemas, examples. An example of
several calls is cut into clauses, one for each call, so that it teaches each tool.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from neuraxis.models.local import clauses, spans
from neuraxis.models.local.tokens import Clause
from neuraxis.models.local.language import Language, split_words
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec

FREE = frozenset({"query", "content", "place", "person", "title", "text", "list"})
"""Kinds whose values are words of the request."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slot:
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
        return self.schema.get("default")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """A clause that is known to mean a call of the tool."""

    clause: Clause
    arguments: Mapping[str, Json]
    words: tuple[str, ...]
    """Folded words outside of the values, and `<kind>` for each typed value."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
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
    foreign: frozenset[str] = frozenset()
    """Such words of other tools only."""

    def slot(self, name: str) -> Slot:
        return next(slot for slot in self.slots if slot.name == name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalogue:
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
    taught = _lessons([plugin for plugin in plugins], found, language)
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


Lesson = tuple[Clause, Mapping[str, Json]]


def _lessons(
    plugins: Iterable[PluginSpec],
    found: Sequence[tuple[str, PluginSpec, CommandSpec]],
    language: Language,
) -> dict[str, list[Lesson]]:
    """Clauses of the examples, by the tool that each asks for."""
    aliases: dict[str, str] = {}
    for name, plugin, command in found:
        aliases.setdefault(command.name, name)
        aliases[f"{plugin.name}.{command.name}"] = name
        if command.tool_name:
            aliases[command.tool_name] = name
    aliases.update({name: name for name, _, _ in found})
    taught: dict[str, list[Lesson]] = {}
    for plugin in plugins:
        for command in plugin.commands:
            for example in command.examples:
                _teach(example, aliases, taught, language)
        for example in plugin.examples:
            _teach(example, aliases, taught, language)
    return taught


def _teach(
    example: Example,
    aliases: Mapping[str, str],
    taught: dict[str, list[Lesson]],
    language: Language,
) -> None:
    parts = (
        [tokens.clause(example.question, language)]
        if len(example.calls) == 1
        else clauses.split(example.question, language)
    )
    if len(parts) != len(example.calls):
        return
    for part, call in zip(parts, example.calls, strict=True):
        if name := aliases.get(call.tool):
            taught.setdefault(name, []).append((part, call.arguments))


def _tool(
    name: str,
    plugin: PluginSpec,
    command: CommandSpec,
    lessons: Sequence[Lesson],
    language: Language,
) -> Tool:
    slots = tuple(_slots(command, lessons, language))
    samples = tuple(_sample(lesson, slots, language) for lesson in lessons)
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
    for field_name in _response_fields(command):
        add(field_name, 0.2)
    for sample in samples:
        for word in sample.words:
            for part, share in _meanings(word, 1.0, language):
                weights[part] = max(weights.get(part, 0.0), share)
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
    )


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
    command: CommandSpec, lessons: Sequence[Lesson], language: Language
) -> Iterable[Slot]:
    properties = cast(
        "Mapping[str, Mapping[str, Json]]", command.parameters.get("properties") or {}
    )
    kinds: dict[str, str] = {}
    for name, schema in properties.items():
        schema = resolved(schema, command.parameters)
        values = tuple(args[name] for _, args in lessons if name in args)
        values += tuple(schema.get("examples") or ())
        kind = kind_of(name, schema, values, language)
        kinds[name] = kind
        cues: set[str] = set()
        after: set[str] = set()
        for part, args in lessons:
            if name in args:
                _learn(part, args[name], cues, after, language)
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


def resolved(schema: Json, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """The schema with a `$ref` into `$defs` followed and a nullable arm chosen."""
    for _ in range(8):
        if not isinstance(schema, dict):
            return {}
        node = cast("dict[str, Json]", schema)
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            schema = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
            continue
        arms = node.get("anyOf") or node.get("oneOf")
        if isinstance(arms, list) and arms:
            listed = [
                arm
                for arm in cast("list[dict[str, Json]]", arms)
                if arm.get("type") != "null"
            ]
            if listed:
                schema = {
                    **{k: v for k, v in node.items() if k not in ("anyOf", "oneOf")},
                    **listed[0],
                }
                continue
        return node
    return {}


def type_of(schema: Mapping[str, Json]) -> str:
    """The JSON type of a schema, without null; "" where it says none."""
    found: Any = schema.get("type", "")
    if isinstance(found, list):
        names = [str(name) for name in cast("list[Any]", found) if name != "null"]
        return names[0] if names else ""
    return str(found)


_FORMATS = {
    "uri": "url",
    "url": "url",
    "iri": "url",
    "hostname": "url",
    "email": "email",
    "date": "date",
    "time": "time",
    "date-time": "datetime",
    "path": "path",
    "file-path": "path",
    "duration": "duration",
}


def kind_of(
    name: str, schema: Mapping[str, Json], values: Sequence[Json], language: Language
) -> str:
    """What kind of value a parameter takes."""
    if schema.get("enum"):
        return "enum"
    match type_of(schema):
        case "integer" | "number" | "boolean" | "object" as plain:
            return plain
        case "array":
            return "list"
        case _:
            pass
    if kind := _FORMATS.get(str(schema.get("format", ""))):
        return kind
    texts = [
        value
        for value in (*values, schema.get("default"))
        if isinstance(value, str) and value and "{{" not in value
    ]
    named = _by_name(name, language)
    if texts:
        if any(_is_moment(text, language) for text in texts):
            return "datetime"
        shared = frozenset[str].intersection(
            *(spans.kinds_of(text, language) for text in texts)
        )
        for kind in ("url", "email", "path", "expression", "date", "time"):
            if kind in shared and not (kind == "date" and named == "content"):
                return "datetime" if named == "datetime" else kind
    if named in ("path", "url", "email"):
        # A name alone does not make it one where the examples show plain words.
        return named if not texts else "title"
    if named:
        return named
    described = str(schema.get("description", "")).casefold()
    if "yyyy-mm-dd" in described:
        return "date"
    if texts:
        return "text" if max(len(text.split()) for text in texts) > 3 else "title"
    long = {"text", "sentence", "message", "paragraph", "content", "words"}
    return "text" if long & set(described.split()) else "title"


def _is_moment(text: str, language: Language) -> bool:
    """A day and a time of day, and little else."""
    found = spans.find(text, language)
    kinds = {kind for span in found for kind in span.kinds}
    covered = sum(span.end - span.start for span in found)
    return {"date", "time"} <= kinds and covered >= 0.7 * len(text)


def _by_name(name: str, language: Language) -> str:
    words = [word.casefold() for word in split_words(name)]
    best, size = "", 0
    for kind, names in language.table("kinds").items():
        for candidate in names:
            parts = candidate.split()
            if len(parts) > size and _contains(words, parts):
                best, size = kind, len(parts)
    if size == 1 and words:
        # "start_date": the last word says what it is, the others which one.
        for kind, names in language.table("kinds").items():
            if words[-1] in names:
                return kind
    return best


def _contains(words: Sequence[str], parts: Sequence[str]) -> bool:
    return any(
        list(words[i : i + len(parts)]) == list(parts)
        for i in range(len(words) - len(parts) + 1)
    )


def _learn(
    part: Clause, value: Json, cues: set[str], after: set[str], language: Language
) -> None:
    """The words before and behind the value in the example's clause."""
    where = locate(part, value)
    if where is None:
        return
    first, last = where
    before = first - 1
    while before >= 0 and part.is_determiner(before, language):
        before -= 1
    if before < 0:
        cues.add("")
    else:
        word = part.tokens[before]
        if word.span is not None:
            cues.add(f"<{min(word.span.kinds)}>")
            return
        is_head = before == 0 or (word.low not in language.prepositions)
        cues.add("" if is_head and word.fold in language.verbs else word.low)
    if last + 1 < len(part.tokens) and part.tokens[last + 1].fold:
        after.add(part.tokens[last + 1].fold)


def locate(part: Clause, value: Json) -> tuple[int, int] | None:
    """The tokens (first, last) whose text is the value."""
    if isinstance(value, list):
        places = [locate(part, item) for item in cast("list[Json]", value)]
        known = [place for place in places if place is not None]
        if not known or len(known) < len(places):
            return None
        return min(first for first, _ in known), max(last for _, last in known)
    text = str(value).strip().casefold()
    if not text or isinstance(value, (bool, dict)):
        return None
    for index, token in enumerate(part.tokens):
        if token.span is not None and token.span.value.casefold() == text:
            return index, index
    found = re.search(
        rf"(?<!\w){re.escape(text)}(?!\w)", part.text.casefold(), re.UNICODE
    )
    if not found:
        return None
    inside = [
        index
        for index, token in enumerate(part.tokens)
        if token.start < found.end() and token.end > found.start()
    ]
    return (inside[0], inside[-1]) if inside else None


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
