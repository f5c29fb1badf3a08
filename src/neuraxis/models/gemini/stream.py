"""Convert the frames of a generateContent answer to chunks.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse. A stream and
a document have the same frames. What Google runs itself (code, searches) is not our
call: it is sent back with the turn and not shown.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from neuraxis.messages import Chunk, FinishReason, ToolCallDelta, Usage
from neuraxis.models.http.answers import (
    DONE,
    ServerError,
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
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}
_FAILED = (
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
)
"""Finish reasons without an answer; a retry may succeed."""
_BESIDE = ("citationMetadata", "groundingMetadata", "urlContextMetadata")
_SHOWN = ("text", "functionCall", "inlineData")


class ContentReader:
    """Parser of one answer.

    `origin` is the server and model: the turn's state goes back to no other. Empty: no
    state is carried.
    """

    def __init__(self, origin: str = "") -> None:
        self._origin = origin
        self._reason = ""
        self._blocked = False
        self._seen = False
        self._notes: list[str] = []
        self._usage: Usage | None = None
        self._calls = 0
        self._beside: dict[str, Json] = {}
        self._parts: list[dict[str, Json]] = []

    @property
    def complete(self) -> bool:
        """Always false: only the end of the stream completes the answer."""
        return False

    def grace(self, after_end: float, stall: float) -> float | None:
        """Return the seconds of silence that end the answer; None: no limit."""
        del stall
        return after_end if self._reason else None

    def event(self, event: Event) -> list[Chunk]:
        """Return the chunks of one event of the stream."""
        if event.text.strip() == DONE:  # of gateways that translate another API
            return []
        return self.document(frame_of(event))

    def document(self, tree: Mapping[str, Json]) -> list[Chunk]:
        """Return the chunks of one frame, or of a whole answer."""
        tree = _fields(tree)
        if tree.get("error"):
            raise server_error(tree["error"])
        self._usage = _usage(_fields(tree.get("usageMetadata"))) or self._usage
        feedback = _fields(tree.get("promptFeedback"))
        if reason := feedback.get("blockReason"):
            self._seen = self._blocked = True
            message = error_message(feedback.get("blockReasonMessage"))
            because = f"{reason}: {message}" if message else str(reason)
            self._notes.append(f"the prompt was blocked: {because}")
        for candidate in as_list(tree.get("candidates"))[:1]:
            return self._candidate(_fields(candidate))
        return []

    def finish(self, *, whole: bool = False) -> Chunk:
        """Return the last chunk.

        Raises:
            ServerError: the answer ended before it was complete.
        """
        if not self._seen:
            raise ServerError("its answer contains no completion")
        if self._reason in _FAILED:
            note_text = "; ".join(self._notes)
            problem = f"it ended its answer with the reason {self._reason!r}"
            raise ServerError(
                f"{problem}: {note_text}" if note_text else problem, again=True
            )
        reason: FinishReason = "stop"
        if self._blocked:
            reason = "content_filter"
        elif not self._reason:
            if not whole:
                raise broken_off()
            self._notes.append("no finish reason was given with the end of the answer")
        elif self._reason not in _FINISH:
            self._notes.append(
                f"the finish reason {self._reason[:40]!r} is read as 'stop'"
            )
        else:
            reason = _FINISH[self._reason]
        if reason == "stop" and self._calls:
            reason = "tool_calls"
        carried, note = self._carried()
        if note:
            self._notes.append(note)
        return Chunk(
            finish_reason=reason,
            usage=self._usage,
            note="; ".join(self._notes),
            carried=carried,
            annotations=tuple(
                {name: note_text} for name, note_text in self._beside.items()
            ),
        )

    def _candidate(self, candidate: Mapping[str, Json]) -> list[Chunk]:
        self._seen = True
        chunks: list[Chunk] = []
        for item in as_list(as_map(candidate.get("content")).get("parts")):
            part = _fields(item)
            chunks += self._part(part)
            self._keep(part)
        for name in _BESIDE:
            # Each frame repeats everything so far.
            if candidate.get(name):
                self._beside[name] = candidate[name]
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED":
            self._reason = reason or self._reason
        if message := error_message(candidate.get("finishMessage")):
            self._notes.append(f"the server says: {message}")
        return chunks

    def _part(self, part: Mapping[str, Json]) -> list[Chunk]:
        text = part.get("text")
        if isinstance(text, str) and text:
            text = whole_pairs(text)
            return [Chunk(reasoning=text) if part.get("thought") else Chunk(text=text)]
        call = _fields(part.get("functionCall"))
        if call.get("partialArgs") or call.get("willContinue"):
            raise ServerError(
                "it streams the arguments of a call in parts, which is not read: "
                "leave out streamFunctionCallArguments",
                is_final=True,
            )
        if call:
            return [self._call(call)]
        if part.get("inlineData"):
            kind = _fields(part["inlineData"]).get("mimeType")
            self._notes.append(f"the answer holds a file ({kind}), which is not taken")
        return []

    def _call(self, call: Mapping[str, Json]) -> Chunk:
        call_id, name = call.get("id"), call.get("name")
        arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
        delta = ToolCallDelta(
            index=self._calls,
            # The id joins the call with its result: it must exist and be unique.
            id=call_id
            if isinstance(call_id, str) and call_id
            else f"call_{secrets.token_hex(6)}",
            name=whole_pairs(name) if isinstance(name, str) else None,
            arguments=whole_pairs(arguments),
        )
        self._calls += 1
        return Chunk(tool_calls=(delta,))

    def _keep(self, part: Mapping[str, Json]) -> None:
        last = self._parts[-1] if self._parts else {}
        text = part.get("text")
        joins = (
            isinstance(text, str)
            and isinstance(last.get("text"), str)
            and last.get("thought") == part.get("thought")
            and "thoughtSignature" not in last
        )
        if joins:
            # A signature is on the last piece of the signed text.
            last.update({**part, "text": f"{last['text']}{text}"})
        elif part:
            self._parts.append(dict(part))

    def _carried(self) -> tuple[str, str]:
        signed = any(
            "thoughtSignature" in part or not any(name in part for name in _SHOWN)
            for part in self._parts
        )
        if not signed:
            return "", ""
        blocks = [part for part in self._parts if "inlineData" not in part]
        return pack(self._origin, blocks=blocks)


def _fields(message: Json) -> Mapping[str, Json]:
    """Return the fields of a message; proxies write them in snake case.

    Only this message's own: in arguments, names are the tool's.
    """
    fields = as_map(message)
    if not any("_" in name for name in fields):
        return fields
    read = {name: value for name, value in fields.items() if "_" not in name}
    for name, value in fields.items():
        if "_" in name and read.get(_camel_case(name)) is None:
            read[_camel_case(name)] = value
    return read


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


def _usage(counts: Mapping[str, Json]) -> Usage | None:
    thinking = count(counts.get("thoughtsTokenCount"))
    usage = Usage(
        # Tokens of Google's own tools and of thoughts are counted separately.
        input_tokens=count(counts.get("promptTokenCount"))
        + count(counts.get("toolUsePromptTokenCount")),
        output_tokens=count(counts.get("candidatesTokenCount")) + thinking,
        cached_tokens=count(counts.get("cachedContentTokenCount")),
        reasoning_tokens=thinking,
    )
    return usage if usage != Usage() else None
