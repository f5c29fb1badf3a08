"""Embedded model: plans calls, or answers in words.

Requests are planned by rules and by what the plugins say of themselves. The small
text model is asked only where rules settle nothing, and to chat.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import cast

from neuraxis.errors import MissingExtra, ModelError
from neuraxis.messages import Call, Chunk, Message, Prompt, Usage
from neuraxis.models.gguf.lazy import Sparing
from neuraxis.models.gguf.llama import Ask, Writer, Written
from neuraxis.models.local import answer
from neuraxis.models.local import prompt as hearing
from neuraxis.models.local.planner import catalogue, contents, planner
from neuraxis.models.local.planner.catalogue import Catalogue
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.language import Language, guess
from neuraxis.models.local.planner.planner import Drafted
from neuraxis.specs import Json, PluginSpec

LONGEST_CHAT = 120
"""Tokens of a spoken answer."""


class LocalModel:
    """Plans calls for the last message, or answers it."""

    def __init__(self, writer: Writer | None = None) -> None:
        self.name = "local:smollm2"
        self._writer = writer
        self._known: tuple[tuple[PluginSpec, ...], str, Catalogue] | None = None

    async def close(self) -> None:
        """Give the model's memory back."""
        if self._writer is not None:
            self._writer.close()

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """The plan for the last message, or the answer to it."""
        heard = hearing.hear(prompt.messages)
        if heard.results:
            yield Chunk(text=answer.compose(heard.results))
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        if heard.errors:
            yield Chunk(text=answer.refused(heard.errors))
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        rules = guess(heard.request)
        known = self._catalogue(prompt, rules)
        sparing = Sparing(self._writer) if self._writer is not None else None
        drafted = await planner.plan(
            heard.request, known, sparing, _before(prompt.messages[:-1], known)
        )
        for note in drafted.notes:
            yield Chunk(note=note)
        if sparing is not None and sparing.failure:
            yield Chunk(note=f"planned without the text model: {sparing.failure}")
        if drafted.unplanned:
            # Beside calls a text is no part of every dialect: there it is a note.
            said = _asked(drafted, rules)
            yield Chunk(note=said) if drafted.steps else Chunk(text=said)
        if drafted.steps:
            yield Chunk(text=_written(drafted, prompt))
        if drafted.steps or drafted.unplanned:
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        async for chunk in self._chat(heard.request, rules):
            yield chunk

    def _catalogue(self, prompt: Prompt, rules: Language) -> Catalogue:
        known = self._known
        if known is None or known[0] is not prompt.plugins or known[1] != rules.code:
            built = catalogue.build(prompt.plugins, prompt.tool_names, rules)
            known = self._known = (prompt.plugins, rules.code, built)
        return known[2]

    async def _chat(self, request: str, rules: Language) -> AsyncIterator[Chunk]:
        writer = self._writer
        if writer is None:
            yield Chunk(text=_unable(rules, "there is none in this session."))
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        ask = Ask(
            prompt=contents.chat_prompt(request),
            constant=len(contents.CHAT),
            max_tokens=LONGEST_CHAT,
            stop=("<|im_end|>",),
            repeat_penalty=1.1,
        )

        async def run() -> Written:
            try:
                return await writer.write(ask, pieces.put_nowait)
            finally:
                pieces.put_nowait(None)

        task = asyncio.create_task(run())
        try:
            while (piece := await pieces.get()) is not None:
                yield Chunk(text=piece)
            written = await task
        except (MissingExtra, ModelError) as error:
            yield Chunk(text=_unable(rules, str(error)))
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        finally:
            task.cancel()
        yield Chunk(finish_reason="stop", usage=written.usage)


def _unable(rules: Language, why: str) -> str:
    return str(rules.table("say")["no_weights"]).replace("{why}", why)


def _before(messages: Sequence[Message], known: Catalogue) -> tuple[Step, ...]:
    """Calls of earlier turns: their values can be meant by "it"."""
    found: list[Step] = []
    for message in messages:
        if message.role != "assistant":
            continue
        calls = [
            (call.plugin, call.command, cast("Mapping[str, Json]", call.arguments))
            for call in message.calls
            if isinstance(cast("object", call.arguments), dict)
        ]
        for plugin, name, given in calls or hearing.written_calls(message.content):
            tool = known.tool(name) or next(
                (
                    tool
                    for tool in known.tools
                    if tool.spec.name == name and plugin in (None, tool.plugin)
                ),
                None,
            )
            if tool is not None:
                found.append(Step(tool=tool, arguments=given))
    return tuple(found)


def _written(drafted: Drafted, prompt: Prompt) -> str:
    calls = [
        Call(
            id=f"call_{number}",
            plugin=None,
            command=step.tool.name,
            arguments=dict(step.arguments),
        )
        for number, step in enumerate(drafted.steps, 1)
    ]
    if prompt.write is None:
        intents: list[Mapping[str, Json]] = [
            {"tool": step.tool.name, **step.arguments} for step in drafted.steps
        ]
        body = json.dumps(intents, ensure_ascii=False, indent=2)
        return f"<!-- RESPONSE_START -->\n{body}\n<!-- RESPONSE_END -->"
    # The envelope says plugin and command; the other dialects one name.
    if '"receiver"' in prompt.write([Call(id="", plugin=None, command="probe")]):
        calls = [
            Call(
                id=call.id,
                plugin=step.tool.plugin,
                command=step.tool.spec.name,
                arguments=call.arguments,
            )
            for call, step in zip(calls, drafted.steps, strict=True)
        ]
    return prompt.write(calls)


def _asked(drafted: Drafted, rules: Language) -> str:
    say = rules.table("say")
    lines: list[str] = []
    for clause, what in drafted.unplanned:
        form = str(say["missing"] if what else say["unknown"])
        lines.append(form.replace("{clause}", clause).replace("{what}", what))
    return "\n".join(lines)
