"""What a model is told in each round beside the history: assets, and what is left.

It stands behind the newest message and is not kept, so that the history, and with it
a server's prompt cache, stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import cast, overload

from neuraxis import call_errors
from neuraxis.assets.store import AssetStore
from neuraxis.dialects import Dialect
from neuraxis.execution.budget import Budget
from neuraxis.messages import Message, Prompt
from neuraxis.plugins.registry import Registry

TIGHT = 0.25
"""Below this part of a limit the model is told what is left."""


def left_of(budget: Budget, steps: int, turn: int, seconds: float) -> str:
    """A sentence on what is left of the run, or "" where there is plenty.

    Args:
        budget: the limits of the run.
        steps: calls that ran so far.
        turn: the number of the reply that is asked for now, from 1.
        seconds: since the run began.
    """
    calls = max(budget.steps - steps, 0)
    replies = budget.model_calls - turn + 1
    time = max(budget.seconds - seconds, 0.0)
    tight = (
        calls <= TIGHT * budget.steps
        or replies <= max(TIGHT * budget.model_calls, 2)
        or time <= TIGHT * budget.seconds
    )
    return call_errors.budget_left(calls, replies, time) if tight else ""


def with_standing(
    history: Sequence[Message], assets: AssetStore, left: str
) -> Sequence[Message]:
    """The history with the AssetMeta list (rule B55) and what is left behind it."""
    told = assets.told
    if not told and not left:
        return history
    text = f"{told}\n\n{left}" if told and left else told or left
    last = history[-1]
    if last.role != "user":
        return Said(history, behind=(Message(role="user", content=text),))
    longer = replace(last, content=f"{last.content}\n\n{text}")
    return Said(history, count=len(history) - 1, behind=(longer,))


def constant_prompt(registry: Registry, dialect: Dialect) -> Prompt:
    """The part that is made once for a registry."""
    specs, names = registry.specs, registry.tool_names
    return Prompt(
        messages=(Message(role="system", content=dialect.prompt(specs, names)),),
        constant=1,
        stop=dialect.stop,
        plugins=specs,
        tool_names=names,
        write=dialect.write,
        native_tools=dialect.native_tools(specs, names),
    )


def with_messages(constant: Prompt, messages: Sequence[Message]) -> Prompt:
    """The constant part, then what was said."""
    before = tuple(constant.messages)
    return Prompt(
        messages=messages.after(before)
        if isinstance(messages, Said)
        else Said(messages, before=before),
        constant=1,
        stop=constant.stop,
        plugins=constant.plugins,
        tool_names=constant.tool_names,
        write=constant.write,
        native_tools=constant.native_tools,
    )


class Said(Sequence[Message]):
    """The constant part, the first so many messages of a list, and what stands behind.

    To be read like a tuple; a slice is one.
    """

    __slots__ = ("_before", "_behind", "_count", "_list")

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        before: tuple[Message, ...] = (),
        behind: tuple[Message, ...] = (),
        count: int | None = None,
    ) -> None:
        self._list = messages
        self._count = len(messages) if count is None else count
        self._before = before
        self._behind = behind

    def after(self, before: tuple[Message, ...]) -> Said:
        """The same with other messages before them."""
        return Said(self._list, before=before, behind=self._behind, count=self._count)

    def __len__(self) -> int:
        return len(self._before) + self._count + len(self._behind)

    def __iter__(self) -> Iterator[Message]:
        told = islice(self._list, self._count)
        return chain(self._before, told, self._behind)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return tuple([self[place] for place in range(start, stop, step)])
        place = index + len(self) if index < 0 else index
        first = len(self._before)
        if place < first:
            if place < 0:
                raise IndexError(index)
            return self._before[place]
        if place < first + self._count:
            return self._list[place - first]
        return self._behind[place - first - self._count]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Said | tuple):
            return tuple(self) == tuple(cast("Sequence[Message]", other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
