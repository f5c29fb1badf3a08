"""Convert answers of the Responses API (events or a document) to chunks.

https://platform.openai.com/docs/api-reference/responses-streaming. Servers omit some
events; the content of a finished item that was not yielded before is yielded then.
Calls of the server's own tools are not ours.
"""

from __future__ import annotations

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
        self._places: dict[str, int] = {}  # place of an item's id
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
        if event.text.strip() == DONE:
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
            return self._rest_of_item(
                self._item(frame), as_map(frame.get("item")), done
            )
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
            # If a server omits items at the end, the others have other places.
            place = self._places.get(as_str(as_map(item).get("id")), index)
            so_far = self._items.setdefault(place, _Item())
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

    def _item(self, frame: Mapping[str, Json]) -> _Item:
        item_id = as_str(frame.get("item_id") or as_map(frame.get("item")).get("id"))
        index = frame.get("output_index")
        if type(index) is not int:  # some servers send only the item's id
            index = self._places.get(item_id, len(self._items))
        if item_id:
            self._places.setdefault(item_id, index)
        return self._items.setdefault(index, _Item())

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
            written = as_str(item.get("arguments"))
            return chunks + self._arguments(so_far, so_far.rest(written))
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

    __slots__ = ("_sent", "annotations", "item", "place")

    def __init__(self) -> None:
        self.item: dict[str, Json] = {}
        self.place: int | None = None
        self.annotations = False
        self._sent: list[str] = []

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
