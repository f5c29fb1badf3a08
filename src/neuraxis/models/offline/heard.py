"""What a prompt asks for: a request, results, or errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.messages import Call, Message, Result

_ASKED = re.compile(r"(?:^|\n)q: (.*?)\n\s*a:\s*$", re.DOTALL)
_ESCAPED = re.compile(r"^([ \t]*)\\([qa]:)", re.MULTILINE | re.IGNORECASE)


class Heard(Struct, frozen=True, kw_only=True):
    """Results to tell of, else errors, else a request."""

    request: str = ""
    results: tuple[Result, ...] = ()
    errors: tuple[str, ...] = ()


def hear(messages: Sequence[Message]) -> Heard:
    """Return what the last messages ask for, in the person's own words."""
    results: list[Result] = []
    for message in reversed(messages):
        if not message.results:
            break
        results[:0] = message.results
    if results:
        return Heard(results=tuple(results))
    assets = call_errors.asset_list(()).partition("\n")[0]
    text = messages[-1].content.partition(assets)[0].strip()
    answered = len(messages) > 1 and messages[-2].role == "assistant"
    if (answered or messages[-1].role == "tool") and '"error' in text:
        errors = tuple(_said(_json(text)))
        if errors:
            return Heard(errors=errors)
    return Heard(request=_spoken(text))


def _spoken(text: str) -> str:
    if text.startswith("{"):
        content = _fields(_json(text)).get("content")
        if isinstance(content, str):
            return content
    found = _ASKED.search(text)
    return _ESCAPED.sub(r"\1\2", found[1]).strip() if found else text


def _said(tree: Any) -> Iterator[str]:
    if isinstance(tree, list):
        for item in cast("list[Any]", tree):
            yield from _said(item)
    elif isinstance(tree, dict):
        node = cast("dict[str, Any]", tree)
        said = node.get("message") or node.get("error")
        if isinstance(said, str):
            yield said
        else:
            yield from _said(list(node.values()))


def spoken_calls(text: str) -> Iterator[Call]:
    """Yield the calls of a reply of ours that is text only."""
    tree = _json(text)
    for item in cast("list[Any]", tree if isinstance(tree, list) else [tree]):
        node = _fields(item)
        content = _fields(node.get("content"))
        if isinstance(node.get("tool"), str):
            given = {key: value for key, value in node.items() if key != "tool"}
            yield Call(id="", plugin=None, command=node["tool"], arguments=given)
        elif content:
            yield Call(
                id="",
                plugin=str(_fields(node.get("receiver")).get("name")),
                command=str(content.get("command")),
                arguments=_fields(content.get("param")),
            )
        elif isinstance(node.get("name"), str):
            given = _fields(node.get("arguments"))
            yield Call(id="", plugin=None, command=node["name"], arguments=given)


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _json(text: str) -> Any:
    start = min((place for mark in "[{" if (place := text.find(mark)) >= 0), default=-1)
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0] if start >= 0 else None
    except ValueError:
        return None
