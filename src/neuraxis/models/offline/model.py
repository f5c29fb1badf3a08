"""Offline planner: rules that plan what fits whole, or decline.

It knows of the commands what their plugins say of them, and nothing else; it has no
weights and cannot talk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import cast

from neuraxis.messages import Call, Chunk, Message, Prompt, Result, Usage
from neuraxis.models.offline import say
from neuraxis.models.offline.catalogue import Catalogue, Tool, build
from neuraxis.models.offline.heard import hear, spoken_calls
from neuraxis.models.offline.planner import plan
from neuraxis.models.offline.references import Step
from neuraxis.specs import Json, PluginSpec


class OfflinePlanner:
    """Plans calls for the last message, or says why it does not."""

    guesses = True
    """Its plans need a person's yes, where they do more than write a new file."""

    def __init__(self) -> None:
        self.name = "local:"
        self._known: tuple[tuple[PluginSpec, ...], Catalogue] | None = None

    async def close(self) -> None:
        """Nothing is held between two requests."""

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """Stream the plan for the last message, or the answer."""
        heard = hear(prompt.messages)
        if heard.results or heard.errors:
            # a plan that was refused is no answer of ours
            ended = "stop" if heard.results else "declined"
            text = (
                say.results(heard.results)
                if heard.results
                else say.errors(heard.errors)
            )
            yield Chunk(text=text)
            yield Chunk(finish_reason=ended, usage=Usage())
            return
        known = self._catalogue(prompt)
        found = plan(heard.request, known, _turns(prompt.messages[:-1], known))
        if found.steps:
            yield Chunk(text=_written(found.steps, prompt))
            yield Chunk(finish_reason="stop", usage=Usage())
        else:
            yield Chunk(text=say.declined(found, known))
            yield Chunk(finish_reason="declined", usage=Usage())

    def _catalogue(self, prompt: Prompt) -> Catalogue:
        if self._known is None or self._known[0] is not prompt.plugins:
            built = build(prompt.plugins, prompt.tool_names)
            self._known = (prompt.plugins, built)
        return self._known[1]


def _turns(messages: Sequence[Message], known: Catalogue) -> list[list[Step]]:
    """Return the calls of earlier turns with their results."""
    results = {r.call.id: r for message in messages for r in message.results}
    turns: list[list[Step]] = []
    for message in messages:
        if message.role == "assistant":
            calls = message.calls or tuple(spoken_calls(message.content))
            steps = list(_past(calls, results, known))
            turns += [steps] if steps else []
    return turns


def _past(
    calls: Sequence[Call], results: Mapping[str, Result], known: Catalogue
) -> Iterator[Step]:
    for call in calls:
        tool = _tool(call, known)
        given: object = call.arguments
        result = results.get(call.id)
        if (
            tool is None
            or not isinstance(given, dict)
            or (result and result.status != "done")
        ):
            continue
        yield Step(
            tool=tool,
            arguments=cast("Mapping[str, Json]", given),
            past=True,
            value=result.value if result else None,
            asset=call.id if result else "",
        )


def _tool(call: Call, known: Catalogue) -> Tool | None:
    for tool in known.tools:
        if tool.name == call.command or (
            tool.spec.name == call.command and call.plugin in (None, tool.plugin)
        ):
            return tool
    return None


def _written(steps: Sequence[Step], prompt: Prompt) -> str:
    assert prompt.write is not None
    # The envelope says plugin and command; the other dialects one name.
    both = '"receiver"' in prompt.write([Call(id="", plugin=None, command="probe")])
    return prompt.write(
        [
            Call(
                id=f"call_{number}",
                plugin=step.tool.plugin if both else None,
                command=step.tool.spec.name if both else step.tool.name,
                arguments=dict(step.arguments),
            )
            for number, step in enumerate(steps, 1)
        ]
    )
