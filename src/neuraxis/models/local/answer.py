"""Compose the final answer of a turn from results, without a model.

What a command answered is said as it is: text as text, lists one a line, the rest as
JSON. Steps that failed or were skipped are named with their reasons.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.messages import Result
from neuraxis.specs import Json

LONGEST = 4000
"""Characters of one value that are said."""
SHORT = 200


def compose(results: Sequence[Result]) -> str:
    """What was done, what came out, what failed and why."""
    said: list[str] = []
    last = len(results) - 1
    for number, result in enumerate(results):
        match result.status:
            case "done":
                used = _is_used_later(result, results[number + 1 :])
                said.append(_done(result, brief=number != last and used))
            case "failed":
                said.append(_failed(result))
            case "skipped":
                reason = result.error.message if result.error else "an earlier step."
                said.append(f"Not run: {reason}")
    return "\n\n".join(said) or "Nothing was done."


def refused(errors: Sequence[str]) -> str:
    """The runtime did not take the plan: why, in its own words."""
    return "I could not do that. " + " ".join(errors)


def _name(result: Result) -> str:
    return result.call.target


def _arguments(result: Result) -> str:
    written: object = result.call.arguments
    if not isinstance(written, dict):
        return ""
    given = cast("dict[str, Any]", written)
    shown = [
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in given.values()
    ]
    short = [text for text in shown if len(text) <= 60 and "\n" not in text]
    return f" ({', '.join(short)})" if short else ""


def _is_used_later(result: Result, later: Sequence[Result]) -> bool:
    return any(
        other.status == "done" and "{{" in _json(other.call.arguments)
        for other in later
    )


def _json(value: Json) -> str:
    return json.dumps(value, default=str)


def _done(result: Result, *, brief: bool) -> str:
    head = f"{_name(result)}{_arguments(result)}"
    body = _value(result)
    for warning in result.warnings:
        body = f"{body}\n(Warning: {warning})" if body else f"(Warning: {warning})"
    if not body:
        return f"{head}: done."
    if brief and len(body) > SHORT:
        return f"{head}: done, {len(body)} characters, used by the next step."
    return f"{head}:\n{body}"


def _value(result: Result) -> str:
    value = result.value
    if result.stored and not isinstance(value, (str, int, float, bool, dict, list)):
        kind = type(cast("object", value)).__name__
        return f"The result ({kind}) is kept as asset {result.call.id}."
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        told = {
            name: item
            for name, item in fields.items()
            if not (item is True or item is None or item == "")
        }
        if len(told) == 1:
            return _text(next(iter(told.values())))
        return "\n".join(
            f"{name}: {_text(item)}"
            if not (isinstance(item, str) and "\n" in item)
            else f"{name}:\n{_text(item)}"
            for name, item in told.items()
        )
    return "" if value is None or value is True else _text(value)


def _is_plain_list(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, (str, int, float)) for item in cast("list[Any]", value)
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        text = value.rstrip("\n")
    elif _is_plain_list(value):
        text = "\n".join(str(item) for item in value)
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, indent=2)
        except (TypeError, ValueError):
            text = f"<{type(value).__name__}>"
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… ({len(text) - LONGEST} more characters)"


def _partial(result: Result, reason: str) -> list[str]:
    """Return a failed step's partial result, without its error text."""
    value: object = result.value
    if not isinstance(value, Mapping):
        return []
    fields = cast("Mapping[str, Any]", value)
    told = {name: _text(item) for name, item in fields.items() if isinstance(item, str)}
    return [
        f"{name}: {text}" for name, text in told.items() if text and text not in reason
    ]


def _failed(result: Result) -> str:
    reason = result.error.message if result.error else "no reason was given"
    name = _name(result)
    start = "" if reason.startswith(name) else f"{name} failed: "
    text = f"{start}{reason}"
    return "\n".join([text, *_partial(result, reason)])
