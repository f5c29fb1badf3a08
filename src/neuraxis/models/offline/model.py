"""Offline planner: plans requests by rules, or declines."""

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
    """Plans calls for the last message, or explains why it cannot."""

    name = "local:"
    guesses = True  # the user must approve plans that do more than write a new file

    def __init__(self) -> None:
        self._known: tuple[tuple[PluginSpec, ...], Catalogue] | None = None

    async def close(self) -> None:
        """Do nothing: there are no connections or memory."""

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """Stream the plan for the last message, or the answer."""
        if self._known is None or self._known[0] is not prompt.plugins:
            self._known = (prompt.plugins, build(prompt.plugins, prompt.tool_names))
        text, end = self._reply(prompt, self._known[1])
        yield Chunk(text=text)
        yield Chunk(finish_reason=end, usage=Usage())

    def _reply(self, prompt: Prompt, catalogue: Catalogue) -> tuple[str, FinishReason]:
        """Return the reply and its finish reason: plan, answer or decline."""
        *before, last = prompt.messages
        results = list(last.results)
        while results and before and before[-1].results:
            results[:0] = before.pop().results
        if results:
            return say.results(results), "answer"  # untrusted text must not be planned
        begin = call_errors.asset_list(()).partition("\n")[0]
        text, _, asset_lines = last.content.partition(begin)
        answers = last.role == "tool" or (before and before[-1].role == "assistant")
        if answers and '"error' in text and (errors := _ERROR.findall(text)):
            problems = " ".join([json.loads(error) for error in errors])
            return (
                f"The plan was refused, nothing was done: {problems}",
                "declined",
            )
        request, attached = _spoken(text.strip()), _attached(asset_lines)
        if len(attached) == 1:
            request = _ATTACHED.sub(lambda _: attached[0], request)
        planned = plan(request, catalogue, _turns(before, catalogue))
        if not planned.steps:
            return say.declined(planned, catalogue), "declined"
        return _written(planned.steps, prompt, attached), "stop"


def _spoken(text: str) -> str:
    if text.startswith("{"):
        try:
            tree: Any = json.JSONDecoder().raw_decode(text)[0]
        except ValueError:
            tree = {}
        if isinstance(content := tree.get("content"), str):
            return content
    match = _ASKED.search(text)
    return _ESCAPED.sub(r"\1\2", match[1]).strip() if match else text


def _attached(asset_lines: str) -> list[str]:
    """Return the ids of attached objects, from the list of assets."""
    values = [loads(row) for row in asset_lines.splitlines() if row.startswith("{")]
    rows = [one.value for one in values if isinstance(one, Value)]  # or a user's words
    complete_rows = [
        row for row in rows if row.keys() >= {"asset_id", "content"}
    ]  # in full
    return [
        str(row["asset_id"]) for row in complete_rows if "content/command" not in row
    ]


def _turns(messages: Sequence[Message], catalogue: Catalogue) -> list[list[Step]]:
    turns: list[list[Step]] = []
    for _, turn in groupby(messages, lambda message: bool(message.results)):
        steps: list[Step] = []
        for result in [r for m in turn for r in m.results if r.status == "done"]:
            call = result.call
            matching = [
                t for t in catalogue.tools if call.command in (t.name, t.spec.name)
            ]
            tool = next((t for t in matching if call.plugin in (None, t.plugin)), None)
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
    # The envelope has plugin and command; the other dialects have one name.
    has_plugin = '"receiver"' in write([Call(id="", plugin=None, command="probe")])
    # examples refer to results; an attached asset is the content itself
    renamed = {
        f"asset://{one}/content/response": f"asset://{one}/content" for one in attached
    }
    calls: list[Call] = []
    for number, step in enumerate(steps, 1):
        tool = step.tool
        arguments = {k: renamed.get(str(v), v) for k, v in step.arguments.items()}
        plugin, name = (
            (tool.plugin, tool.spec.name) if has_plugin else (None, tool.name)
        )
        call = Call(
            id=f"call_{number}", plugin=plugin, command=name, arguments=arguments
        )
        calls.append(call)
    return write(calls)
