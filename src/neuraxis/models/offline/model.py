"""Offline planner: rules that plan what fits whole, or decline.

It knows of the commands what their plugins say of them, and nothing else; it has no
weights and cannot talk.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from neuraxis import call_errors
from neuraxis.messages import Call, Chunk, Message, Prompt, Result, Usage
from neuraxis.models.offline import say
from neuraxis.models.offline.catalogue import Catalogue, build
from neuraxis.models.offline.planner import plan
from neuraxis.models.offline.references import Step
from neuraxis.specs import Json, PluginSpec

_ASKED = re.compile(r"(?:^|\n)q: (.*?)\n\s*a:\s*$", re.DOTALL)
_ESCAPED = re.compile(r"^([ \t]*)\\([qa]:)", re.MULTILINE | re.IGNORECASE)
_ERROR = re.compile(r'"message": *("(?:[^"\\]|\\.)*")')


class OfflinePlanner:
    """Plans calls for the last message, or says why it does not."""

    name = "local:"
    guesses = True  # a person is asked about plans that do more than write a new file

    def __init__(self) -> None:
        self._known: tuple[tuple[PluginSpec, ...], Catalogue] | None = None

    async def close(self) -> None:
        """Nothing is held between two requests."""

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """Stream the plan for the last message, or the answer."""
        if self._known is None or self._known[0] is not prompt.plugins:
            self._known = (prompt.plugins, build(prompt.plugins, prompt.tool_names))
        text, done = self._reply(prompt, self._known[1])
        yield Chunk(text=text)
        yield Chunk(finish_reason="stop" if done else "declined", usage=Usage())

    def _reply(self, prompt: Prompt, known: Catalogue) -> tuple[str, bool]:
        """Return what is said, and whether it is not declined."""
        *before, last = prompt.messages
        results = list(last.results)
        while results and before and before[-1].results:
            results[:0] = before.pop().results
        if results:
            return say.results(results), True
        text = last.content.partition(call_errors.asset_list(()).partition("\n")[0])[0]
        answers = last.role == "tool" or (before and before[-1].role == "assistant")
        if answers and '"error' in text and (errors := _ERROR.findall(text)):
            return say.errors([json.loads(error) for error in errors]), False
        found = plan(_spoken(text.strip()), known, _turns(before, known))
        if not found.steps:
            return say.declined(found, known), False
        return _written(found.steps, prompt), True


def _spoken(text: str) -> str:
    """Return the person's own words, without the dialect's form."""
    content = _fields(_json(text)).get("content") if text.startswith("{") else None
    if isinstance(content, str):
        return content
    found = _ASKED.search(text)
    return _ESCAPED.sub(r"\1\2", found[1]).strip() if found else text


def _turns(messages: Sequence[Message], known: Catalogue) -> list[list[Step]]:
    """Return the calls of earlier turns with their results."""
    results = {r.call.id: r for message in messages for r in message.results}
    replies = [m.calls or _calls(m.content) for m in messages if m.role == "assistant"]
    turns = [list(_past(calls, results, known)) for calls in replies]
    return [steps for steps in turns if steps]


def _past(
    calls: Iterable[Call], results: Mapping[str, Result], known: Catalogue
) -> Iterator[Step]:
    for call in calls:
        result, given = results.get(call.id), _fields(call.arguments)
        value, asset = (result.value, call.id) if result else (None, "")
        named = [t for t in known.tools if call.command in (t.name, t.spec.name)]
        for tool in [t for t in named if call.plugin in (None, t.plugin)][:1]:
            if result is None or result.status == "done":
                yield Step(
                    tool=tool, arguments=given, past=True, value=value, asset=asset
                )


def _calls(text: str) -> Iterator[Call]:
    """Yield the calls of a reply that is text only."""
    tree = _json(text)
    for item in cast("list[Any]", tree if isinstance(tree, list) else [tree]):
        node = _fields(item)
        content, receiver = _fields(node.get("content")), _fields(node.get("receiver"))
        name = node.get("tool") or content.get("command") or node.get("name")
        given = content.get("param") or node.get("arguments")
        given = given or {key: it for key, it in node.items() if key != "tool"}
        if isinstance(name, str):
            plugin = receiver.get("name")
            yield Call(id="", plugin=plugin, command=name, arguments=given)


def _written(steps: Sequence[Step], prompt: Prompt) -> str:
    write = prompt.write
    assert write is not None
    # The envelope says plugin and command; the other dialects one name.
    both = '"receiver"' in write([Call(id="", plugin=None, command="probe")])
    calls: list[Call] = []
    for number, step in enumerate(steps, 1):
        tool, given = step.tool, dict(step.arguments)
        plugin, name = (tool.plugin, tool.spec.name) if both else (None, tool.name)
        call = Call(id=f"call_{number}", plugin=plugin, command=name, arguments=given)
        calls.append(call)
    return write(calls)


def _fields(value: Json) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _json(text: str) -> Json:
    start = min((place for mark in "[{" if (place := text.find(mark)) >= 0), default=-1)
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0] if start >= 0 else None
    except ValueError:
        return None
