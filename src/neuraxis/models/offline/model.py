"""Offline planner: rules that plan what fits whole, or decline."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from typing import Any

from neuraxis import call_errors
from neuraxis.messages import Call, Chunk, FinishReason, Message, Prompt, Usage
from neuraxis.models.offline import say
from neuraxis.models.offline.catalogue import Catalogue, build
from neuraxis.models.offline.planner import plan
from neuraxis.models.offline.references import Step
from neuraxis.parsing.json_scan import Value, loads
from neuraxis.specs import PluginSpec

_ASKED = re.compile(r"(?:^|\n)q: (.*?)\n\s*a:\s*$", re.DOTALL)
_ESCAPED = re.compile(r"^([ \t]*)\\([qa]:)", re.MULTILINE | re.IGNORECASE)
_ATTACHED = re.compile(r"\bthe (?:attached \w+|attachment)\b", re.IGNORECASE)
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
        text, end = self._reply(prompt, self._known[1])
        yield Chunk(text=text)
        yield Chunk(finish_reason=end, usage=Usage())

    def _reply(self, prompt: Prompt, known: Catalogue) -> tuple[str, FinishReason]:
        """Return what is said, and how it ends: plan, answer or neither."""
        *before, last = prompt.messages
        results = list(last.results)
        while results and before and before[-1].results:
            results[:0] = before.pop().results
        if results:
            return say.results(results), "answer"  # the words of others, and no plan
        begin = call_errors.asset_list(()).partition("\n")[0]
        text, _, listed = last.content.partition(begin)
        answers = last.role == "tool" or (before and before[-1].role == "assistant")
        if answers and '"error' in text and (errors := _ERROR.findall(text)):
            why = " ".join([json.loads(error) for error in errors])
            return (
                f"The plan was refused, nothing was done: {why}",
                "declined",
            )
        asked, attached = _spoken(text.strip()), _attached(listed)
        if len(attached) == 1:
            asked = _ATTACHED.sub(lambda _: attached[0], asked)
        found = plan(asked, known, _turns(before, known))
        if not found.steps:
            return say.declined(found, known), "declined"
        return _written(found.steps, prompt, attached), "stop"


def _spoken(text: str) -> str:
    if text.startswith("{"):
        try:
            tree: Any = json.JSONDecoder().raw_decode(text)[0]
        except ValueError:
            tree = {}
        if isinstance(content := tree.get("content"), str):
            return content
    found = _ASKED.search(text)
    return _ESCAPED.sub(r"\1\2", found[1]).strip() if found else text


def _attached(listed: str) -> list[str]:
    """Return the ids of attached objects, from the list of assets."""
    read = [loads(row) for row in listed.splitlines() if row.startswith("{")]
    rows = [one.value for one in read if isinstance(one, Value)]  # or a user's words
    whole = [row for row in rows if row.keys() >= {"asset_id", "content"}]  # in full
    return [str(row["asset_id"]) for row in whole if "content/command" not in row]


def _turns(messages: Sequence[Message], known: Catalogue) -> list[list[Step]]:
    turns: list[list[Step]] = []
    for _, turn in groupby(messages, lambda message: bool(message.results)):
        steps: list[Step] = []
        for result in [r for m in turn for r in m.results if r.status == "done"]:
            call = result.call
            named = [t for t in known.tools if call.command in (t.name, t.spec.name)]
            tool = next((t for t in named if call.plugin in (None, t.plugin)), None)
            if tool:
                steps.append(
                    Step(tool=tool, arguments=call.arguments, past=True,
                         value=result.value, asset=call.id)
                )  # fmt: skip
        turns += [steps] if steps else []
    return turns


def _written(steps: Sequence[Step], prompt: Prompt, attached: Sequence[str]) -> str:
    write = prompt.write
    assert write is not None
    # The envelope says plugin and command; the other dialects one name.
    both = '"receiver"' in write([Call(id="", plugin=None, command="probe")])
    # examples speak of results; what is attached is the content itself
    own = {
        f"asset://{one}/content/response": f"asset://{one}/content" for one in attached
    }
    calls: list[Call] = []
    for number, step in enumerate(steps, 1):
        tool = step.tool
        given = {k: own.get(str(v), v) for k, v in step.arguments.items()}
        plugin, name = (tool.plugin, tool.spec.name) if both else (None, tool.name)
        call = Call(id=f"call_{number}", plugin=plugin, command=name, arguments=given)
        calls.append(call)
    return write(calls)
