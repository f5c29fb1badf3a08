"""Join the chunks of a stream into a completion."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec.structs import replace

from neuraxis.errors import ModelBroken
from neuraxis.formatting import check_word, refuse
from neuraxis.messages import (
    NOTHING_USED,
    Chunk,
    Completion,
    FinishReason,
    NativeCall,
    ToolCallDelta,
    Usage,
)
from neuraxis.specs import Json

if TYPE_CHECKING:
    from neuraxis.models import Model

_REASONS = get_args(FinishReason)


class Joiner:
    """Joins the chunks of one stream.

    Of several usages the last one counts, since servers report a running total.
    """

    __slots__ = (
        "_annotations",
        "_calls",
        "_finish",
        "_model",
        "_reasoning",
        "_text",
        "carried",
        "usage",
    )

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.carried = ""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _CallParts] = {}
        self._finish: FinishReason | None = None
        self._annotations: list[Json] = []
        self._model = ""

    def add(self, chunk: Chunk) -> None:
        """Add the next chunk."""
        if chunk.text:
            self._text.append(chunk.text)
        if chunk.reasoning:
            self._reasoning.append(chunk.reasoning)
        if chunk.tool_calls:
            self._add_calls(chunk.tool_calls)
        self._finish = chunk.finish_reason or self._finish
        self.usage = chunk.usage or self.usage
        if chunk.carried:
            self.carried = chunk.carried
        self._annotations += chunk.annotations
        self._model = chunk.model or self._model

    def _add_calls(self, deltas: Any) -> None:
        is_tuple = isinstance(deltas, Sequence)
        for delta in cast("Sequence[Any]", deltas if is_tuple else (deltas,)):
            if not (is_tuple and isinstance(delta, ToolCallDelta)):
                expected = "a tuple of ToolCallDelta"
                refuse("the model's Chunk: tool_calls", expected, delta)
            parts = self._calls.setdefault(delta.index, _CallParts())
            # servers send the id and the name once, or repeat them: the first is used
            parts.id = parts.id or delta.id or ""
            parts.name = parts.name or delta.name or ""
            parts.arguments.append(delta.arguments)

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """Return the reasoning so far, which a completion does not have."""
        return "".join(self._reasoning)

    def completion(self, name: str) -> Completion:
        """Return the whole completion of the model of that name.

        Raises:
            ModelBroken: no chunk had a finish reason.
            ConfigError: the finish reason is none of `FinishReason`.
        """
        if self._finish is None:
            raise ModelBroken(
                f"{name}: the stream ended without a finish reason, so it is not "
                "known whether the reply is whole"
            )
        # once for each reply: a check of each chunk would slow the stream
        check_word(f"model {name}: finish_reason", self._finish, _REASONS)
        calls, as_given = self._complete_calls() if self._calls else ((), True)
        return Completion(
            text="".join(self._text),
            tool_calls=calls,
            finish_reason=self._finish,
            usage=self.usage or NOTHING_USED,
            # the carried state refers to calls by the server's ids, or by their places
            carried=self.carried if as_given else "",
            annotations=tuple(self._annotations),
            model=self._model,
        )

    def _complete_calls(self) -> tuple[tuple[NativeCall, ...], bool]:
        """Return the calls with unique ids, and whether these are as given.

        A call that the server repeats under its id is one call; other calls under the
        same id get different ids, since results are matched by id.
        """
        server_ids = {
            index: parts.id or f"call_{index}"
            for index, parts in sorted(self._calls.items())
        }
        calls: dict[NativeCall, str] = {}
        ids: set[str] = set()
        for index, call_id in server_ids.items():
            parts = self._calls[index]
            arguments = "".join(parts.arguments)
            call = NativeCall(id=call_id, name=parts.name, arguments=arguments)
            if call in calls:
                continue
            while call_id in ids:
                call_id = f"{call_id}_{index}"
            ids.add(call_id)
            calls[call] = call_id
        complete = [replace(call, id=call_id) for call, call_id in calls.items()]
        as_given = [call.id for call in complete] == [*server_ids.values()]
        return tuple(complete), as_given


class _CallParts:
    """Native tool call while its deltas arrive."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def broken_by(name: str, raised: Exception) -> ModelBroken:
    """Return the error of a model whose stream raised some other exception."""
    kind = type(raised).__name__
    error = ModelBroken(f"the stream of {name} raised {kind}: {raised}")
    error.__cause__ = raised
    return error


async def close_model(model: Model) -> None:
    """Close a model; its `close` may also be a plain `def`."""
    closing = cast("Any", model.close())
    if isawaitable(closing):
        await closing


async def close_stream(chunks: AsyncIterable[Chunk]) -> None:
    """Close a stream of chunks, to free its resources at once."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
