"""Format the offline planner's answers: results, or why it declined."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.formatting import counted, with_article
from neuraxis.messages import Result
from neuraxis.models.offline.catalogue import Arguments, Catalogue, Tool
from neuraxis.models.offline.planner import SHOWN, Planned

LONGEST = 4000  # maximum characters of one value
SHORT = 200
WHO = "This is the offline planner: rules, no language model."
"""Printed by the command line before each run; a decline does not repeat it."""
TEACH = "Commands with examples are matched more reliably (docs/plugins.md)."
OTHER = (
    "For anything else choose a language model: openai:NAME, http://HOST/v1#NAME or "
    "local:FILE.gguf, with `-m openai:NAME` on the command line, "
    '`Session("openai:NAME")` in Python (docs/models.md).'
)


def declined(planned: Planned, catalogue: Catalogue) -> str:
    """Explain a decline: what was understood, what is missing, what to do."""
    clause, nearest = f"“{planned.clause}”", list(planned.near)
    lines, end = [_why(planned, clause)], OTHER
    if nearest:
        lines += ["Nearest:", *map(_shown, nearest)]
        end = (
            OTHER if all(tool.spec.examples for tool in nearest) else f"{TEACH} {OTHER}"
        )
    elif not planned.advice:
        first_of_plugin: dict[
            str, Tool
        ] = {}  # one per plugin, preferably with an example
        for tool in sorted(catalogue.tools, key=lambda tool: not tool.spec.examples):
            first_of_plugin.setdefault(tool.plugin, tool)
        shown = list(first_of_plugin.values())[:SHOWN]
        lines += ["What I can do, for example:", *map(_shown, shown)] if shown else []
    return "\n".join([*lines, "", end])  # an empty line separates it from the list


def _why(planned: Planned, clause: str) -> str:
    closest = planned.nearest
    if planned.advice:
        return f"{clause} asks for advice, which rules cannot give. I did nothing."
    if planned.rivals:
        calls = dict.fromkeys(
            [_call(one.tool, one.arguments) for one in planned.rivals]
        )
        return f"{clause} could mean {' or '.join(list(calls)[:SHOWN])}. I did nothing."
    if closest is None:
        return f"I have no command for {clause}. I did nothing."
    words = [f"“{word}”" for word in dict.fromkeys(closest.unplaced) if word != "?"]
    extra = f"no parameter takes {_all(words)}"
    if planned.without:
        call = _call(planned.without.tool, planned.without.arguments)
        suggestion = f"Without {_all(words)} I would call {call}."
        return f"In {clause} {extra}. I did nothing. {suggestion}"
    verb = "is" if len(closest.missing) == 1 else "are"
    lack = f"{_all([f'`{name}`' for name in closest.missing])} {verb} missing"
    lacks = [lack] if closest.missing else []
    lacks += [extra] if words else []
    but = " and ".join(lacks) or "I am not sure that you mean it"
    call = (
        _call(closest.tool, closest.arguments)
        if closest.arguments
        else closest.tool.name
    )
    return f"{clause} looks like {call}, but {but}. I did nothing."


def _all(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _call(tool: Tool, arguments: Arguments) -> str:
    text = ", ".join([f"{key}={value!r}" for key, value in arguments.items()])
    return f"{tool.name}({text})"


def _shown(tool: Tool) -> str:
    """Describe a command by an example, or by its parameters."""
    if tool.spec.examples:
        return f"- {tool.name}: {tool.spec.examples[0].question}"
    return f"- {tool.name}({', '.join([slot.name for slot in tool.slots])})"


def results(done: Sequence[Result]) -> str:
    """Return the results, and the errors of failed calls."""
    lines: list[str] = []
    for number, result in enumerate(done):
        is_used = any(
            "{{" in repr(other.call.arguments) for other in done[number + 1 :]
        )
        lines.append(_one(result, brief=is_used))
    return "\n\n".join(lines)


def _one(result: Result, *, brief: bool) -> str:
    target, body = result.call.target, _value(result)
    if result.status != "done":
        reason = result.error.message if result.error else "no reason was given"
        reason = reason if reason.startswith(target) else f"{target}: {reason}"
        return reason if body in reason else f"{reason}\n{body}"
    texts = [_text(value) for value in dict(result.call.arguments).values()]
    plain = [text for text in texts if "{{" not in text and "asset://" not in text]
    short = [text for text in plain if len(text) <= 60 and "\n" not in text]
    head = target + (f" ({', '.join(short)})" if short else "")
    body = "\n".join([body, *(f"(Warning: {w})" for w in result.warnings)]).strip("\n")
    if brief and len(body) > SHORT:
        return f"{head}: done; a later step uses the result."
    return f"{head}:\n{body}" if body else f"{head}: done."


def _value(result: Result) -> str:
    value = result.value
    if result.stored and not isinstance(value, str | int | float | dict | list):
        kind = with_article(type(value).__name__)
        return f"The result, {kind}, is stored as {result.call.id}."
    if not isinstance(value, Mapping):
        return "" if value is None or value is True else _text(value)
    summary = {
        name: _text(item)
        for name, item in cast("Mapping[str, Any]", value).items()
        if not (item in (None, "") or item is True or name in ("success", "sandbox"))
    }
    lines = [f"{name}: {text}" for name, text in summary.items()]
    return "\n".join(summary.values() if len(summary) == 1 else lines)


def _text(value: Any) -> str:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    if isinstance(value, str):
        text = value.rstrip("\n")
    elif items and all(isinstance(item, str | int | float) for item in items):
        text = "\n".join(map(str, items))
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    cut = len(text) - LONGEST
    return (
        text if cut <= 0 else f"{text[:LONGEST]}\n… ({counted(cut, 'more character')})"
    )
