"""Convert answers of the Responses API (events or a document) to chunks.

https://platform.openai.com/docs/api-reference/responses-streaming. Servers omit some
events; the content of a finished item that was not yielded before is yielded then.
Calls of the server's own tools are not ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from neuraxis.messages import Chunk, FinishReason, ToolCallDelta, Usage
from neuraxis.models.http.answers import (
    DONE,
    ServerError,
    as_str,
    broken_off,
    count,
    frame_of,
    server_error,
)
from neuraxis.models.http.reasoning_blocks import pack
from neuraxis.models.http.sse import Event
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.parsing.surrogates import whole_pairs
from neuraxis.specs import Json

_Key = int | str | tuple[int | None, str]

_PLAIN = ("message", "function_call")
"""Items that can be rebuilt from the text and the calls."""


class ResponseReader:
    """Parser of one answer.

    `origin` is the server and model: the turn's state goes back to no other. Empty: no
    state is carried.
    """

    def __init__(self, origin: str = "") -> None:
        self._origin = origin
        self._items: dict[int, _Item] = {}
        self._places: dict[_Key, int] = {}  # of an item's index, id, and both
        self._last: int | None = None  # place of the last event's item
        self._next = 0  # first place after all items
        self._calls = 0
        self._seen = False
        self._refused = False
        self._status = ""
        self._because = ""
        self._usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer is complete."""
        return bool(self._status)

    def grace(self, after_end: float, stall: float) -> float | None:
        """Return the seconds of silence that end the answer; None: no limit."""
        del stall
        return after_end if self._status else None

    def event(self, event: Event) -> list[Chunk]:
        """Return the chunks of one event of the stream."""
        if self._status or event.text.strip() == DONE:  # nothing follows its end
            return []
        frame = frame_of(event)
        kind = str(frame.get("type") or event.name)
        if kind == "error" or frame.get("error"):
            raise server_error(frame.get("error") or dict(frame))
        self._seen = True
        if kind.endswith(".delta") or kind == "response.output_text.annotation.added":
            return self._piece(kind, self._item(frame), frame)
        if kind in ("response.output_item.added", "response.output_item.done"):
            done = kind.endswith("done")
            so_far = self._item(frame, is_added=not done)
            return self._rest_of_item(so_far, as_map(frame.get("item")), done)
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            return self.document(as_map(frame.get("response")))
        return []

    def document(self, tree: Mapping[str, Json]) -> list[Chunk]:
        """Return the chunks of a response that is one JSON object."""
        if tree.get("error"):
            raise server_error(tree.get("error") or dict(tree))
        self._usage = _usage(as_map(tree.get("usage"))) or self._usage
        self._seen = self._seen or "output" in tree
        status = tree.get("status")
        self._status = status if isinstance(status, str) else "completed"
        details = as_map(tree.get("incomplete_details"))
        self._because = str(details.get("reason") or "")
        chunks: list[Chunk] = []
        for index, item in enumerate(as_list(tree.get("output"))):
            item_id = as_str(as_map(item).get("id"))
            # If a server omits items at the end, the others have other places.
            keys: tuple[_Key, ...] = ((index, item_id), item_id)
            known = [self._places[key] for key in keys if key in self._places]
            so_far = self._items.setdefault(known[0] if known else index, _Item())
            chunks += self._rest_of_item(so_far, as_map(item), True)
        return chunks

    def finish(self, *, whole: bool = False) -> Chunk:
        """Return the last chunk.

        Raises:
            ServerError: the answer ended before it was complete.
        """
        del whole  # a document has a status
        if not self._seen:
            raise ServerError("its answer contains no completion")
        if not self._status:
            raise broken_off()
        if self._status not in ("completed", "incomplete", "cancelled"):
            raise ServerError(f"its answer has the status {self._status[:40]!r}")
        notes: list[str] = []
        carried, note = self._carried()
        if note:
            notes.append(note)
        reason: FinishReason = "tool_calls" if self._calls else "stop"
        if self._refused or self._because == "content_filter":
            reason = "content_filter"
        elif self._status == "incomplete":
            reason = "length"
            if self._because not in ("max_output_tokens", "max_tokens"):
                cause = self._because[:40] or "no reason"
                notes.append(f"an answer that is incomplete for {cause!r} is cut off")
        elif self._status == "cancelled":
            reason = "cancelled"
        return Chunk(
            finish_reason=reason,
            usage=self._usage,
            note="; ".join(notes),
            carried=carried,
        )

    def _item(self, frame: Mapping[str, Json], *, is_added: bool = False) -> _Item:
        """Return the item that the index and id of an event name.

        Some servers give all items one index or one id, some an item a new id with
        each event, and some no index.
        """
        item_id = as_str(frame.get("item_id") or as_map(frame.get("item")).get("id"))
        given = frame.get("output_index")
        index: int | None = given if type(given) is int else None
        place = self._places.get((index, item_id)) if item_id else None
        if place is None:
            place = self._places.get(item_id if index is None else index)
            if index is None and not item_id:
                place = self._last
            known = None if place is None else self._items[place]
            if known is not None and known.is_over(is_added=is_added):
                place = place if _is_repeated(known.item, frame) else None
        if place is None:
            place = self._next
            if index is not None and index not in self._items:
                place = index
            self._next = max(self._next, place + 1)
        self._last = place
        if index is not None:
            self._places[index] = place
        if item_id:
            self._places[index, item_id] = place
            self._places.setdefault(item_id, place)
        so_far = self._items.setdefault(place, _Item())
        so_far.added = so_far.added or is_added
        return so_far

    def _rest_of_item(
        self, so_far: _Item, item: Mapping[str, Json], done: bool
    ) -> list[Chunk]:
        """Yield the content of an item that was not yielded yet."""
        if done:
            so_far.item = {k: v for k, v in item.items() if v is not None}
        kind = item.get("type")
        chunks: list[Chunk] = []
        if kind == "function_call":
            if so_far.place is None:
                so_far.place, self._calls = self._calls, self._calls + 1
                call = ToolCallDelta(
                    index=so_far.place,
                    id=as_str(item.get("call_id")) or as_str(item.get("id")) or None,
                    name=as_str(item.get("name")) or None,
                )
                chunks.append(Chunk(tool_calls=(call,)))
                early = "".join(so_far.early)
                chunks += self._arguments(so_far, so_far.add(early))
            written = item.get("arguments")
            if done and isinstance(written, dict):  # before, it is a stand-in
                written = json.dumps(written, ensure_ascii=False)
            return chunks + self._arguments(so_far, so_far.rest(as_str(written)))
        parts = [as_map(part) for part in as_list(item.get("content"))]
        if kind == "message" and done:
            text = "".join(as_str(p.get("text") or p.get("refusal")) for p in parts)
            self._refused |= any(part.get("type") == "refusal" for part in parts)
            chunks += _text_chunks(so_far.rest(text))
            if not so_far.annotations:
                cited = [note for p in parts for note in as_list(p.get("annotations"))]
                so_far.annotations = bool(cited)
                chunks += [Chunk(annotations=tuple(cited))] if cited else []
        elif kind == "reasoning" and done:
            summary = [as_map(part) for part in as_list(item.get("summary"))]
            text = "".join(as_str(part.get("text")) for part in [*summary, *parts])
            rest = whole_pairs(so_far.rest(text))
            chunks += [Chunk(reasoning=rest)] if rest else []
        return chunks

    def _piece(
        self, kind: str, so_far: _Item, frame: Mapping[str, Json]
    ) -> list[Chunk]:
        piece = as_str(frame.get("delta"))
        match kind.removeprefix("response."):
            case "output_text.delta":
                return _text_chunks(so_far.add(piece))
            case "refusal.delta":
                self._refused = True
                return _text_chunks(so_far.add(piece))
            case "reasoning_summary_text.delta" | "reasoning_text.delta":
                text = whole_pairs(so_far.add(piece))
                return [Chunk(reasoning=text)] if text else []
            case "function_call_arguments.delta":
                if so_far.place is None:  # its name is still to come
                    so_far.early.append(piece)
                    return []
                return self._arguments(so_far, so_far.add(piece))
            case "output_text.annotation.added":
                so_far.annotations = True
                return [Chunk(annotations=(frame.get("annotation"),))]
            case _:
                return []  # events of the server's own tools

    def _arguments(self, so_far: _Item, piece: str) -> list[Chunk]:
        if not piece or so_far.place is None:
            return []
        call = ToolCallDelta(index=so_far.place, arguments=whole_pairs(piece))
        return [Chunk(tool_calls=(call,))]

    def _carried(self) -> tuple[str, str]:
        items = [so_far.item for _, so_far in sorted(self._items.items())]
        if all(item.get("type") in _PLAIN for item in items):
            return "", ""
        # The server stores nothing, so reasoning that is only an id is unknown to it.
        items = [
            item
            for item in items
            if item.get("type") != "reasoning"
            or item.get("encrypted_content")
            or item.get("content")
        ]
        return pack(self._origin, blocks=items)


class _Item:
    """Output item whose pieces are arriving."""

    __slots__ = ("_sent", "added", "annotations", "early", "item", "place")

    def __init__(self) -> None:
        self.item: dict[str, Json] = {}
        self.place: int | None = None
        self.added = False
        self.annotations = False
        self.early: list[str] = []
        """Arguments that came before the call."""
        self._sent: list[str] = []

    def is_over(self, *, is_added: bool) -> bool:
        """Return whether an event of an unknown id belongs to another item."""
        return bool(self.item) or (is_added and self.added)

    def add(self, piece: str) -> str:
        """Record a piece that is yielded, and return it."""
        self._sent.append(piece)
        return piece

    def rest(self, whole: str) -> str:
        """Return the part of the whole text that was not yielded yet."""
        sent = "".join(self._sent)
        return self.add(whole[len(sent) :]) if whole.startswith(sent) else ""


def _text_chunks(text: str) -> list[Chunk]:
    return [Chunk(text=whole_pairs(text))] if text else []


def _is_repeated(item: Mapping[str, Json], frame: Mapping[str, Json]) -> bool:
    """Return whether an event repeats an item, whose call must run once."""
    given = as_map(frame.get("item"))
    keys = ("type", "call_id", "name", "arguments", "content")
    return bool(given) and all(item.get(key) == given.get(key) for key in keys)


def _usage(counts: Mapping[str, Json]) -> Usage | None:
    read = as_map(counts.get("input_tokens_details"))
    written = as_map(counts.get("output_tokens_details"))
    usage = Usage(
        input_tokens=count(counts.get("input_tokens")),
        output_tokens=count(counts.get("output_tokens")),
        cached_tokens=count(read.get("cached_tokens")),
        cache_write_tokens=count(read.get("cache_write_tokens")),
        reasoning_tokens=count(written.get("reasoning_tokens")),
    )
    return usage if usage != Usage() else None
