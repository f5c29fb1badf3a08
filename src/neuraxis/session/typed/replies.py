"""Decode the replies of a run whose answer may have a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from neuraxis.dialects import Dialect
from neuraxis.events import Event, ModelChunk
from neuraxis.messages import Chunk, Completion, Reply

if TYPE_CHECKING:  # loaded by the sessions whose answers have a type
    from neuraxis.session.typed.output import Output, PartialOutput

MAX_CORRECTIONS = 2
"""Times that a model may correct a wrong answer."""


def decode_reply(
    output: Output | None,
    dialect: Dialect,
    completion: Completion,
    next_id: Callable[[], str],
) -> Reply:
    """Decode a reply; JSON of exactly the output type is no call."""
    if completion.finish_reason in ("answer", "declined"):
        return Reply(texts=(completion.text,))
    if output is None and completion.finish_reason == "length":
        words = text_of_cut_reply(dialect, completion)
        if words:
            return Reply(texts=words)
    reply = dialect.decode(completion, next_id=next_id)
    if output is None or completion.tool_calls or not output.fits(completion.text):
        return reply
    return Reply(texts=(completion.text,), thoughts=reply.thoughts)


def text_of_cut_reply(dialect: Dialect, completion: Completion) -> tuple[str, ...]:
    """Return the texts of a truncated reply without calls."""
    if completion.tool_calls:
        return ()
    complete = replace(completion, finish_reason="stop")
    read = dialect.decode(complete, next_id=str)
    return () if read.calls or read.errors else read.texts


def chunk_reporter(
    output: Output | None, emit: Callable[[Event], None]
) -> Callable[[Chunk | None], None]:
    """Return a function that reports a reply's chunks and its partial answer.

    At the end of the reply it is called with None, for the whole answer.
    """
    partial: PartialOutput | None = None
    if output is not None:
        from neuraxis.session.typed.output import PartialOutput

        partial = PartialOutput(output)

    def report(chunk: Chunk | None) -> None:
        if chunk is not None:
            emit(
                ModelChunk(text=chunk.text, reasoning=chunk.reasoning, note=chunk.note)
            )
        if partial is not None and (chunk is None or chunk.text):
            partial.report(None if chunk is None else chunk.text, emit)

    return report
