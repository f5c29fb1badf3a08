"""The embedded model: a prompt in, planned calls or a spoken answer out.

`local:` needs no server and no key. Requests are planned by rules and by what the
plugins say of themselves; a small text model (SmolLM2-135M, run in this process) is
asked only where rules do not settle a parameter, and to chat. Its file is fetched once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence

from neuraxis.errors import ConfigError, MissingExtra, ModelError, ModelUnavailable
from neuraxis.messages import Call, Chunk, Message, Prompt, Usage
from neuraxis.models.local import (
    answer,
    catalogue,
    contents,
    language,
    planner,
    weights,
)
from neuraxis.models.local.catalogue import Catalogue
from neuraxis.models.local.earlier import Step
from neuraxis.models.local.language import Language
from neuraxis.models.local.planner import Drafted
from neuraxis.models.local.runner import Ask, LlamaWriter, Writer, Written
from neuraxis.settings import Settings
from neuraxis.specs import PluginSpec

__all__ = ["LocalModel", "from_name"]

KNOWN = ("smollm2",)


def from_name(rest: str, settings: Settings) -> LocalModel:
    """The model of `local:` or `local:smollm2`.

    Raises:
        ConfigError: the name behind the colon is none of ours.
    """
    if rest and rest not in KNOWN:
        raise ConfigError(
            f"model local:{rest}: expected {' or '.join(f'local:{k}' for k in KNOWN)} "
            "(or just local:)."
        )
    threads = settings.get("local.threads")
    return LocalModel(
        LazyWriter(
            threads=int(threads) if threads else None,
            unchecked=_flag(settings.get("local.weights_unchecked")),
            may_fetch=settings.get("local.fetch") != "never",
        )
    )


def _flag(value: object) -> bool:
    return str(value).casefold() in ("1", "true", "yes", "on")


class LazyWriter:
    """The text model, found or fetched when it is first needed."""

    def __init__(
        self, *, threads: int | None, unchecked: bool = False, may_fetch: bool = True
    ) -> None:
        self._threads = threads
        self._unchecked = unchecked
        self._may_fetch = may_fetch
        self._writer: LlamaWriter | None = None
        self.on_note = _nobody

    async def write(self, ask: Ask, on_text: object = None) -> Written:
        """One completion.

        Raises:
            MissingExtra: the binding is not installed.
            ModelUnavailable: the file is not here and cannot be fetched.
        """
        if self._writer is None:
            self._writer = LlamaWriter(await self._file(), threads=self._threads)
        return await self._writer.write(ask, on_text)  # pyright: ignore

    async def _file(self) -> object:
        found = await asyncio.to_thread(weights.find, unchecked=self._unchecked)
        if found is not None:
            return found
        if not self._may_fetch:
            raise ModelUnavailable(
                "the model file is not here, and local.fetch is never. Run "
                "`neuraxis models fetch`, or name a file in NEURAXIS_WEIGHTS."
            )
        self.on_note(weights.SMOLLM2.sentence)
        return await asyncio.to_thread(weights.fetch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _nobody(note: str) -> None:
    """Hears nothing."""


class LocalModel:
    """Plans calls for the last message, or answers it."""

    def __init__(self, writer: Writer | None) -> None:
        self.name = "local:smollm2"
        self._writer = writer
        self._known: tuple[tuple[PluginSpec, ...], str, Catalogue] | None = None

    async def close(self) -> None:
        """Give the model's memory back."""
        if self._writer is not None:
            self._writer.close()

    async def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """The plan for the last message, or the answer to it."""
        last = prompt.messages[-1]
        if last.results:
            yield Chunk(text=answer.compose(last.results))
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        request = spoken(last)
        rules = language.guess(request)
        known = self._catalogue(prompt, rules)
        drafted = await planner.plan(
            request, known, self._writer, _before(prompt.messages[:-1], known)
        )
        for note in drafted.notes:
            yield Chunk(note=note)
        if drafted.steps:
            yield Chunk(text=_written(drafted, prompt))
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        if drafted.unplanned:
            yield Chunk(text=_asked(drafted, rules))
            yield Chunk(finish_reason="stop", usage=Usage())
            return
        async for chunk in self._chat(request, rules):
            yield chunk

    def _catalogue(self, prompt: Prompt, rules: Language) -> Catalogue:
        known = self._known
        if known is None or known[0] is not prompt.plugins or known[1] != rules.code:
            built = catalogue.build(prompt.plugins, prompt.tool_names, rules)
            known = self._known = (prompt.plugins, rules.code, built)
        return known[2]

    async def _chat(self, request: str, rules: Language) -> AsyncIterator[Chunk]:
        if self._writer is None:
            yield Chunk(text=str(rules.table("say")["no_weights"]))
            yield Chunk(finish_reason="stop")
            return
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        ask = Ask(
            prompt=contents.chat_prompt(request),
            max_tokens=120,
            stop=("<|im_end|>",),
            repeat_penalty=1.1,
        )

        async def run() -> Written:
            assert self._writer is not None
            try:
                return await self._writer.write(ask, pieces.put_nowait)
            finally:
                pieces.put_nowait(None)

        task = asyncio.create_task(run())
        try:
            while (piece := await pieces.get()) is not None:
                yield Chunk(text=piece)
            written = await task
        except (MissingExtra, ModelError) as error:
            text = str(rules.table("say")["no_weights"]).replace("{why}", str(error))
            yield Chunk(text=text)
            yield Chunk(finish_reason="stop")
            return
        finally:
            task.cancel()
        yield Chunk(finish_reason="stop", usage=written.usage)


def spoken(message: Message) -> str:
    """What the person said, without the dialect's form around it."""
    text = message.content.strip()
    if text.startswith("{"):
        try:
            tree = json.loads(text)
        except ValueError:
            return text
        if isinstance(tree, dict) and isinstance(tree.get("content"), str):
            return str(tree["content"])
    if text.startswith("q:"):
        text = text.removeprefix("q:").strip()
        if text.endswith("\na:"):
            text = text.removesuffix("a:").strip()
    return text


def _before(messages: Sequence[Message], known: Catalogue) -> tuple[Step, ...]:
    """Calls of earlier turns: their values can be meant by "it"."""
    found: list[Step] = []
    for message in messages:
        for call in message.calls:
            tool = known.tool(call.command) or next(
                (t for t in known.tools if t.spec.name == call.command), None
            )
            if tool is not None and isinstance(call.arguments, dict):
                found.append(Step(tool=tool, arguments=call.arguments))
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
    if prompt.write is not None:
        return prompt.write(calls)
    intents: list[Mapping[str, object]] = [
        {"tool": call.command, **call.arguments} for call in calls
    ]
    body = json.dumps(intents, ensure_ascii=False, indent=2)
    return f"<!-- RESPONSE_START -->\n{body}\n<!-- RESPONSE_END -->"


def _asked(drafted: Drafted, rules: Language) -> str:
    say = rules.table("say")
    lines: list[str] = []
    for clause, what in drafted.unplanned:
        form = str(say["missing"] if what else say["unknown"])
        lines.append(form.replace("{clause}", clause).replace("{what}", what))
    return "\n".join(lines)
