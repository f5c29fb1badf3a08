"""The messages of a prompt: a list that only grows flows in, its state now flows out.

A prompt says what was said so far. To copy that in each turn would cost more and more
as a conversation goes on, so the prompt shows a part of the session's own list, which
later messages lengthen and never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import cast, overload

from neuraxis.messages import Message


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
