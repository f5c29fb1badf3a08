"""Convert answers of the Messages API (events or a document) to chunks.

https://docs.anthropic.com/en/docs/build-with-claude/streaming lists the events. Blocks
of Anthropic's own tools (`server_tool_use` and their results) are not our calls: they
are sent back with the turn and not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from neuraxis.messages import Chunk, FinishReason, ToolCallDelta, Usage
from neuraxis.models.http.answers import (
    DONE,
    ServerError,
    as_str,
    broken_off,
    count,
    error_message,
    frame_of,
    server_error,
)
from neuraxis.models.http.reasoning_blocks import pack
from neuraxis.models.http.sse import Event
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.parsing.surrogates import whole_pairs
from neuraxis.specs import Json

_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_PAUSED = "pause_turn"
"""Stop reason of a turn whose server tools (searches) need more steps."""
MOST_PAUSES = 10
"""Times that a paused turn goes on."""
_PLAIN = ("text", "tool_use")
"""Blocks that can be rebuilt from the text and the calls."""

_REFUSAL = re.compile(r"key|auth|permission|credit|quota|invalid", re.IGNORECASE)
"""Words of an error that comes again."""


class MessageReader:
    """Parser of one answer.

    `origin` is the server and model: the turn's state goes back to no other. Empty: no
    state is carried. `before` read the turn until it was paused.
    """

    def __init__(self, origin: str = "", before: MessageReader | None = None) -> None:
        self._origin = origin
        self.pauses = 0 if before is None else before.pauses + 1
        self._earlier: list[dict[str, Json]] = [] if before is None else before.blocks
        self.container = "" if before is None else before.container
        """Id of the server's container that its tools work in; empty: none."""
        self._done = False
        self._id: Json = None
        self._reason = ""
        self._notes: list[str] = []
        self._seen = False
        self._usage: dict[str, Json] = {}
        self._blocks: dict[int, dict[str, Json]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._places: dict[int, int] = {}  # of a block that is a call

    @property
    def complete(self) -> bool:
        """Whether the answer is complete."""
        return self._done

    @property
    def paused(self) -> bool:
        """Whether another request must continue the turn.

        A turn with calls of ours continues with their results instead.
        """
        return self._reason == _PAUSED and not self._places

    @property
    def blocks(self) -> list[dict[str, Json]]:
        """Return the turn so far, as it is sent back."""
        own = [block for _, block in sorted(self._blocks.items())]
        return self._earlier + [
            block
            for block in own
            if block.get("type") != "text" or as_str(block.get("text")).strip()
        ]

    def grace(self, after_end: float, stall: float) -> float | None:
        """Return the seconds of silence that end the answer; None: no limit."""
        del stall
        return after_end if self._reason else None

    def event(self, event: Event) -> list[Chunk]:
        """Return the chunks of one event of the stream."""
        if self._done:  # nothing follows its end
            return []
        if event.text.strip() == DONE:  # of gateways that translate another API
            self._done = True
            return []
        if event.name == "error" and not event.text.lstrip().startswith("{"):
            # plain words are those of a proxy or an overloaded server, not of the API
            words = error_message(event.text)
            raise ServerError(f"it says: {words}", again=not _REFUSAL.search(words))
        frame = frame_of(event)
        kind = frame.get("type") or event.name
        if kind == "error" or frame.get("error"):
            raise server_error(frame.get("error") or dict(frame))
        if kind == "message_start":
            return self._begin(as_map(frame.get("message")))
        if kind == "content_block_start":
            return self._start(frame, as_map(frame.get("content_block")))
        if kind == "content_block_delta":
            return self._delta(frame, as_map(frame.get("delta")))
        if kind == "content_block_stop":
            return self._stop(count(frame.get("index")))
        if kind == "message_delta":
            self._end(as_map(frame.get("delta")))
            self._add_usage(frame.get("usage"))
        elif kind == "message_stop":
            self._done = True
        elif frame.get("type") == "message":  # the whole answer as one event
            self._done = True
            if not self._blocks:
                return self.document(frame)
            self._end(frame)  # it repeats what has come in pieces
            self._add_usage(frame.get("usage"))
        return []

    def document(self, tree: Mapping[str, Json]) -> list[Chunk]:
        """Return the chunks of an answer that is one JSON object."""
        if tree.get("type") == "error" or tree.get("error"):
            raise server_error(tree.get("error") or dict(tree))
        chunks = self._message(tree)
        self._end(tree)
        return chunks

    def finish(self, *, whole: bool = False) -> Chunk:
        """Return the last chunk.

        Raises:
            ServerError: the answer ended before it was complete.
        """
        if not self._seen:
            raise ServerError("its answer contains no completion")
        if not self._reason:
            if not (self._done or whole):
                raise broken_off()
            self._notes.append("no finish reason was given with the end of the answer")
        if self.paused and self.pauses < MOST_PAUSES:
            note = f"the turn was paused ({_PAUSED}) and goes on"
            return Chunk(note=note, usage=_usage(self._usage))
        if self.paused:
            raise ServerError(
                f"it paused {MOST_PAUSES + 1} times before its answer was complete "
                f"({_PAUSED}): its own tools take too many steps; ask for less at "
                "once, or let them be used less often (max_uses of the web search)",
                is_final=True,  # else the session asks, and pays, three times
            )
        reason = _FINISH.get(self._reason, "stop")
        if self._reason and self._reason not in _FINISH:
            self._notes.append(
                f"the finish reason {self._reason[:40]!r} is read as 'stop'"
            )
        carried, note = self._carried()
        if note:
            self._notes.append(note)
        return Chunk(
            finish_reason=reason,
            usage=_usage(self._usage),
            note="; ".join(self._notes),
            carried=carried,
        )

    def _begin(self, message: Mapping[str, Json]) -> list[Chunk]:
        """Return the chunks of the beginning, which gateways may repeat."""
        if self._blocks and message.get("id") not in (None, self._id):
            raise ServerError(
                "it began another answer in the middle of this one", again=True
            )
        self._id = message.get("id")
        return self._message(message)

    def _message(self, message: Mapping[str, Json]) -> list[Chunk]:
        self._seen = self._seen or "content" in message
        self._add_usage(message.get("usage"))
        chunks: list[Chunk] = []
        for index, block in enumerate(as_list(message.get("content"))):
            chunks += self._start({"index": index}, as_map(block))
            chunks += self._stop(index)
        return chunks

    def _start(
        self, frame: Mapping[str, Json], block: Mapping[str, Json]
    ) -> list[Chunk]:
        index = count(frame.get("index"))
        kind = block.get("type")
        self._seen = True
        self._blocks[index] = {k: v for k, v in block.items() if v is not None}
        self._pieces[index] = []
        if kind == "text":
            cited = tuple(as_list(block.get("citations")))
            text = whole_pairs(as_str(block.get("text")))
            return [Chunk(text=text, annotations=cited)] if text or cited else []
        if kind == "thinking":
            thought = whole_pairs(as_str(block.get("thinking")))
            return [Chunk(reasoning=thought)] if thought else []
        if kind == "tool_use":
            place = self._places[index] = len(self._places)
            call = ToolCallDelta(
                index=place,
                id=as_str(block.get("id")) or None,
                name=as_str(block.get("name")) or None,
            )
            return [Chunk(tool_calls=(call,))]
        return []

    def _delta(
        self, frame: Mapping[str, Json], delta: Mapping[str, Json]
    ) -> list[Chunk]:
        index = count(frame.get("index"))
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        pieces = self._pieces.setdefault(index, [])
        kind = delta.get("type")
        if kind == "text_delta":
            pieces.append(as_str(delta.get("text")))
            return [Chunk(text=whole_pairs(pieces[-1]))] if pieces[-1] else []
        if kind == "thinking_delta":
            pieces.append(as_str(delta.get("thinking")))
            return [Chunk(reasoning=whole_pairs(pieces[-1]))] if pieces[-1] else []
        if kind == "signature_delta":
            block["signature"] = as_str(block.get("signature")) + as_str(
                delta.get("signature")
            )
        elif kind == "citations_delta" and delta.get("citation"):
            cited = delta.get("citation")
            block["citations"] = [*as_list(block.get("citations")), cited]
            return [Chunk(annotations=(cited,))]
        elif kind == "input_json_delta":
            pieces.append(_json_text(delta.get("partial_json")))
            place = self._places.get(index)
            if place is not None and pieces[-1]:
                piece = whole_pairs(pieces[-1])
                call = ToolCallDelta(index=place, arguments=piece)
                return [Chunk(tool_calls=(call,))]
        return []

    def _stop(self, index: int) -> list[Chunk]:
        block = self._blocks.get(index, {})
        written = "".join(self._pieces.get(index, ()))
        kind = block.get("type")
        if kind in ("text", "thinking"):
            block[str(kind)] = as_str(block.get(str(kind))) + written
            return []
        if not written:
            place = self._places.get(index)
            if place is None:
                return []
            # The whole input came with the start, or there is none.
            text = json.dumps(block.get("input") or {}, ensure_ascii=False)
            call = ToolCallDelta(index=place, arguments=whole_pairs(text))
            return [Chunk(tool_calls=(call,))]
        try:
            block["input"] = json.loads(written)
        except (ValueError, RecursionError):
            block["input"] = {}
        return []

    def _end(self, delta: Mapping[str, Json]) -> None:
        self.container = as_str(as_map(delta.get("container")).get("id")) or (
            self.container
        )
        reason = delta.get("stop_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason.lower()
        details = as_map(delta.get("stop_details"))
        if explanation := error_message(details.get("explanation")):
            self._notes.append(f"the server says: {explanation}")

    def _add_usage(self, usage: Json) -> None:
        # The last usage counts; it omits numbers that have not changed, or has 0.
        for key, value in as_map(usage).items():
            is_known = count(self._usage.get(key)) > 0
            if value is not None and (count(value) > 0 or not is_known):
                self._usage[key] = value

    def _carried(self) -> tuple[str, str]:
        blocks = [*self._earlier, *self._blocks.values()]
        if all(block.get("type") in _PLAIN for block in blocks):
            return "", ""
        return pack(self._origin, blocks=self.blocks)


def _json_text(piece: Json) -> str:
    """Return a piece of JSON text; some servers send a whole value."""
    if isinstance(piece, dict) and piece:
        return json.dumps(piece, ensure_ascii=False)
    return as_str(piece)


def _usage(counts: Mapping[str, Json]) -> Usage | None:
    read = count(counts.get("cache_read_input_tokens"))
    written = count(counts.get("cache_creation_input_tokens"))
    details = as_map(counts.get("output_tokens_details"))
    usage = Usage(
        # This API does not include cached tokens in `input_tokens`.
        input_tokens=count(counts.get("input_tokens")) + read + written,
        output_tokens=count(counts.get("output_tokens")),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=count(details.get("thinking_tokens")),
    )
    return usage if usage != Usage() else None
