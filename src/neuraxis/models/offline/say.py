"""Answers of the offline planner: results, or why it did nothing."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.messages import Result
from neuraxis.models.offline.catalogue import Catalogue
from neuraxis.models.offline.planner import Planned
from neuraxis.models.offline.tokens import stems

LONGEST = 4000  # characters of one value that are said
SHORT = 200
WHO = "This is the offline planner: rules, no language model."
TEACH = "To teach me a command, give it types and examples (docs/plugins.md)."
OTHER = (
    "For anything else choose a model: `-m openai:NAME`, `-m http://HOST/v1#NAME` or "
    "`-m local:FILE.gguf` (docs/models.md)."
)


def declined(found: Planned, known: Catalogue) -> str:
    """Return what was understood, what is missing, what can be done."""
    near, clause = found.nearest, found.clause
    if found.rivals:
        why = f"“{clause}” could mean {' or '.join(found.rivals)}, so I did nothing."
    elif near is None or near.score < 0.5:
        why = f"I know no command for “{clause}”, so I did nothing."
    else:
        given = ", ".join(f"{key}={value!r}" for key, value in near.arguments.items())
        lacks = [f"no {name} is given" for name in near.missing]
        lacks += [f"“{word}” does not fit in" for word in near.left if word != "?"]
        but = ", ".join(lacks) or "I am not sure that you mean it"
        call = f"{near.tool.name}({given})"
        why = f"“{clause}” looks like {call}, but {but}, so I did nothing."
    lines = [f"{WHO} {why}"]
    for plugin in known.plugins:
        examples = [one for command in plugin.commands for one in command.examples]
        title = f"Example for {plugin.title or plugin.name}"
        lines += [f"{title}: {one.question}" for one in examples[:1]]
    asked, bare = set(stems(clause)), [t for t in known.tools if not t.samples]
    bare.sort(key=lambda tool: -len(asked & tool.lexicon.keys()))
    names = [f"{t.name}({', '.join([slot.name for slot in t.slots])})" for t in bare]
    if names:
        lines.append(f"Nearest without examples: {', '.join(names[:3])}. {TEACH}")
    return "\n".join([*lines, OTHER])


def results(done: Sequence[Result]) -> str:
    """What came out, what failed and why."""
    said: list[str] = []
    for number, result in enumerate(done):
        used = any("{{" in repr(other.call.arguments) for other in done[number + 1 :])
        said.append(_one(result, brief=used))
    return "\n\n".join(said)


def _one(result: Result, *, brief: bool) -> str:
    target, body = result.call.target, _value(result)
    if result.status != "done":
        reason = result.error.message if result.error else "no reason was given"
        reason = reason if reason.startswith(target) else f"{target}: {reason}"
        return reason if body in reason else f"{reason}\n{body}"
    texts = [_text(value) for value in dict(result.call.arguments).values()]
    short = [text for text in texts if len(text) <= 60 and "\n" not in text]
    head = target + (f" ({', '.join(short)})" if short else "")
    body = "\n".join([body, *(f"(Warning: {w})" for w in result.warnings)]).strip("\n")
    if brief and len(body) > SHORT:
        return f"{head}: done, {len(body)} characters, used by the next step."
    return f"{head}:\n{body}" if body else f"{head}: done."


def _value(result: Result) -> str:
    value = result.value
    if result.stored and not isinstance(value, str | int | float | dict | list):
        kind = type(value).__name__
        return f"The result ({kind}) is stored as asset {result.call.id}."
    if not isinstance(value, Mapping):
        return "" if value is None or value is True else _text(value)
    told = {
        name: _text(item)
        for name, item in cast("Mapping[str, Any]", value).items()
        if not (item in (None, "") or item is True or name in ("success", "sandbox"))
    }
    lines = [f"{name}: {text}" for name, text in told.items()]
    return "\n".join(told.values() if len(told) == 1 else lines)


def _text(value: Any) -> str:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    if isinstance(value, str):
        text = value.rstrip("\n")
    elif items and all(isinstance(item, str | int | float) for item in items):
        text = "\n".join(map(str, items))
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    cut = len(text) - LONGEST
    return text if cut <= 0 else f"{text[:LONGEST]}\n… ({cut} more characters)"
