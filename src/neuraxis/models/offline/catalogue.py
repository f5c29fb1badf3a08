"""Catalogue of the commands' words and examples, for the planner."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct

from neuraxis.models.offline import english
from neuraxis.models.offline.tokens import (
    VERBS,
    Token,
    cuts,
    named,
    pieces,
    stem,
    stems,
    tokenise,
)  # fmt: skip
from neuraxis.specs import CommandSpec, Json, PluginSpec

Node = Mapping[str, Json]
_FILE_NAME = re.compile(r"(?<![\w-])[\w-]++\.[a-z]\w*+")
_LONGEST_VALUE = 300
"""Maximum characters of an example in a schema: servers write them, too."""
_FORMATS = {"uri": "url", "link": "url", "date-time": "date"}
Arguments = Mapping[str, Json]
Lesson = tuple[tuple[Token, ...], Arguments]
_LONG = frozenset(stems(" ".join(english.LONG)))


class Slot(Struct, frozen=True, kw_only=True):
    """One parameter: its values, and the words that introduce it."""

    name: str
    schema: Node
    kind: str
    required: bool
    words: frozenset[str]  # stems of its name
    cues: frozenset[str] = frozenset()  # words right before its values in the examples
    choices: tuple[Json, ...] = ()
    quoted: bool = False  # in every example its value is in quotes
    tail: bool = False  # in some example its value extends to the end
    longest: int = 0  # words of its longest value in the examples
    value_words: frozenset[str] = frozenset()  # words of its values in the examples
    shape: str = ""
    takes: frozenset[str] = frozenset()  # kinds of addresses that a text may be
    moment: bool = False  # its name or description is about a day or time

    @property
    def long(self) -> bool:
        """Whether its value is a whole text."""
        return bool(self.words & _LONG)

    @property
    def plain(self) -> bool:
        """Whether no example value contains words like "of"."""
        return not self.value_words & english.FUNCTION


class Tool(Struct, kw_only=True):
    """One command."""

    name: str
    plugin: str
    spec: CommandSpec
    slots: tuple[Slot, ...]
    heads: dict[str, float]  # stems of verbs that request it
    lexicon: dict[str, float]  # stems that describe it, with weights
    samples: tuple[Sample, ...] = ()


class Sample(Struct, frozen=True, kw_only=True):
    """Tokens and calls of an example."""

    tokens: tuple[Token, ...]
    calls: tuple[tuple[Tool, Arguments], ...]


class Catalogue(Struct, frozen=True, kw_only=True):
    """All commands, and the examples of several calls."""

    tools: tuple[Tool, ...]
    chains: tuple[Sample, ...]
    weights: Mapping[str, float]  # how well a stem distinguishes the commands
    heads: frozenset[str]
    names: Mapping[str, tuple[Tool, ...]]  # which commands have a stem in their name


def build(
    plugins: Sequence[PluginSpec], tool_names: Mapping[str, tuple[str, str]]
) -> Catalogue:
    """Return the commands of all listed plugins."""
    names = {pair: name for name, pair in tool_names.items()}
    pairs = [(plugin, one) for plugin in plugins for one in plugin.commands]
    visible = {
        names.get((plugin.name, one.name)) or one.tool_name or one.name: (plugin, one)
        for plugin, one in pairs
    }
    examples = [example for _, one in pairs for example in one.examples]
    examples += [example for plugin in plugins for example in plugin.examples]
    examples = [e for e in examples if visible.keys() >= {c.tool for c in e.calls}]
    first_stems = {word for _, one in pairs for word in stems(one.name)[:1]}
    taught: dict[str, list[Lesson]] = {name: [] for name in visible}
    for example in examples:
        question, alone = example.question, len(example.calls) == 1
        parts = (
            [question]
            if alone
            else pieces(question, cuts(question, VERBS | first_stems))
        )
        if len(parts) == len(example.calls):
            for part, call in zip(parts, example.calls, strict=True):
                taught[call.tool].append((tuple(tokenise(part)), call.arguments))
    tools = {name: _tool(name, *pair, taught[name]) for name, pair in visible.items()}
    chains: list[Sample] = []
    for example in examples:
        calls = tuple([(tools[call.tool], call.arguments) for call in example.calls])
        sample = Sample(tokens=tuple(tokenise(example.question)), calls=calls)
        if len(calls) == 1:
            calls[0][0].samples += (sample,)
        elif calls:
            chains.append(sample)
    known = tuple(tools.values())
    counts = Counter([word for tool in known for word in tool.lexicon])
    scale = math.log(1 + len(known))
    called: dict[str, tuple[Tool, ...]] = {}
    for tool in known:
        for word in stems(tool.spec.name)[1:]:
            called[word] = (*called.get(word, ()), tool)
    return Catalogue(
        tools=known, chains=tuple(chains),
        weights={w: math.log(1 + len(known) / n) / scale for w, n in counts.items()},
        heads=frozenset([word for tool in known for word in tool.heads]), names=called,
    )  # fmt: skip


def _tool(
    name: str, plugin: PluginSpec, spec: CommandSpec, taught: Sequence[Lesson]
) -> Tool:
    slots = tuple(_slots(spec, taught))
    lexicon: dict[str, float] = {}
    slot_texts = " ".join([str(slot.schema.get("description", "")) for slot in slots])
    description, titles = spec.description, f"{plugin.name} {plugin.title or ''}"
    # a verb that all commands of a plugin share does not single this one out
    short_name, shared = name.removeprefix(f"{plugin.name}."), len(plugin.commands) > 1
    weighted_texts = [
        (f"{spec.name} {short_name}", 1.0),
        (titles, 0.5 if shared else 0.7),
    ]
    weighted_texts += [(description, 0.5 if taught else 0.7)]
    weighted_texts += [(f"{plugin.description_model} {slot_texts}", 0.2)]
    weighted_texts += [(slot.name, 0.5) for slot in slots]
    firsts = [named(text)[:1] for text in (spec.name, short_name, description)]
    heads = {
        stem(w): 0.8 for ws in firsts for w in ws if w.lower() not in english.CLOSED
    }
    heads |= {w: 0.6 for w in stems(description) if w in VERBS and w not in heads}
    for tokens, given in taught:
        free = [slot.name for slot in slots if slot.kind != "choice"]
        places = [locate(tokens, given.get(one)) for one in free]
        hidden = {place for where in places if where for place in range(*where)}
        example_words = [
            t for n, t in enumerate(tokens) if t.kind == "word" and n not in hidden
        ]
        # "a hello world function" describes the contents: no words about writing
        texts = [
            str(given[slot.name]) for slot in slots if slot.long and slot.name in given
        ]
        if all("{{" in text or locate(tokens, text) for text in texts):
            weighted_texts.append(
                (" ".join([token.text for token in example_words]), 0.8)
            )
        lead = (
            {example_words[0].low, example_words[0].stem}
            if example_words and 0 not in hidden
            else set[str]()
        )
        if lead and not lead & english.CLOSED:
            heads[example_words[0].stem] = 1.0
    for text, weight in weighted_texts:
        turning = () if weight >= 0.8 else english.TURNING
        # a file name such as `hello.txt` does not describe the command
        for word in stems(_FILE_NAME.sub(" ", text)):
            if not (
                word in english.FUNCTION or word in english.NUMBERS or word in turning
            ):
                lexicon[word] = max(lexicon.get(word, 0.0), weight)
    return Tool(
        name=name, plugin=plugin.name, spec=spec, slots=slots, heads=heads,
        lexicon=lexicon,
    )  # fmt: skip


def locate(tokens: Sequence[Token], value: Json) -> tuple[int, int] | None:
    """Return the range of tokens that a value has in a request."""
    if isinstance(value, bool | dict | list) or value is None or "{{" in str(value):
        return None
    lows = [token.low for token in tokenise(str(value))]
    for begin, token in enumerate(tokens):
        if token.value == value and token.kind != "word":
            return begin, begin + 1
        end = begin + len(lows)
        if lows and [t.low for t in tokens[begin:end]] == lows:
            return begin, end
    return None


def _slots(spec: CommandSpec, taught: Sequence[Lesson]) -> Iterator[Slot]:
    properties: Mapping[str, Node] = spec.parameters.get("properties", {})
    for name, node in properties.items():
        schema = resolved(node, spec.parameters)
        values: list[Json] = list(schema.get("examples") or ())
        values += [schema["example"]] if "example" in schema else []
        values += [given[name] for _, given in taught if name in given]
        cues, quoted, longest, tail = set[str](), list[bool](), 0, False
        for tokens, given in taught:
            if (place := locate(tokens, given.get(name))) is None:
                continue
            begin, end = place
            before = [token.low for token in tokens[max(0, begin - 2) : begin]]
            cues |= set(before[-1:])
            if before and before[-1] in english.DETERMINERS:
                cues.add(before[0])
            longest = max(longest, len(tokenise(str(given[name]))))
            quoted.append(tokens[begin].kind in ("quoted", "code"))
            tail |= all(token.kind == "mark" for token in tokens[end:])
        texts = [value for value in values if isinstance(value, str)]
        about = named(str(schema.get("description", "")))
        description_words = {word.lower() for word in about}
        example_words = {word for text in texts for word in text.lower().split()}
        choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
        moments = description_words | {name.lower(), *stems(name)}
        yield Slot(
            name=name, schema=schema, kind=kind_of(name, schema, values),
            required=name in spec.required, words=frozenset(stems(name)),
            cues=frozenset(cues - english.DETERMINERS), choices=tuple(choices),
            quoted=bool(quoted) and all(quoted), tail=tail, longest=longest,
            value_words=frozenset(example_words), shape=shape_of(texts),
            takes=frozenset() if texts else _takes(name, description_words),
            moment=bool(moments & english.MOMENTS),
        )  # fmt: skip


def _takes(name: str, description_words: set[str]) -> frozenset[str]:
    """Return the kinds of addresses that a text parameter accepts."""
    called = {word.lower() for word in named(name)}
    kinds = english.NAMED.items()
    return frozenset(
        [
            kind
            for kind, known in kinds
            if called & known or english.TOLD[kind] & description_words
        ]
    )


def resolved(node: Node, root: Node) -> Node:
    """Return a schema without `$ref` and without null."""
    for _ in range(8):
        options = cast("list[Node]", node.get("anyOf") or node.get("oneOf") or [])
        real = [part for part in options if part.get("type") != "null"]
        ref = str(node.get("$ref", "")).removeprefix("#/$defs/")
        target = real[0] if len(real) == 1 else root.get("$defs", {}).get(ref)
        if not target:
            break
        refs = ("$ref", "anyOf", "oneOf")
        node = {
            **target,
            **{key: item for key, item in node.items() if key not in refs},
        }
    return node


def kind_of(name: str, schema: Node, values: Sequence[Json]) -> str:
    """Return a parameter's kind; for texts it depends on the examples."""
    types = schema.get("type")
    if isinstance(types, list):
        types = next((t for t in cast("list[str]", types) if t != "null"), None)
    if schema.get("enum") or "const" in schema:
        return "choice"
    if schema.get("x-asset-ref") or "x-type" in schema or types in (None, "object"):
        return "object"
    if types in ("integer", "number"):
        return "number"
    if types != "string":
        return str(types)
    written = str(schema.get("format") or "")
    texts = [str(value)[:_LONGEST_VALUE] for value in values]
    if "x-names-file" in schema or written == "path":
        folder = texts and not any("." in text.rsplit("/", 1)[-1] for text in texts)
        return "folder" if folder else "path"
    kinds = {t[0].kind if len(t) == 1 else "text" for t in map(tokenise, texts)}
    if len(kinds) == 1 and kinds <= {"email", "url", "path", "glob", "date", "month"}:
        return kinds.pop()
    if (kind := _FORMATS.get(written, written)) in ("email", "url", "date", "time"):
        return kind
    last = (named(name.lower()) or [""])[-1]
    return last if last in ("email", "url", "path") else _FORMATS.get(last, "text")


def shape_of(texts: Sequence[str]) -> str:
    """Return the common shape: `digits`, `capitals`, `letters`, or nothing."""
    digits = {any(mark.isdigit() for mark in text) for text in texts}
    if texts and all(text.isupper() and len(text) > 1 for text in texts):
        return "digits" if digits == {True} else "capitals"
    return "" if len(digits) != 1 else "digits" if True in digits else "letters"
