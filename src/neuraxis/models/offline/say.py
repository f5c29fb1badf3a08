"""Answers of the offline planner: results, or why it did nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.messages import Result
from neuraxis.models.offline.catalogue import Catalogue
from neuraxis.models.offline.planner import Planned

LONGEST = 4000
"""Characters of one value that are said."""
SHORT = 200
_BESIDE = ("success", "sandbox")
WHO = "This is the offline planner: rules, no language model."
OTHER = (
    "For anything else name a model: `-m openai:NAME`, `-m http://HOST/v1#NAME` or "
    "`-m local:FILE.gguf` (docs/models.md)."
)


def declined(found: Planned, known: Catalogue) -> str:
    """Return what was understood, what is missing, what can be done."""
    near, clause = found.nearest, found.clause
    if found.rivals:
        both = " or ".join(found.rivals)
        why = f"“{clause}” could mean {both}, so I did nothing."
    elif near is None or near.score < 0.5:
        why = f"I know no command here that “{clause}” asks for, so I did nothing."
    else:
        given = ", ".join(f"{key}={value!r}" for key, value in near.arguments.items())
        lacks = [f"no {name} given" for name in near.missing]
        odd = [word for word in near.left if word != "?"]
        lacks += [f"“{word}” has no place in it" for word in odd]
        lacks = lacks or ["it is not clear that this is meant"]
        why = (
            f"“{clause}” looks like {near.tool.name}({given}), but "
            f"{', '.join(lacks)}; I did nothing."
        )
    examples = [
        f"  {plugin.title or plugin.name}: {example.question}"
        for plugin in known.plugins
        for example in [x for c in plugin.commands for x in c.examples][:1]
    ]
    shown = "\n".join(
        ["Here I understand, for example:", *examples, ""] if examples else []
    )
    return f"{WHO} {why}\n{shown}{OTHER}"


def errors(said: Sequence[str]) -> str:
    """Why the runtime did not take the plan."""
    return f"{WHO} The plan was not accepted, and nothing was done: {' '.join(said)}"


def results(done: Sequence[Result]) -> str:
    """What came out, what failed and why."""
    said: list[str] = []
    for number, result in enumerate(done):
        used = any("{{" in repr(other.call.arguments) for other in done[number + 1 :])
        said.append(_one(result, brief=used))
    return "\n\n".join(said)


def _one(result: Result, *, brief: bool) -> str:
    given: object = result.call.arguments
    values = cast("dict[str, Any]", given).values() if isinstance(given, dict) else ()
    short = [
        text for value in values if len(text := _text(value)) <= 60 and "\n" not in text
    ]
    head = result.call.target + (f" ({', '.join(short)})" if short else "")
    body = _value(result)
    if result.status != "done":
        reason = result.error.message if result.error else "no reason was given"
        parts = [
            reason if reason.startswith(result.call.target) else f"{head}: {reason}"
        ]
        return "\n".join([*parts, body] if body and body not in reason else parts)
    body = "\n".join([body, *(f"(Warning: {text})" for text in result.warnings)]).strip(
        "\n"
    )
    if brief and len(body) > SHORT:
        return f"{head}: done, {len(body)} characters, used by the next step."
    return f"{head}:\n{body}" if body else f"{head}: done."


def _value(result: Result) -> str:
    value = result.value
    if result.stored and not isinstance(value, str | int | float | dict | list):
        kind = type(cast("object", value)).__name__
        return f"The result ({kind}) is kept as asset {result.call.id}."
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        told = {
            name: item
            for name, item in fields.items()
            if not (item is True or item is None or item == "" or name in _BESIDE)
        }
        if len(told) == 1:
            return _text(next(iter(told.values())))
        return "\n".join(f"{name}: {_text(item)}" for name, item in told.items())
    return "" if value is None or value is True else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        text = value.rstrip("\n")
    elif isinstance(value, list) and all(
        isinstance(item, str | int | float) for item in cast("list[Any]", value)
    ):
        text = "\n".join(str(item) for item in cast("list[Any]", value))
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… ({len(text) - LONGEST} more characters)"
