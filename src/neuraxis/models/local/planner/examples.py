"""Learn clauses and lead words from example requests with calls.

An example of several calls is cut into clauses, one for each call. From the place of
a value in its clause the words are learned that lead up to such a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from neuraxis.models.local.planner import clauses
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.tokens import Clause, body_start, clause
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec

Lesson = tuple[Clause, Mapping[str, Json]]


def lessons(
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
        [clause(example.question, language)]
        if len(example.calls) == 1
        else clauses.split(example.question, language)
    )
    if len(parts) != len(example.calls):
        return
    for part, call in zip(parts, example.calls, strict=True):
        if name := aliases.get(call.tool):
            taught.setdefault(name, []).append((part, call.arguments))


def learn(
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
        cues.add("" if before < body_start(part, language) else word.low)
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
    bare = text.removeprefix("https://").removeprefix("http://")
    for index, token in enumerate(part.tokens):
        if token.span is not None and token.span.value.casefold() in (text, bare):
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
