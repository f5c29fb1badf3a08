"""Extract the request, results or errors from a prompt.

The messages are in the session's dialect; the person's own words are taken out of
whatever form stands around them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from neuraxis import call_errors
from neuraxis.messages import Message, Result
from neuraxis.specs import Json

_ESCAPED = re.compile(r"^([ \t]*)\\([qa]:)", re.MULTILINE | re.IGNORECASE)


class Heard(Struct, frozen=True, kw_only=True):
    """Input to answer: results, else errors, else a request."""

    request: str = ""
    results: tuple[Result, ...] = ()
    errors: tuple[str, ...] = ()


def hear(messages: Sequence[Message]) -> Heard:
    """What the last messages ask for."""
    results: list[Result] = []
    for message in reversed(messages):
        if not message.results:
            break
        results[:0] = message.results
    if results:
        return Heard(results=tuple(results))
    text = _without_assets(messages[-1].content)
    answered = len(messages) > 1 and messages[-2].role == "assistant"
    if errors := _errors(text) if answered or messages[-1].role == "tool" else ():
        return Heard(errors=errors)
    return Heard(request=spoken(text))


def _without_assets(text: str) -> str:
    start = call_errors.asset_list(()).partition("\n")[0]
    return text.partition(start)[0].strip()


def spoken(text: str) -> str:
    """What the person said, without the dialect's form around it."""
    text = text.strip()
    if text.startswith("{"):
        tree = _json(text)
        if isinstance(tree, dict):
            content = cast("dict[str, Any]", tree).get("content")
            if isinstance(content, str):
                return content
    found = re.search(r"(?:^|\n)q: (.*?)\n\s*a:\s*$", text, re.DOTALL)
    if found:
        return _ESCAPED.sub(r"\1\2", found.group(1)).strip()
    return text


def _errors(text: str) -> tuple[str, ...]:
    """Messages of the errors in a correction."""
    start = min((place for mark in "[{" if (place := text.find(mark)) >= 0), default=-1)
    if start < 0 or '"error' not in text:
        return ()
    tree = _json(text[start:])
    found: list[str] = []
    stack: list[Any] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += reversed(cast("list[Any]", item))
        elif isinstance(item, dict):
            node = cast("dict[str, Any]", item)
            said = node.get("message") or node.get("error")
            if isinstance(said, str):
                found.append(said)
            else:
                stack += reversed(list(node.values()))
    return tuple(found)


def written_calls(text: str) -> list[tuple[str | None, str, Mapping[str, Json]]]:
    """The calls of a reply of ours: plugin, name and arguments.

    A resumed session has its messages as text only.
    """
    start = min((p for mark in "[{" if (p := text.find(mark)) >= 0), default=-1)
    tree: Any = _json(text[start:]) if start >= 0 else None
    listed = cast("list[Any]", tree) if isinstance(tree, list) else [tree]
    found: list[tuple[str | None, str, Mapping[str, Json]]] = []
    for item in listed:
        node = _fields(item)
        receiver, content = _fields(node.get("receiver")), _fields(node.get("content"))
        if isinstance(node.get("tool"), str):
            given = {key: value for key, value in node.items() if key != "tool"}
            found.append((None, str(node["tool"]), given))
        elif receiver and content:
            name, command = str(receiver.get("name")), str(content.get("command"))
            found.append((name, command, _fields(content.get("param"))))
        elif isinstance(node.get("name"), str):
            found.append((None, str(node["name"]), _fields(node.get("arguments"))))
    return found


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _json(text: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except ValueError:
        return None
