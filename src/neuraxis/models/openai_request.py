"""A prompt and the options flow in, the body of a request flows out."""

from __future__ import annotations

import json
from collections.abc import Mapping

from neuraxis.messages import Message, Prompt
from neuraxis.models.openai_settings import Options
from neuraxis.specs import Json


def request_body(prompt: Prompt, name: str, options: Options) -> dict[str, Json]:
    """The body of a request for one completion."""
    native = bool(prompt.native_tools)
    body: dict[str, Json] = {
        "model": name,
        "messages": [_message(message, native) for message in prompt.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if native:
        body["tools"] = [dict(tool) for tool in prompt.native_tools]
    for key in ("temperature", "top_p", "max_tokens", "seed"):
        value = getattr(options, key)
        if value is not None:
            body[key] = value
    body.update(options.extra)
    return body


def _message(message: Message, native: bool) -> dict[str, Json]:
    if native and message.role == "tool":
        return {
            "role": "tool",
            "tool_call_id": message.tool_call_id or "",
            "content": message.content,
        }
    if native and message.tool_calls:
        return {
            "role": message.role,
            "content": message.content or None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in message.tool_calls
            ],
        }
    # Without tools in the request a server refuses the role: the text is what counts.
    role = "user" if message.role == "tool" else message.role
    return {"role": role, "content": message.content}


def encoded(body: Mapping[str, Json]) -> bytes:
    """The body as UTF-8; half a surrogate pair, which has no UTF-8, becomes `?`."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def refused_part(body: Mapping[str, Json], said: str) -> str:
    """The part of the body that a server may have refused; empty: there is none.

    Newer models of OpenAI want `max_completion_tokens` for `max_tokens`. Some servers
    know no `stream_options`, and not all of them say so: it is the first suspect.
    """
    if "max_tokens" in body and "max_completion_tokens" in said:
        return "max_tokens"
    return "stream_options" if "stream_options" in body else ""


def without(body: Mapping[str, Json], part: str) -> dict[str, Json]:
    """The body without a part that the server refuses."""
    changed = dict(body)
    value = changed.pop(part, None)
    if part == "max_tokens" and value is not None:
        changed["max_completion_tokens"] = value
    return changed
