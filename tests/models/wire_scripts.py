"""Answers of the conformance suite, written as each API would stream them."""

from __future__ import annotations

import json
from typing import Any

from models.conformance import Answer
from models.http_server import Script, lines, stream


def _played(answer: Answer, before: list[bytes], after: list[bytes]) -> Script:
    if answer.breaks or answer.hangs:
        return stream(*before, end="drop" if answer.breaks else "stall")
    return stream(*before, *after)


def _events(*events: dict[str, Any]) -> list[bytes]:
    return [
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        for event in events
    ]


def anthropic(answer: Answer) -> Script:
    """The events of the Messages API."""
    usage = answer.usage
    fresh = usage.input_tokens - usage.cached_tokens if usage else 0
    counts = {
        "input_tokens": fresh,
        "cache_read_input_tokens": usage.cached_tokens if usage else 0,
        "output_tokens": 1 if usage else 0,
    }
    message = {"content": [], "usage": counts if usage else {}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": _text("")},
        {"type": "ping"},
        *[_delta(0, "text_delta", text=piece) for piece in answer.pieces],
        {"type": "content_block_stop", "index": 0},
    ]
    for index, call in enumerate(answer.tool_calls, 1):
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            *[
                _delta(index, "input_json_delta", partial_json=char)
                for char in call.arguments
            ],
            {"type": "content_block_stop", "index": index},
        ]
    words = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    end = {"stop_reason": words[answer.finish_reason]}
    totals = {"output_tokens": usage.output_tokens} if usage else {}
    last = _events(
        {"type": "message_delta", "delta": end, "usage": totals},
        {"type": "message_stop"},
    )
    return _played(answer, _events(*events), last)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _delta(index: int, kind: str, **given: str) -> dict[str, Any]:
    delta = {"type": kind, **given}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def gemini(answer: Answer) -> Script:
    """The frames of streamGenerateContent."""
    parts: list[dict[str, Any]] = [{"text": piece} for piece in answer.pieces]
    for call in answer.tool_calls:
        given = json.loads(call.arguments)
        parts.append(
            {"functionCall": {"id": call.id, "name": call.name, "args": given}}
        )
    frames: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}}]}
        for part in parts
    ]
    reason = "MAX_TOKENS" if answer.finish_reason == "length" else "STOP"
    last: dict[str, Any] = {"candidates": [{"finishReason": reason}]}
    if usage := answer.usage:
        last["usageMetadata"] = {
            "promptTokenCount": usage.input_tokens,
            "candidatesTokenCount": usage.output_tokens,
            "cachedContentTokenCount": usage.cached_tokens,
        }
    before = [lines(frame, done=False) for frame in frames]
    return _played(answer, before, [lines(last, done=False)])


def responses(answer: Answer) -> Script:
    """The events of the Responses API."""
    whole = "".join(answer.pieces)
    content = [{"type": "output_text", "text": whole, "annotations": []}]
    message = {"type": "message", "role": "assistant", "content": content}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {}}]
    for piece in answer.pieces:
        kind = "response.output_text.delta"
        events.append({"type": kind, "output_index": 0, "delta": piece})
    output: list[dict[str, Any]] = [message]
    for index, call in enumerate(answer.tool_calls, 1):
        item = {"type": "function_call", "call_id": call.id, "name": call.name}
        kind = "response.output_item.added"
        events.append(
            {"type": kind, "output_index": index, "item": {**item, "arguments": ""}}
        )
        kind = "response.function_call_arguments.delta"
        events += [
            {"type": kind, "output_index": index, "delta": char}
            for char in call.arguments
        ]
        output.append({**item, "arguments": call.arguments})
    response: dict[str, Any] = {"status": "completed", "output": output}
    if answer.finish_reason == "length":
        response["status"] = "incomplete"
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    if usage := answer.usage:
        response["usage"] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        }
    kind = f"response.{response['status']}"
    last = _events({"type": kind, "response": response})
    return _played(answer, _events(*events), last)
