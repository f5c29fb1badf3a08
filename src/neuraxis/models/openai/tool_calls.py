"""Assign a server's tool call deltas to their calls.

The form gives each call an index, and a name and an id to its first piece. Servers
omit any of them, or give all calls the same index.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from neuraxis.messages import ToolCallDelta
from neuraxis.parsing.surrogates import whole_pairs
from neuraxis.specs import Json

_NONE = "{}"
"""Arguments of a call without any."""


class CallPieces:
    """Calls of one answer while their pieces arrive."""

    __slots__ = ("_calls", "_last", "_places")

    def __init__(self) -> None:
        self._calls: dict[int, _CallSoFar] = {}
        self._places: dict[int | str, int] = {}  # place of each index or id
        self._last = -1

    @property
    def places(self) -> list[int]:
        """Return the places of the calls so far, in their order."""
        return sorted(self._calls)

    def rest(self) -> tuple[ToolCallDelta, ...]:
        """Return the arguments that were held back, at the answer's end."""
        return tuple(
            ToolCallDelta(index=place, arguments=self._calls[place].held)
            for place in self.places
            if self._calls[place].held
        )

    def released(self, place: int) -> tuple[ToolCallDelta, ...]:
        """Return the held arguments of the calls before this one."""
        return tuple(
            ToolCallDelta(index=other, arguments=so_far.release())
            for other, so_far in sorted(self._calls.items())
            if so_far.held and other < place
        )

    def add(
        self, piece: Mapping[str, Json], function: Mapping[str, Json]
    ) -> ToolCallDelta:
        """Return the piece with the place and id of its call."""
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call_id = piece.get("id")
        call_id = whole_pairs(call_id) if isinstance(call_id, str) else ""
        name = function.get("name")
        name = whole_pairs(name) if isinstance(name, str) and name else None
        index = piece.get("index")
        if type(index) is int:  # true is no place
            place = self._of_index(index, call_id, name, arguments)
        else:
            place = self._without_index(call_id, name)
        if place not in self._calls:
            self._calls[place] = _CallSoFar(call_id, name)
            # the id joins the call with its result: it must exist and be unique
            call_id = call_id or f"call_{secrets.token_hex(6)}"
        arguments = self._calls[place].add(arguments)
        self._last = place
        if call_id:
            self._places[call_id] = place
        return ToolCallDelta(
            index=place,
            id=call_id or None,
            name=name,
            arguments=whole_pairs(arguments),
        )

    def _of_index(
        self, index: int, call_id: str, name: str | None, arguments: str
    ) -> int:
        """Return the place of a piece with an index.

        A piece with a name begins another call if its id is another one, unless it
        continues a call of that name (some servers make a new id for each piece), or
        if the call is complete and more would make it malformed.
        """
        place = self._places.setdefault(index, index)
        so_far = self._calls.get(place)
        if so_far is None or not name:
            return place
        if call_id and so_far.id:
            differs = call_id != so_far.id
            is_another = differs and (name != so_far.name or so_far.is_whole)
        else:
            has_more = bool(arguments.strip()) and not so_far.repeats(arguments)
            is_another = has_more and so_far.is_whole
        if is_another:
            place = self._places.get(call_id, max(self._calls) + 1)
            self._places[index] = place
        return place

    def _without_index(self, call_id: str, name: str | None) -> int:
        """Return a place without index: a known id, new, or the last."""
        if call_id in self._places:
            return self._places[call_id]
        if not self._calls:
            return 0
        return max(self._calls) + 1 if call_id or name else self._last


class _CallSoFar:
    """Call whose pieces arrive; `id` is the server's, or empty."""

    __slots__ = ("_pieces", "_size", "held", "id", "name")

    def __init__(self, call_id: str, name: str | None) -> None:
        self.id = call_id
        self.name = name
        self.held = ""
        """A first `{}`: all the arguments, or a placeholder before them."""
        self._pieces: list[str] = []
        self._size = 0

    def add(self, arguments: str) -> str:
        """Add a piece of the arguments; return what is passed on."""
        if not self._size and arguments.strip() in ("", _NONE):
            self.held = self.held or arguments.strip()
            return ""
        self.held = ""
        if self.repeats(arguments) and self.is_whole:
            return ""
        self._pieces.append(arguments)
        self._size += len(arguments)
        return arguments

    def release(self) -> str:
        """Return the held arguments: nothing else stands for them."""
        text, self.held = self.held, ""
        self._pieces.append(text)
        self._size = len(text)
        return text

    def repeats(self, arguments: str) -> bool:
        """Return whether these are all the arguments so far."""
        if self.held:
            return arguments.strip() == self.held
        return len(arguments) == self._size and arguments == "".join(self._pieces)

    @property
    def is_whole(self) -> bool:
        """Return whether the arguments are a whole JSON object."""
        text = self.held or "".join(self._pieces).rstrip()
        # parsing each piece would cost the square of the length
        if not text.endswith("}"):
            return False
        try:
            return isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            return False
