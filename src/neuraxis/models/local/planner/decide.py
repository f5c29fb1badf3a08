"""Let the text model choose a tool and values for one clause.

The model cannot write anything but one of the given tools with values that stand in
the clause: its output is held by a grammar (llguidance) of fixed texts, typed values
that were found before, and runs of the clause's own words. Where rules leave two tools
nearly equal, this decides; where a value is missing, this copies one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.models.gguf.llama import Ask, Writer
from neuraxis.models.local.planner import values
from neuraxis.models.local.planner.catalogue import Slot, Tool
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.tokens import Clause
from neuraxis.specs import Json

SHOTS = 2
"""Examples of each tool that are shown."""
LONGEST = 120
"""Tokens of an answer."""


async def decide(
    clause: Clause,
    tools: Sequence[Tool],
    found: Mapping[str, Mapping[str, Sequence[Json]]],
    writer: Writer,
    language: Language,
) -> tuple[Tool, dict[str, Json]] | None:
    """The tool that the model takes and the values that it copies.

    `found`: by tool and parameter, the typed values that the clause holds.
    """
    shots = examples(tools)
    ask = Ask(
        prompt=f"{shots}q: {clause.text}\na: ",
        constant=len(shots),
        max_tokens=LONGEST,
        grammar=grammar(clause, tools, found),
    )
    written = await writer.write(ask)
    try:
        tree: Any = json.loads(written.text)
    except ValueError:
        return None
    if not isinstance(tree, list) or len(cast("list[Any]", tree)) != 1:
        return None
    call = cast("list[Any]", tree)[0]
    if not isinstance(call, dict):
        return None
    given = dict(cast("dict[str, Json]", call))
    name = given.pop("tool", None)
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return None
    arguments: dict[str, Json] = {}
    for slot in tool.slots:
        if slot.name in given:
            value = given[slot.name]
            if isinstance(value, str):
                value = values.convert(value, slot, language)
            if not isinstance(value, values.Nothing):
                arguments[slot.name] = value
    return tool, arguments


def examples(tools: Sequence[Tool]) -> str:
    """How calls of the tools look, which stands before the clause."""
    lines: list[str] = []
    # The best tool's examples stand last, next to the question.
    for tool in reversed(tools):
        if not tool.samples and tool.spec.description:
            lines.append(_shot(tool.spec.description, tool.name, {}))
        for sample in tool.samples[:SHOTS]:
            lines.append(_shot(sample.clause.text, tool.name, sample.arguments))
    return "".join([f"{line}\n" for line in lines])


def _shot(question: str, name: str, arguments: Mapping[str, Json]) -> str:
    call = json.dumps([{"tool": name, **arguments}], ensure_ascii=False)
    return f"q: {question}\na: {call}\n"


def grammar(
    clause: Clause,
    tools: Sequence[Tool],
    found: Mapping[str, Mapping[str, Sequence[Json]]],
) -> str:
    """Lark rules for one call of one of the tools."""
    words = " ".join(clause.text.replace('"', " ").replace("\\", " ").split())
    rules = ["%llguidance {}"]
    rules.append("start: " + " | ".join(f"t{n}" for n in range(len(tools))))
    for number, tool in enumerate(tools):
        parts = [_literal('[{"tool": ' + json.dumps(tool.name))]
        for slot in tool.slots:
            if not slot.required:
                continue
            parts.append(_literal(f", {json.dumps(slot.name)}: "))
            parts.append(_value(slot, found.get(tool.name, {}).get(slot.name, ())))
        parts.append(_literal("}]"))
        rules.append(f"t{number}: " + " ".join(parts))
    rules.append(f"COPY: %regex {json.dumps({'substring_words': words})}")
    return "\n".join(rules) + "\n"


def _value(slot: Slot, known: Sequence[Json]) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in known]
    if slot.choices:
        texts = texts or [json.dumps(c, ensure_ascii=False) for c in slot.choices]
    if texts and slot.kind not in ("content", "query", "text", "title"):
        return "(" + " | ".join(_literal(text) for text in dict.fromkeys(texts)) + ")"
    if slot.kind in ("integer", "number"):
        return "/-?[0-9]{1,9}/"
    if slot.kind == "boolean":
        return '("true" | "false")'
    if slot.kind == "list":
        return _literal('["') + " COPY " + _literal('"]')
    return _literal('"') + " COPY " + _literal('"')


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
