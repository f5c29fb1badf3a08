"""Build the body of a request from a prompt and options.

The constant part of a prompt is written as JSON once: a thousand tools are half a
megabyte, in every request of a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_ as _is

from msgspec import Struct

from neuraxis.messages import Message, Part, Prompt
from neuraxis.models.grammar import constraint
from neuraxis.models.http.request_parts import arguments_text, as_json, base64_of
from neuraxis.models.http.settings import Options, effort_of
from neuraxis.models.openai.provider_state import put_back
from neuraxis.specs import Json


class Constant(Struct, frozen=True, kw_only=True):
    """Constant part of a prompt, with its JSON."""

    messages: tuple[Message, ...]
    native_tools: tuple[Mapping[str, Json], ...]
    head: bytes
    """The messages, with commas between."""
    tools: bytes

    def is_of(self, prompt: Prompt) -> bool:
        """Return whether the prompt has this part."""
        return (
            self.native_tools is prompt.native_tools
            and len(self.messages) == prompt.constant
            and all(map(_is, self.messages, prompt.messages))
        )


def constant_of(prompt: Prompt) -> Constant:
    """Serialize the constant part."""
    native = bool(prompt.native_tools)
    messages = tuple(prompt.messages[: prompt.constant])
    return Constant(
        messages=messages,
        native_tools=prompt.native_tools,
        head=b",".join([as_json(_message(message, native)) for message in messages]),
        tools=as_json(prompt.native_tools),
    )


def request_body(
    prompt: Prompt, name: str, options: Options, origin: str = ""
) -> dict[str, Json]:
    """Return a request's body; `origin` is the server and model."""
    native = bool(prompt.native_tools)
    body: dict[str, Json] = {
        "model": name,
        "messages": [_message(message, native, origin) for message in prompt.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if native:
        body["tools"] = prompt.native_tools
    for key in ("temperature", "top_p", "max_tokens", "seed"):
        value = getattr(options, key)
        if value is not None:
            body[key] = value
    if options.thinking is not None:
        body["reasoning_effort"] = effort_of(options.thinking)
    form = prompt.output_schema or options.output_schema
    if form is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": dict(form)},
        }
    elif options.grammar is not None and not native:
        parallel = options.parallel_tool_calls
        kind, choice = options.grammar, options.tool_choice
        body.update(constraint(prompt, choice, kind, parallel=parallel))
    if native and options.tool_choice is not None:
        body["tool_choice"] = tool_choice(options.tool_choice)
    if native and options.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = options.parallel_tool_calls
    body.update(options.extra)
    return body


def tool_choice(choice: str) -> Json:
    """Return the API's `tool_choice`: a word, or one function."""
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _message(message: Message, native: bool, origin: str = "") -> dict[str, Json]:
    body: dict[str, Json]
    if native and message.role == "tool":
        return {
            "role": "tool",
            "tool_call_id": message.tool_call_id or "",
            "content": message.content,
        }
    if native and message.tool_calls:
        body = {
            "role": message.role,
            "content": message.content or None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": arguments_text(message, place),
                    },
                }
                for place, call in enumerate(message.tool_calls)
            ],
        }
        if message.carried:
            put_back(body, message.carried, origin)
        return body
    # without tools in the request a server refuses the role: the text is what counts
    role = "user" if message.role == "tool" else message.role
    body = {"role": role, "content": message.content}
    if message.parts:
        body["content"] = [
            *([{"type": "text", "text": message.content}] if message.content else []),
            *[_part(part) for part in message.parts],
        ]
    if native and message.carried:
        put_back(body, message.carried, origin)
    return body


def _part(part: Part) -> Json:
    url = f"data:{part.media_type};base64,{base64_of(part)}"
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {
        "type": "file",
        "file": {"filename": part.name or "file.pdf", "file_data": url},
    }


def encoded(body: Mapping[str, Json], constant: Constant | None = None) -> bytes:
    """Encode the body as UTF-8; an unpaired surrogate becomes `?`.

    `constant` is a part of it that is already serialized.
    """
    if constant is None:
        return as_json(body)
    parts: list[bytes] = []  # joined once, to copy long texts once
    mark = b"{"
    for key, value in body.items():
        parts += [mark, as_json(key), b":"]
        mark = b","
        if key == "messages":
            count = len(constant.messages)
            head = [constant.head] if count else []
            items = [*head, *[as_json(message) for message in value[count:]]]
            parts.append(b"[")
            for index, message in enumerate(items):
                parts += [b",", message] if index else [message]
            parts.append(b"]")
        else:
            parts.append(constant.tools if key == "tools" else as_json(value))
    return b"".join([*parts, b"}"])
