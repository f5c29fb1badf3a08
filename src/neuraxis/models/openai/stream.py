"""Convert the frames of a server's answer to chunks; no network.

The reader of frames accepts what servers of the OpenAI form really send: keys missing,
keys added, a whole `message` where a `delta` should be. Anything else raises
`ServerError`; nothing is made up, least of all a finish reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from neuraxis.messages import (
    Chunk,
    FinishReason,
    ToolCallDelta,
    Usage,
)
from neuraxis.models.http.answers import (
    DONE,
    ServerError,
    broken_off,
    count,
    error_message,
    no_json,
    server_error,
)
from neuraxis.models.http.sse import Event
from neuraxis.models.openai.provider_state import Carried
from neuraxis.models.openai.tool_calls import CallPieces
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.parsing.surrogates import Pairs
from neuraxis.specs import Json

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
    "sensitive": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
}
_FAILED = ("error", "abort", "insufficient_system_resource", "network_error")
_NO_CALL = "malformed_function_call"
"""Suffix of Gemini's finish reasons for a malformed call."""


class Frames:
    """Reads the frames of an answer; `finish` returns the last chunk.

    `origin` is the server and model; the turn's state goes back to no other. Empty:
    no state is carried.
    """

    __slots__ = (
        "_calls",
        "_carried",
        "_failed",
        "_given",
        "_goes_on",
        "_instead",
        "_is_old",
        "_note",
        "_origin",
        "_reasoning",
        "_seen",
        "_text",
        "_went_on",
        "done",
        "ended",
        "reason",
        "usage",
    )

    def __init__(self, origin: str = "") -> None:
        self._origin = origin
        self.done = False
        """Whether the server said that the answer is complete."""
        self.reason: FinishReason | None = None
        self.ended = False
        """Whether nothing more is expected.

        True if the last frame had a reason, or came after one, and had no content.
        Some servers send a reason with each piece of the answer.
        """
        self.usage: Usage | None = None
        self._failed = ""
        self._instead: Mapping[str, Json] = {}  # the last frame without choices
        self._is_old = False  # whether its calls have the older form
        self._seen = False
        self._given = False
        self._went_on = False
        self._goes_on = False  # whether more came behind the last reason
        self._note = ""
        self._text = Pairs()
        self._reasoning = Pairs()
        self._calls = CallPieces()
        self._carried = Carried()

    def event(self, event: Event) -> list[Chunk]:
        """Return the chunks of one event of the stream."""
        text = event.text.strip()
        if self.done:  # only the usage, of some servers, follows it
            self._late_usage(text)
            return []
        if text.upper() == DONE:
            self.done = True
            return []
        try:
            frames: list[Json] = [json.loads(text)]
        except (ValueError, RecursionError):
            frames = _line_by_line(event)
        chunks: list[Chunk] = []
        for frame in frames:
            if frame is DONE:
                self.done = True
                break
            if event.name == "error":
                raise server_error(frame)
            if isinstance(frame, dict):
                chunk = self.frame(cast("dict[str, Json]", frame))
                chunks.extend([chunk] if chunk else [])
        return chunks

    def _late_usage(self, text: str) -> None:
        try:
            frame = as_map(json.loads(text))
        except (ValueError, RecursionError):
            return
        self.usage = _usage(frame.get("usage")) or self.usage

    def frame(self, frame: Mapping[str, Json]) -> Chunk | None:
        """Return the chunk of one frame, or None if it is empty."""
        if _is_error(frame.get("error")):
            raise server_error(frame["error"])
        kinds = frame.get("object"), frame.get("type")
        if "error" in kinds or frame.get("error_code"):
            raise server_error(dict(frame))
        choice = _first_choice(frame.get("choices"))
        provider_usage = (
            as_map(frame.get("x_groq")).get("usage"),  # Groq puts it there in streams
            (choice or {}).get("usage"),  # and Kimi there
        )
        for usage in (*provider_usage, frame.get("usage")):
            self.usage = _usage(usage) or self.usage
        if choice is None:
            self.ended = self.reason is not None
            self._instead = frame
            # it is paid even if no choice follows
            return Chunk(usage=self.usage) if self.usage and not self._seen else None
        self._seen = True
        if _is_error(choice.get("error")):  # OpenRouter: error of one choice
            raise server_error(choice["error"])
        delta: Json = choice.get("delta") or {}
        if not delta and not self._given:
            # a whole message after deltas repeats them
            delta = choice.get("message") or {}
        if not isinstance(delta, dict):
            raise ServerError("a frame of its answer has a delta that is no object")
        earlier, self.reason = self.reason, None
        self._finish_reason(choice.get("finish_reason"))
        native = choice.get("native_finish_reason")
        if _is_failure(native):  # OpenRouter, where its own reason may be "stop"
            self._finish_reason(native)
        chunk = self._chunk(cast("dict[str, Json]", delta), choice.get("text"))
        self._given = self._given or (chunk is not None and bool(choice.get("delta")))
        self._went_on = self._went_on or (chunk is not None and earlier is not None)
        if self.reason is None and earlier is not None:
            more = chunk is not None and (chunk.text.strip() or chunk.tool_calls)
            self.reason, self._goes_on = earlier, self._goes_on or bool(more)
        else:
            self._goes_on = False
        self.ended = chunk is None and self.reason is not None
        return chunk

    @property
    def complete(self) -> bool:
        """Whether the answer is complete."""
        is_over = self.done or bool(self._failed)
        return is_over or (self.ended and self.usage is not None)

    def document(self, tree: Mapping[str, Json]) -> list[Chunk]:
        """Return the chunks of an answer that is one JSON object."""
        chunk = self.frame(tree)
        return [chunk] if chunk else []

    def grace(self, after_end: float, stall: float) -> float | None:
        """Return the seconds of silence that end the answer; None: no limit.

        A reason that came with a piece of the answer may not be the last one; after
        one that was not, a broken stream is a broken answer.
        """
        if self.ended:
            return after_end
        return None if self.reason is None or self._went_on else stall

    def _chunk(self, delta: Mapping[str, Json], plain: Json) -> Chunk | None:
        text, thought = _content(delta.get("content") or plain)
        if isinstance(delta.get("refusal"), str):
            text += delta["refusal"]
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str):
            thought += reasoning
        text = self._text.join(text)
        thought = self._reasoning.join(thought)
        self._carried.message(delta)
        calls = self._tool_calls(self._pieces(delta))
        # Groq runs its own tools and lists them.
        annotations = as_list(delta.get("annotations")) + as_list(
            delta.get("executed_tools")
        )
        if text or thought or calls or annotations:
            return Chunk(
                text=text,
                reasoning=thought,
                tool_calls=calls,
                annotations=tuple(annotations),
            )
        return None

    def finish(self, *, whole: bool = False) -> Chunk:
        """Return the last chunk. `whole`: the answer was one JSON document.

        Raises:
            ServerError: the answer ended before it was complete.
        """
        if self._failed:
            raise ServerError(self._failed, again=True)
        if not self._seen:
            raise self._nothing(whole=whole)
        is_open = self.reason is None or self._goes_on
        if is_open and not (self.complete or whole):
            raise broken_off()
        if self.reason is None:
            self._note = "no finish reason was given with the end of the answer"
        carried, note = self._carried.finish(self._origin, self._calls.places)
        return Chunk(
            text=self._text.rest(),
            reasoning=self._reasoning.rest(),
            tool_calls=self._calls.rest(),
            finish_reason=self.reason or "stop",
            usage=self.usage,
            note="; ".join(text for text in (self._note, note) if text),
            carried=carried,
        )

    def _nothing(self, *, whole: bool) -> ServerError:
        """Return the error of an answer without any choice.

        One that says something instead is an error's. A document without the key is
        another API's; anything else broke off before its first word.
        """
        if error_message(dict(self._instead)):
            return server_error(dict(self._instead))
        is_other = whole and "choices" not in self._instead
        return ServerError(
            "its answer contains no completion", again=not is_other, foreign=True
        )

    def _finish_reason(self, reason: Json) -> None:
        if not isinstance(reason, str) or not reason:
            return
        word = reason.lower()
        if word == "null":
            return
        if _is_failure(reason):
            # raised by `finish`: the remaining content of this frame is still yielded
            self._failed = f"it ended its answer with the reason {reason[:80]!r}"
            return
        if word not in _FINISH:
            self._note = f"the finish reason {reason[:40]!r} is read as 'stop'"
        self.reason = _FINISH.get(word, "stop")

    def _pieces(self, delta: Mapping[str, Json]) -> Json:
        """Return the pieces of calls; of two forms, the first one counts.

        Some proxies send each call in both: it must not run twice.
        """
        pieces = delta.get("tool_calls")
        if not pieces and (self._is_old or not self._calls.places):
            old = _old_call(delta)
            self._is_old = self._is_old or old is not None
            return old
        return None if self._is_old else pieces

    def _tool_calls(self, pieces: Json) -> tuple[ToolCallDelta, ...]:
        deltas: list[ToolCallDelta] = []
        # some servers put no list around the only one
        if isinstance(pieces, dict):
            is_call = "function" in pieces or "name" in pieces or "arguments" in pieces
            pieces = [pieces] if is_call else []
        items = as_list(pieces)
        for item in items:
            if item is None:
                continue
            if not isinstance(item, dict):
                raise ServerError("a tool call in its answer is no object")
            piece = as_map(item)
            # some servers put name and arguments into the piece itself
            function: Json = piece.get("function") or piece
            if not isinstance(function, dict):
                raise ServerError("a tool call in its answer names no function")
            delta = self._calls.add(piece, as_map(function))
            deltas += self._calls.released(delta.index)
            self._carried.call(delta.index, piece)
            deltas.append(delta)
        return tuple(deltas)


def _old_call(delta: Mapping[str, Json]) -> Json:
    """Return a `function_call`, the form before `tool_calls`, as its piece."""
    function = as_map(delta.get("function_call"))
    return {"index": 0, "function": dict(function)} if any(function.values()) else None


def _is_error(error: Json) -> bool:
    """Return whether it is one: some proxies always send empty values."""
    return any(as_map(error).values()) if isinstance(error, dict) else bool(error)


def _is_failure(reason: Json) -> bool:
    word = reason.lower() if isinstance(reason, str) else ""
    return word in _FAILED or word.endswith(_NO_CALL)


def _line_by_line(event: Event) -> list[Json]:
    """Return each line as a frame, if events lack blank lines."""
    frames: list[Json] = []
    for line in event.data:
        if line.strip().upper() == DONE:
            frames.append(DONE)
            continue
        try:
            frames.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if event.name == "error":
                return [event.text]
            if event.name not in ("", "message"):
                return []  # an event of the server's own, such as a ping
            raise no_json() from error
    return frames


def _first_choice(choices: Json) -> Mapping[str, Json] | None:
    for choice in as_list(choices):
        if isinstance(choice, dict) and not as_map(choice).get("index"):
            return as_map(choice)
    return None


def _content(content: Json) -> tuple[str, str]:
    """Return text and reasoning of a content: text, parts, an object."""
    if isinstance(content, str):
        return content, ""
    alone = as_map(content)
    is_part = isinstance(alone.get("type"), str) and isinstance(alone.get("text"), str)
    if alone and not is_part and alone.get("type") != "thinking":
        # Cloudflare parses the JSON that a schema asked for
        return json.dumps(alone, ensure_ascii=False), ""
    text = thought = ""
    for item in [alone] if alone else as_list(content):
        part = {"text": item} if isinstance(item, str) else as_map(item)
        if isinstance(part.get("text"), str):
            text += part["text"]
        elif "thinking" in part:
            inner, _ = _content(part["thinking"])
            thought += inner
    return text, thought


def _usage(usage: Json) -> Usage | None:
    counts = as_map(usage)
    details = as_map(counts.get("prompt_tokens_details"))
    written = as_map(counts.get("completion_tokens_details"))
    cached = (
        details.get("cached_tokens")
        or counts.get("num_cached_tokens")  # Mistral
        or counts.get("cached_tokens")  # Kimi
        or counts.get("prompt_cache_hit_tokens")  # DeepSeek
    )
    asked = count(counts.get("prompt_tokens"))
    answered = count(counts.get("completion_tokens"))
    reasoned = count(written.get("reasoning_tokens") or counts.get("reasoning_tokens"))
    if count(counts.get("total_tokens")) == asked + answered + reasoned:
        answered += reasoned  # xAI counts it beside the completion
    result = Usage(
        input_tokens=asked,
        output_tokens=answered,
        cached_tokens=count(cached),
        cache_write_tokens=count(details.get("cache_write_tokens")),
        reasoning_tokens=reasoned,
    )
    return result if result != Usage() else None
