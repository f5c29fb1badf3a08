"""Commands as the planner knows them: words, parameters, examples.

Everything comes from the specs: names, descriptions, schemas, examples. An example of
several calls is cut into its clauses, one for each call, so that it teaches each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import Struct, field

from neuraxis.models.offline import english
from neuraxis.models.offline.clauses import cut
from neuraxis.models.offline.tokens import (
    FUNCTION,
    STEM_GROUPS,
    Token,
    split_name,
    stem,
    stems,
    tokenise,
)
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec

Arguments = Mapping[str, Json]
LONG = frozenset(stem(word) for word in english.LONG)


class Slot(Struct, frozen=True, kw_only=True):
    """One parameter: what it takes, and the words that lead to it."""

    name: str
    schema: Mapping[str, Json]
    kind: str
    required: bool
    words: frozenset[str]
    """Stems of its name."""
    cues: frozenset[str]
    """Words right before its values in the examples."""
    choices: tuple[Json, ...] = ()
    quoted: bool = False
    """In every example its value stands in quotes."""
    tail: bool = False
    """In some example its value reaches to the end."""
    longest: int = 0
    """Words of its longest value in the examples."""
    plain: bool = True
    """No value of the examples has words like "of" in it."""
    shape: str = ""
    """What all values of the examples have: `digits`, `letters` (no digits), `capitals`."""

    @property
    def long(self) -> bool:
        """Whether it takes a whole text."""
        return bool(self.words & LONG)


class Sample(Struct, frozen=True, kw_only=True):
    """A request with the calls that answer it, and where their values stand in it."""

    tokens: tuple[Token, ...]
    calls: tuple[tuple[Tool, Arguments], ...]


class Tool(Struct, kw_only=True):
    """One command."""

    name: str
    plugin: str
    spec: CommandSpec
    slots: tuple[Slot, ...]
    heads: dict[str, float]
    """Stems of words that ask for it."""
    lexicon: dict[str, float]
    """Stems of all words that are known of it; those of its names weigh most."""
    samples: list[Sample] = field(default_factory=list[Sample])


class Catalogue(Struct, frozen=True, kw_only=True):
    """All commands, and the examples of several calls."""

    tools: tuple[Tool, ...]
    plugins: tuple[PluginSpec, ...]
    chains: tuple[Sample, ...]
    weights: Mapping[str, float]
    """How much a stem tells the commands apart."""
    heads: frozenset[str]
    names: Mapping[str, tuple[Tool, ...]]
    """Stems in the names of commands, and which these are."""


def build(
    plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
) -> Catalogue:
    """Return the commands of all listed plugins."""
    names = {pair: name for name, pair in tool_names.items()}
    listed = [
        (names.get((plugin.name, one.name)) or one.tool_name or one.name, plugin, one)
        for plugin in plugins
        for one in plugin.commands
    ]
    known = {name for name, _, _ in listed}
    heads = {stem(word) for group in english.ALIKE for word in group}
    heads |= {stems(one.name)[0] for _, _, one in listed if stems(one.name)}
    taught: dict[str, list[tuple[tuple[Token, ...], Arguments]]] = {}
    chains: list[tuple[tuple[Token, ...], Example]] = []
    alone: set[int] = set()
    for example in _examples(plugins):
        if not example.calls or any(call.tool not in known for call in example.calls):
            continue
        parts = [example.question]
        if len(example.calls) > 1:
            chains.append((tuple(tokenise(example.question)), example))
            parts = cut(example.question, heads)
        if len(parts) == len(example.calls):
            for part, call in zip(parts, example.calls, strict=True):
                one = (tuple(tokenise(part)), call.arguments)
                taught.setdefault(call.tool, []).append(one)
                alone |= {id(one[0])} if len(parts) == 1 else set()
    tools = {name: _tool(name, p, one, taught.get(name, [])) for name, p, one in listed}
    for name, tool in tools.items():
        tool.samples += [
            Sample(tokens=tokens, calls=((tool, given),))
            for tokens, given in taught.get(name, [])
            if id(tokens) in alone
        ]
    counts: dict[str, int] = {}
    for tool in tools.values():
        for word in tool.lexicon:
            counts[word] = counts.get(word, 0) + 1
    most = math.log(1 + len(tools))
    return Catalogue(
        tools=tuple(tools.values()),
        plugins=tuple(plugins),
        chains=tuple(
            Sample(
                tokens=tokens,
                calls=tuple((tools[c.tool], c.arguments) for c in example.calls),
            )
            for tokens, example in chains
        ),
        weights={w: math.log(1 + len(tools) / n) / most for w, n in counts.items()},
        heads=frozenset(word for tool in tools.values() for word in tool.heads),
        names={
            word: tuple(t for t in tools.values() if word in stems(t.spec.name)[1:])
            for tool in tools.values()
            for word in stems(tool.spec.name)[1:]
        },
    )


def _examples(plugins: Sequence[PluginSpec]) -> Iterable[Example]:
    for plugin in plugins:
        for command in plugin.commands:
            yield from command.examples
        yield from plugin.examples


def _tool(
    name: str,
    plugin: PluginSpec,
    spec: CommandSpec,
    taught: Sequence[tuple[tuple[Token, ...], Arguments]],
) -> Tool:
    slots = tuple(_slots(spec, taught))
    lexicon: dict[str, float] = {}

    def know(words: Iterable[str], weight: float) -> None:
        for word in words:
            if word not in FUNCTION and word not in english.NUMBERS:
                lexicon[word] = max(lexicon.get(word, 0.0), weight)

    for text, weight in (
        (spec.name, 1.0),
        (name, 1.0),
        (plugin.name, 0.7),
        (plugin.title or "", 0.7),
        (spec.description, 0.5),
        (plugin.description_model, 0.2),
    ):
        said = stems(text)
        if weight < 1:
            said = [word for word in said if word not in english.TURNING]
        know(said, weight)
    for slot in slots:
        know(slot.words, 0.5)
        said = stems(str(slot.schema.get("description", "")))
        know([word for word in said if word not in english.TURNING], 0.2)
    heads = {word: 0.8 for word in [*stems(spec.name)[:1], *stems(name)[:1]]}
    first = stems(spec.description)[:1]
    verbs = {word for group in STEM_GROUPS for word in group}
    heads |= dict.fromkeys(first, 0.8)
    heads |= {w: 0.6 for w in stems(spec.description) if w in verbs and w not in heads}
    for tokens, given in taught:
        hidden = _places(tokens, given, slots)
        said = [t.stem for i, t in enumerate(tokens) if t.kind == "word" and i not in hidden]
        know(said, 0.8)
        if said and said[0] not in english.QUESTION and 0 not in hidden:
            heads[said[0]] = 1.0
    return Tool(
        name=name, plugin=plugin.name, spec=spec, slots=slots, heads=heads,
        lexicon=lexicon,
    )  # fmt: skip


def _places(
    tokens: Sequence[Token], given: Arguments, slots: Sequence[Slot]
) -> set[int]:
    found: set[int] = set()
    for slot in slots:
        if slot.name in given and slot.kind != "choice":
            where = locate(tokens, given[slot.name])
            found.update(range(*where) if where else ())
    return found


def locate(tokens: Sequence[Token], value: Json) -> tuple[int, int] | None:
    """Return from which token to which a value stands in a request."""
    if isinstance(value, list):
        places = [locate(tokens, item) for item in cast("list[Json]", value)]
        known = [place for place in places if place]
        if not known or len(known) != len(places):
            return None
        return min(a for a, _ in known), max(b for _, b in known)
    if isinstance(value, bool) or value is None or isinstance(value, dict):
        return None
    wanted = tokenise(str(value))
    for begin, token in enumerate(tokens):
        if token.value == value and token.kind != "word":
            return begin, begin + 1
        size = len(wanted)
        if size and [t.low for t in tokens[begin : begin + size]] == [
            t.low for t in wanted
        ]:
            return begin, begin + size
    return None


def _slots(
    spec: CommandSpec, taught: Sequence[tuple[tuple[Token, ...], Arguments]]
) -> Iterable[Slot]:
    properties: Mapping[str, Mapping[str, Json]] = spec.parameters.get("properties", {})
    for name, node in properties.items():
        schema = resolved(node, spec.parameters)
        values: list[Json] = list(schema.get("examples") or ())
        values += [schema["example"]] if "example" in schema else []
        cues: set[str] = set()
        sizes: list[int] = []
        quoted: list[bool] = []
        tail = False
        for tokens, given in taught:
            values += [given[name]] if name in given else []
            where = locate(tokens, given[name]) if name in given else None
            if where is None:
                continue
            begin, end = where
            cues |= {token.low for token in tokens[max(0, begin - 1) : begin]}
            if begin > 1 and tokens[begin - 1].low in english.DETERMINERS:
                cues.add(tokens[begin - 2].low)
            sizes.append(len(tokenise(str(given[name]))))
            quoted.append(tokens[begin].kind in ("quoted", "code"))
            tail |= end >= len([token for token in tokens if token.kind != "mark"])
        texts = [str(value) for value in values if isinstance(value, str)]
        said = {word for text in texts for word in text.lower().split()}
        choices = schema.get("enum") or ()
        if not choices and "const" in schema:
            choices = (schema["const"],)
        yield Slot(
            name=name,
            schema=schema,
            kind="choice" if choices else kind_of(name, schema, values),
            required=name in spec.required,
            words=frozenset(stems(name)),
            cues=frozenset(cues - english.DETERMINERS),
            choices=tuple(choices),
            quoted=bool(quoted) and all(quoted),
            tail=tail,
            longest=max(sizes, default=0),
            plain=not said & FUNCTION,
            shape=_shape(texts),
        )


def _shape(texts: Sequence[str]) -> str:
    if texts and all(any(mark.isdigit() for mark in text) for text in texts):
        return "digits"
    if texts and all(text.isupper() and len(text) > 1 for text in texts):
        return "capitals"
    return "letters" if texts and not any(c.isdigit() for t in texts for c in t) else ""


def resolved(node: Mapping[str, Json], root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a schema without `$ref` and without the null of an optional one."""
    for _ in range(8):
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/$defs/"):
            rest = {key: item for key, item in node.items() if key != "$ref"}
            node = {**root.get("$defs", {}).get(ref[8:], {}), **rest}
            continue
        options = node.get("anyOf") or node.get("oneOf")
        if not isinstance(options, list):
            break
        parts = cast("list[Mapping[str, Json]]", options)
        real = [part for part in parts if part.get("type") != "null"]
        if len(real) != 1:
            break
        node = {**{k: v for k, v in node.items() if k not in ("anyOf", "oneOf")}, **real[0]}
    return node


def kind_of(name: str, schema: Mapping[str, Json], values: Sequence[Json]) -> str:
    """Return what a parameter takes, in the tokens' words, or `text`, `list`, `object`."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [item for item in cast("list[str]", kind) if item != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if schema.get("x-asset-ref") or "x-type" in schema:
        return "object"
    if kind in ("integer", "number"):
        return "number"
    if kind in ("boolean", "object"):
        return str(kind)
    if kind == "array":
        items = schema.get("items") or {}
        inner = kind_of(name, items, ())
        return "object" if inner in ("object", "list") else "list"
    if kind != "string":
        return "object"
    written = str(schema.get("format") or "")
    if "x-names-file" in schema or written == "path":
        texts = [str(value) for value in values]
        folder = bool(texts) and not any("." in t.rsplit("/", 1)[-1] for t in texts)
        return "folder" if folder else "path"
    known = {"email": "email", "uri": "url", "url": "url", "date": "date"}
    known |= {"date-time": "date", "time": "time"}
    if written in known:
        return known[written]
    kinds: set[str] = set()
    for value in values:
        cut_up = tokenise(str(value))
        kinds.add(cut_up[0].kind if len(cut_up) == 1 else "text")
    if len(kinds) == 1 and (only := kinds.pop()) in ("email", "url", "path", "glob"):
        return only
    last = split_name(name)[-1:] or [""]
    guess = {"url": "url", "link": "url", "email": "email", "path": "path"}
    return guess.get(last[0].lower(), "text")
