"""Provider state: opaque data that a server wants back with a turn.

Models that think between tool calls lose their thread, or their server refuses the next
request, if their reasoning does not come back with the tools' results. So a turn that
was requested with tools carries, unchanged:

- `reasoning_content`: DeepSeek, Kimi and llama.cpp. DeepSeek refuses with 400 without
  it, also in turns long answered and in those without a call, and ignores it where it
  is not needed (https://api-docs.deepseek.com/guides/thinking_mode).
- `reasoning`: vLLM (https://docs.vllm.ai/en/latest/features/interleaved_thinking/) and
  servers of gpt-oss
  (https://cookbook.openai.com/articles/gpt-oss/handle-raw-cot).
- `reasoning_details`: OpenRouter, unmodified and in their order, and MiniMax
  (https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks,
  https://platform.minimax.io/docs/api-reference/text-openai-api). They repeat the
  texts, which are then omitted. MiniMax's `<think>` in the content is content.
- `extra_content` of a tool call: the signature without which Gemini 3 refuses with 400
  (https://ai.google.dev/gemini-api/docs/thought-signatures).

Groq and Mistral refuse unknown fields, so only the server and model that sent the state
get it back, and none without tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from neuraxis.models.http.reasoning_blocks import MOST_CARRIED, pack, state_of
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Json

TEXTS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
OF_MESSAGE = (*TEXTS, DETAILS)
OF_CALL = ("extra_content",)
_GROWING = ("text", "summary")  # members of a detail that come in pieces
_MOST_BEGUN = 16  # maximum recent details that a piece is compared with


class Carried:
    """Collects the provider state in the frames of one answer."""

    __slots__ = ("_calls", "_details", "_size", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._details: list[_Detail] = []
        self._calls: dict[int, dict[str, Json]] = {}
        self._size = 0

    def message(self, delta: Mapping[str, Json]) -> None:
        """Add the state in a message delta."""
        for name in TEXTS:
            text = delta.get(name)
            # an empty one counts: DeepSeek wants the field of each such turn back
            if isinstance(text, str) and self._fits(len(text)):
                self._texts.setdefault(name, []).append(text)
        self._take_details(as_list(delta.get(DETAILS)))

    def call(self, place: int, piece: Mapping[str, Json]) -> None:
        """Add the state in a tool call's delta, by its place."""
        for name in OF_CALL:
            extra = piece.get(name)
            if isinstance(extra, dict) and extra and self._fits(_size_of(extra)):
                self._calls.setdefault(place, {})[name] = extra

    def finish(self, origin: str, places: Sequence[int]) -> tuple[str, str]:
        """Return the opaque text, and a note if it is too large.

        Args:
            origin: the server and model: `put_back` returns the state to no other.
                Empty: it is not wanted back.
            places: those of the tool calls, in the order in which they will be sent.
        """
        if not origin:
            return "", ""
        message: dict[str, Json] = {}
        if self._details:
            message[DETAILS] = [detail.whole() for detail in self._details]
        else:
            for name, pieces in self._texts.items():
                text = "".join(pieces)
                if text or name == TEXTS[0]:
                    message[name] = text
        order = {place: str(index) for index, place in enumerate(places)}
        calls: dict[str, Json] = {
            order[place]: fields
            for place, fields in self._calls.items()
            if place in order
        }
        return pack(origin, self._size, message=message, calls=calls)

    def _fits(self, size: int) -> bool:
        self._size += size
        return self._size <= MOST_CARRIED

    def _take_details(self, items: Sequence[Json]) -> None:
        # entries of one frame are distinct; pieces of an entry come in several frames
        count = len(self._details)
        for item in items:
            if not isinstance(item, dict) or self._size > MOST_CARRIED:
                continue
            piece = cast("dict[str, Json]", item)
            candidates = self._details[max(count - _MOST_BEGUN, 0) : count]
            if "index" not in piece:
                candidates = candidates[-1:]
            for detail in reversed(candidates):
                if detail.is_continued_by(piece):
                    self._size += detail.add(piece)
                    break
            else:
                if self._fits(_size_of(piece)):
                    self._details.append(_Detail(piece))


class _Detail:
    """One entry of `reasoning_details` whose pieces arrive."""

    __slots__ = ("_fields", "_pieces")

    def __init__(self, piece: Mapping[str, Json]) -> None:
        self._fields: dict[str, Json] = dict(piece)
        self._pieces: dict[str, _Growing] = {}
        for name in _GROWING:
            if isinstance(text := piece.get(name), str):
                self._pieces[name] = _Growing(text)

    def is_continued_by(self, piece: Mapping[str, Json]) -> bool:
        """Return whether a piece of a later frame continues this entry."""
        fields = self._fields
        for name in ("index", "type"):
            if fields.get(name) != piece.get(name):
                return False
        if fields.get("id") and piece.get("id") and fields["id"] != piece["id"]:
            return False
        # without an index only a text continues: two encrypted ones are two
        return "index" in piece or any(name in piece for name in self._pieces)

    def add(self, piece: Mapping[str, Json]) -> int:
        """Join the piece: texts grow, and other members are replaced.

        Return the growth: most of a piece may repeat the one before.
        """
        grown = 0
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                if name in self._pieces:
                    grown += self._pieces[name].add(value)
                else:
                    self._pieces[name] = _Growing(value)
                    self._fields[name] = value
                    grown += len(value)
            elif name not in self._fields or value not in (None, self._fields[name]):
                self._fields[name] = value
                grown += _size_of(value)
        return grown

    def whole(self) -> dict[str, Json]:
        """Return the entry as it would have come in one piece."""
        texts = {name: growing.text() for name, growing in self._pieces.items()}
        return {**self._fields, **texts}


class _Growing:
    """Text whose pieces are either increments or cumulative (MiniMax).

    It is cumulative only if every piece begins with the one before it.
    """

    __slots__ = ("_last", "_lengths", "_pieces")

    def __init__(self, text: str) -> None:
        self._last = text
        self._lengths: list[int] = [len(text)]
        self._pieces: list[str] = []

    def add(self, text: str) -> int:
        """Add the next piece; return the minimum growth of the text."""
        grown = len(text)
        if self._pieces:
            self._pieces.append(text)
        elif self._last and text.startswith(self._last):
            grown -= len(self._last)
            self._last = text
            self._lengths.append(len(text))
        elif text:
            # they were increments after all: all of them count, if there is room
            grown += sum(self._lengths) - len(self._last)
            if grown <= MOST_CARRIED:
                self._pieces = [self._last[:length] for length in self._lengths]
                self._pieces.append(text)
        return grown

    def text(self) -> str:
        """Return the whole text."""
        return "".join(self._pieces) if self._pieces else self._last


def put_back(message: dict[str, Json], carried: str, origin: str) -> None:
    """Put the turn's state into its message, if its origin matches."""
    state = state_of(carried, origin)
    fields = as_map(state.get("message"))
    message.update({name: fields[name] for name in OF_MESSAGE if name in fields})
    by_place = as_map(state.get("calls"))
    for index, call in enumerate(message.get("tool_calls", ())):
        fields = as_map(by_place.get(str(index)))
        call.update({name: fields[name] for name in OF_CALL if name in fields})


def _size_of(value: Json) -> int:
    try:
        return len(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return MOST_CARRIED + 1
