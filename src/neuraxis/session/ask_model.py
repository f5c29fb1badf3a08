"""Ask the model for one reply, and read it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from neuraxis.errors import CommandError, ModelError
from neuraxis.events import (
    BudgetReached,
    Event,
    ModelFinished,
    ModelStarted,
)
from neuraxis.execution.budget import Budget, Usage
from neuraxis.execution.early_start import EarlyStarts
from neuraxis.execution.offload import in_thread_if
from neuraxis.execution.runtime import Runtime
from neuraxis.messages import (
    NOTHING_USED,
    Call,
    Chunk,
    Completion,
    Message,
    NativeCall,
    Prompt,
    Reply,
)
from neuraxis.models import complete
from neuraxis.session.answer import Outcome
from neuraxis.session.config import RunConfig
from neuraxis.session.typed.replies import (
    chunk_reporter,
    decode_reply,
    text_of_cut_reply,
)
from neuraxis.specs import Json

_LONG = 100_000
"""Characters of a reply that are decoded on the event loop."""
MAX_RESTARTS = 2
"""Times that a reply is requested again after the server failed in its middle."""


class Stop(Exception):
    """Ends the run without an answer from the model."""

    def __init__(self, outcome: Outcome, error: str, reply: str = "") -> None:
        super().__init__(error)
        self.outcome: Outcome = outcome
        self.error = error
        self.reply = reply


async def ask_model(
    config: RunConfig,
    runtime: Runtime,
    prompt: Prompt,
    turn: int,
    early: EarlyStarts,
    emit: Callable[[Event], None],
    live: bool,
) -> Completion:
    """Return the model's reply; its chunks are reported, and start calls early.

    Raises:
        Stop: the budget is spent, or the reply was held back.
        ModelError: the model cannot be asked.
    """
    _check_budget(config.budget, runtime.usage, emit)
    request = ModelStarted(turn=turn, model=config.model.name)
    _begin(request, emit)
    started = time.perf_counter()
    notes: list[str] = []
    report = chunk_reporter(config.output, emit)

    def on_chunk(chunk: Chunk) -> None:
        if live and (chunk.text or chunk.reasoning or chunk.note):
            report(chunk)
        if chunk.note:
            notes.append(chunk.note)
        early.add_chunk(chunk)

    async def restart(error: ModelError) -> None:
        nonlocal report
        notes.append(f"the reply broke off and was asked for again: {error}")
        # only read-only calls of the reply that broke off have run
        await early.discard()
        early.begin()
        emit(replace(request, again=True))
        report = chunk_reporter(config.output, emit)

    completion = await _complete(config, runtime, prompt, on_chunk, restart)
    if completion.tool_calls and not prompt.native_tools and prompt.write is not None:
        completion = _written_out(completion, prompt, prompt.write)
        notes.append("native tool calls, though none were offered; read as text")
    if live:
        report(None)
    early.stop()
    usd = await reply_cost(completion, config)
    runtime.usage.usd += usd or 0.0
    if completion.usage is not NOTHING_USED:
        runtime.usage.tokens += completion.usage
    seconds = time.perf_counter() - started
    emit(_finished(completion, seconds, tuple(notes), usd))
    if completion.finish_reason == "declined":
        raise Stop("declined", "", completion.text)
    if completion.finish_reason == "content_filter":
        cause = f": {'; '.join(notes)}" if notes else ""
        action = "cut off the reply" if completion.text else "held back the reply"
        reply = "\n\n".join(text_of_cut_reply(config.dialect, completion))
        error = f"the content filter of the server {action}{cause}"
        raise Stop("failed", error, reply)
    return completion


async def read_reply(
    completion: Completion,
    config: RunConfig,
    history: list[Message],
    next_id: Callable[[], str],
) -> Reply:
    """Decode a reply and add it to the history.

    A long one is decoded in a thread.
    """
    given = config.output, config.dialect, completion, next_id
    if completion.tool_calls or len(completion.text) <= _LONG:
        reply = decode_reply(*given)
        history.append(_assistant_message(completion, reply))
        return reply
    # without its calls, as in a restored session, should the time be over meanwhile
    history.append(_assistant_message(completion, Reply()))
    reply = await in_thread_if(True, decode_reply, *given)
    history[-1] = _assistant_message(completion, reply)
    return reply


def _written_out(
    completion: Completion, prompt: Prompt, write: Callable[[Sequence[Call]], str]
) -> Completion:
    """Return a reply whose native tool calls are in its text.

    Some servers turn what a model writes into native calls, though the dialect has its
    own. The conversation goes on without them, as the server was offered no tools.
    """
    from neuraxis.parsing.json_scan import Value, loads  # its patterns take time

    calls: list[Call] = []
    for native in completion.tool_calls:
        plugin, command = prompt.tool_names.get(native.name, (None, native.name))
        read = loads(native.arguments or "{}")
        # what is no JSON is refused as an argument, in words for the model
        value = read.value if isinstance(read, Value) else native.arguments
        calls.append(Call(id="", plugin=plugin, command=command, arguments=value))
    text = "\n".join(filter(None, [completion.text, write(calls)]))
    return replace(completion, text=text, tool_calls=())


def _assistant_message(completion: Completion, reply: Reply) -> Message:
    return Message(
        role="assistant",
        content=completion.text,
        calls=reply.calls,
        tool_calls=completion.tool_calls,
        carried=completion.carried,
        finish_reason=completion.finish_reason,
    )


def _finished(
    completion: Completion, seconds: float, notes: tuple[str, ...], usd: float | None
) -> ModelFinished:
    usage, calls = completion.usage, completion.tool_calls
    return ModelFinished(
        text=completion.text,
        finish_reason=completion.finish_reason,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        seconds=seconds,
        tool_calls=tuple([_native(call) for call in calls]) if calls else (),
        notes=notes,
        carried=completion.carried,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        annotations=completion.annotations,
        model=completion.model,
        usd=usd,
    )


def _begin(started: ModelStarted, emit: Callable[[Event], None]) -> None:
    try:
        emit(started)
    except CommandError as refused:  # by the run around it (`nested.py`)
        raise Stop("budget", str(refused)) from None


def _check_budget(budget: Budget, used: Usage, emit: Callable[[Event], None]) -> None:
    if budget.usd is not None and used.usd >= budget.usd:
        emit(BudgetReached(what="US dollars", limit=budget.usd, used=used.usd))
        raise Stop(
            "budget", f"the run cost {used.usd:.4f} of {budget.usd:g} US dollars"
        )
    tokens = used.tokens.total
    if budget.tokens is not None and tokens >= budget.tokens:
        emit(BudgetReached(what="tokens", limit=budget.tokens, used=tokens))
        raise Stop("budget", f"the run used {tokens} of {budget.tokens} tokens")


async def _complete(
    config: RunConfig,
    runtime: Runtime,
    prompt: Prompt,
    on_chunk: Callable[[Chunk], None],
    restart: Callable[[ModelError], Awaitable[None]],
) -> Completion:
    """Return a whole reply; ask again after a server's failure.

    The tokens of replies that broke off count, too.
    """
    lost = seen = NOTHING_USED

    def see(chunk: Chunk) -> None:
        nonlocal seen
        seen = chunk.usage or seen
        on_chunk(chunk)

    restarts = 0
    while True:
        try:
            completion = await complete(config.model, prompt, see)
        except ModelError as error:
            lost, seen = lost + seen, NOTHING_USED
            if not error.again or restarts == MAX_RESTARTS:
                paid = Completion(finish_reason="stop", usage=lost)
                runtime.usage.tokens += lost
                if lost != NOTHING_USED:
                    runtime.usage.usd += await reply_cost(paid, config) or 0.0
                raise
            restarts += 1
            await restart(error)
        else:
            if lost == NOTHING_USED:
                return completion
            return replace(completion, usage=lost + completion.usage)


async def reply_cost(completion: Completion, config: RunConfig) -> float | None:
    """Return what a reply cost; None where its price is not known."""
    if completion.usage is NOTHING_USED:
        return None
    from neuraxis.models import prices  # many models cost nothing

    name = completion.model or config.model.name
    return await prices.reply_cost(name, completion.usage, config.settings)


def _native(call: NativeCall) -> Json:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}
