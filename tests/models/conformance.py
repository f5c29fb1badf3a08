"""What every model must do, whatever stands behind it.

For another model: write a `make` that gives a model which will answer as told, once
per `Answer`, and run each function of `CHECKS` with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from neuraxis.errors import ModelError
from neuraxis.messages import (
    Chunk,
    FinishReason,
    Message,
    NativeCall,
    Prompt,
    Usage,
)
from neuraxis.models import Model, complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model is to answer.

    `breaks`: it fails after the pieces. `hangs`: it says nothing more after them.
    """

    pieces: tuple[str, ...] = ("Hel", "lo")
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[NativeCall, ...] = ()
    usage: Usage | None = None
    breaks: bool = False
    hangs: bool = False


Make = Callable[..., Model]
"""`make(*answers)`: a model that gives these answers, one per prompt."""

PROMPT = Prompt(messages=(Message(role="user", content="Say hello."),))


async def chunks_of(model: Model, prompt: Prompt = PROMPT) -> list[Chunk]:
    """All chunks of one stream."""
    return [chunk async for chunk in model.stream(prompt)]


async def check_text_is_whole_and_in_order(make: Make) -> None:
    """The joined text is what was said, also with rare characters in it."""
    pieces = ("Grüße, ", "\u4e16\u754c", " \U0001f600\n", "  ", "end")
    completion = await complete(make(Answer(pieces=pieces)), PROMPT)
    assert "".join(pieces) == completion.text


async def check_only_the_last_chunk_has_a_finish_reason(make: Make) -> None:
    """The finish reason stands once, at the end."""
    chunks = await chunks_of(make(Answer()))
    reasons = [chunk.finish_reason for chunk in chunks]
    assert [None] * (len(chunks) - 1) + ["stop"] == reasons


async def check_truncation_is_told(make: Make) -> None:
    """A cut-off answer has the reason `length` (rule D10 rests on it)."""
    completion = await complete(make(Answer(finish_reason="length")), PROMPT)
    assert completion.finish_reason == "length"


async def check_an_empty_answer_is_an_answer(make: Make) -> None:
    """A model may say nothing."""
    completion = await complete(make(Answer(pieces=())), PROMPT)
    assert (completion.text, completion.finish_reason) == ("", "stop")


async def check_usage_is_passed_on(make: Make) -> None:
    """Tokens are those that the server reports."""
    usage = Usage(input_tokens=11, output_tokens=5, cached_tokens=3)
    completion = await complete(make(Answer(usage=usage)), PROMPT)
    assert usage == completion.usage


async def check_native_calls_are_joined(make: Make) -> None:
    """Native calls come whole and in order."""
    calls = (
        NativeCall(id="a", name="add", arguments='{"x": 1}'),
        NativeCall(id="b", name="say", arguments='{"t": "é"}'),
    )
    answer = Answer(pieces=(), tool_calls=calls, finish_reason="tool_calls")
    completion = await complete(make(answer), PROMPT)
    assert (calls, "tool_calls") == (completion.tool_calls, completion.finish_reason)


async def check_a_break_is_an_error(make: Make) -> None:
    """A broken stream raises a `ModelError`; no finish reason is made up."""
    model = make(Answer(breaks=True))
    seen: list[Chunk] = []
    with pytest.raises(ModelError):
        await complete(model, PROMPT, seen.append)
    assert "".join(chunk.text for chunk in seen) == "Hello"
    assert not [chunk for chunk in seen if chunk.finish_reason]


async def check_asking_again_after_a_break(make: Make) -> None:
    """A failure leaves the model usable."""
    model = make(Answer(breaks=True), Answer())
    with pytest.raises(ModelError):
        await complete(model, PROMPT)
    assert (await complete(model, PROMPT)).text == "Hello"


async def check_early_close(make: Make) -> None:
    """A stream may be closed after its first chunk, and the model asked again."""
    model = make(Answer(), Answer())
    stream: Any = model.stream(PROMPT)
    async with aclosing(stream) as chunks:
        first = await anext(chunks)
    assert first.text
    assert (await complete(model, PROMPT)).text == "Hello"


async def check_cancelling(make: Make) -> None:
    """Cancelling the task ends a stream that hangs, at once."""
    model = make(Answer(hangs=True), Answer())
    said = asyncio.Event()
    task = asyncio.create_task(complete(model, PROMPT, lambda _: said.set()))
    await asyncio.wait_for(said.wait(), 10)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=10)
    assert {task} == done
    assert task.cancelled()
    assert (await complete(model, PROMPT)).text == "Hello"


async def check_two_at_the_same_time(make: Make) -> None:
    """One model streams several prompts side by side."""
    model = make(Answer(), Answer())
    both = await asyncio.gather(complete(model, PROMPT), complete(model, PROMPT))
    assert [completion.text for completion in both] == ["Hello", "Hello"]


async def check_closing_twice_and_asking_again(make: Make) -> None:
    """`close` may be called before, between and after streams."""
    model = make(Answer(), Answer())
    await model.close()
    await complete(model, PROMPT)
    await model.close()
    await model.close()
    assert (await complete(model, PROMPT)).text == "Hello"


async def check_the_name(make: Make) -> None:
    """A model has a name that can be shown on one line."""
    name = make(Answer()).name
    assert name
    assert name.isprintable()


CHECKS: tuple[Callable[[Make], Awaitable[None]], ...] = (
    check_text_is_whole_and_in_order,
    check_only_the_last_chunk_has_a_finish_reason,
    check_truncation_is_told,
    check_an_empty_answer_is_an_answer,
    check_usage_is_passed_on,
    check_native_calls_are_joined,
    check_a_break_is_an_error,
    check_asking_again_after_a_break,
    check_early_close,
    check_cancelling,
    check_two_at_the_same_time,
    check_closing_twice_and_asking_again,
    check_the_name,
)
