"""Adapt a request body to a server's refusal of one part.

The replacement means the same to the model, or as nearly as the server accepts. Which
part was refused is decided in `rejections.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from neuraxis import call_errors
from neuraxis.formatting import sha256
from neuraxis.models.openai.provider_state import OF_CALL, OF_MESSAGE
from neuraxis.specs import Json

Body = Mapping[str, Json]
Messages = Sequence[Json]
Message = dict[str, Json]

UNASKED = ("stream_options", "max_tokens")
"""Parts omitted without a note: the user did not request them."""
OF_TOOLS = " in the tools' schemas"
"""Suffix of parts that are keywords in the tools' schemas."""

CARRIED = "reasoning of earlier turns"
NO_REASONING = "turns without reasoning_content"
NO_SIGNATURE = "calls without thought_signature"
IDS = "ids of tool calls"
NULL = "null content"
EMPTY = "empty messages"
SYSTEM = "the system role"
ORDER = "the order of roles"

# the value that Google documents for calls that Gemini did not make:
# https://ai.google.dev/gemini-api/docs/thought-signatures (FAQ)
_STAND_IN = "skip_thought_signature_validator"
_SHORT = 9
"""Letters and digits of an id that each server accepts."""


def without(body: Body, part: str) -> dict[str, Json]:
    """Return the body without a refused part; unchanged if absent."""
    changed = dict(body)
    if part.endswith(OF_TOOLS):
        keyword = part.removesuffix(OF_TOOLS)
        if "tools" in body:
            changed["tools"] = _without_keyword(body["tools"], keyword)
    elif part in _IN_MESSAGES:
        messages: Json = body.get(
            "messages"
        )  # the settings may have put anything there
        if isinstance(messages, list):
            changed["messages"] = _IN_MESSAGES[part](cast("list[Json]", messages))
    else:
        value = changed.pop(part, None)
        if part == "max_tokens" and value is not None:
            changed["max_completion_tokens"] = value
    return changed


def keeps_constant(parts: Sequence[str]) -> bool:
    """Return whether the prompt's constant part stays without these parts."""
    return not any(part in (ORDER, SYSTEM) or OF_TOOLS in part for part in parts)


def _without_keyword(schema: Json, keyword: str) -> Json:
    """Remove a keyword from tools' schemas; calls are validated here anyway."""
    if isinstance(schema, list | tuple):  # a prompt's tools are a tuple
        items = cast("Sequence[Json]", schema)
        inner = [_without_keyword(item, keyword) for item in items]
        return inner if isinstance(schema, list) else cast("Json", tuple(inner))
    if not isinstance(schema, Mapping):
        return schema
    remaining: dict[str, Json] = {}
    for name, value in cast("Mapping[str, Json]", schema).items():
        if name == "properties" and isinstance(value, Mapping):
            # these names are parameters, not keywords
            parameters = cast("Mapping[str, Json]", value)
            remaining[name] = {
                parameter: _without_keyword(inner, keyword)
                for parameter, inner in parameters.items()
            }
        elif name != keyword:
            literal = name in ("enum", "const", "default", "examples")
            remaining[name] = value if literal else _without_keyword(value, keyword)
    return remaining


def _in_order(messages: Messages, *, system: bool = True) -> list[Json]:
    """Return messages in an order that every server accepts.

    No two user messages follow each other, and none follows a tool message. If
    `system` is false, system messages become user messages.
    """
    ordered: list[Json] = []
    last: Json = None
    for message in messages:
        fields: Message = {}
        if isinstance(message, dict):
            fields = dict(cast("Message", message))
        if not system and fields.get("role") == "system":
            fields["role"] = "user"
        role = fields.get("role")
        if role == last == "user":
            before = cast("Message", ordered[-1])
            content = _joined(before.get("content"), fields.get("content"))
            ordered[-1] = {**before, "content": content}
            continue
        if role == "user" and last == "tool":
            ordered.append({"role": "assistant", "content": call_errors.RESULTS_SEEN})
        ordered.append(fields or message)
        last = role
    return ordered


def _joined(first: Json, second: Json) -> Json:
    """Join two contents; with pictures they are lists of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts: list[Json] = []
    for content in (first, second):
        if isinstance(content, list):
            parts += cast("list[Json]", content)
        else:
            parts.append({"type": "text", "text": str(content)})
    return parts


def _each(change: Callable[[Message], Message], messages: Messages) -> list[Json]:
    return [
        change(cast("Message", message)) if isinstance(message, dict) else message
        for message in messages
    ]


def _calls(message: Body) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", message.get("tool_calls") or [])


def _without_carried(message: Message) -> Message:
    remaining = {
        name: value for name, value in message.items() if name not in OF_MESSAGE
    }
    if "tool_calls" in message:
        remaining["tool_calls"] = [
            {name: value for name, value in call.items() if name not in OF_CALL}
            for call in _calls(message)
        ]
    return remaining


def _with_reasoning(message: Message) -> Message:
    if message.get("role") != "assistant" or "reasoning_content" in message:
        return message
    return {**message, "reasoning_content": ""}


def _with_signature(message: Message) -> Message:
    calls = _calls(message)
    # only the first of parallel calls has it
    if not calls or "extra_content" in calls[0]:
        return message
    extra = {"google": {"thought_signature": _STAND_IN}}
    return {**message, "tool_calls": [{**calls[0], "extra_content": extra}, *calls[1:]]}


def _with_short_ids(message: Message) -> Message:
    if message.get("role") == "tool":
        call_id = str(message.get("tool_call_id"))
        return {**message, "tool_call_id": _short(call_id)}
    if "tool_calls" not in message:
        return message
    calls = [{**call, "id": _short(str(call.get("id")))} for call in _calls(message)]
    return {**message, "tool_calls": calls}


def _short(call_id: str) -> str:
    """Return a short id, the same one for the same id."""
    if len(call_id) == _SHORT and call_id.isascii() and call_id.isalnum():
        return call_id
    return sha256(call_id.encode("utf-8", "replace"))[:_SHORT]


def _with_something(message: Message) -> Message:
    content = message.get("content")
    is_blank = isinstance(content, str) and not content.strip()
    if "tool_calls" in message and (is_blank or content is None):
        # the calls are what it says; the servers that refuse "" take no key at all
        return {name: value for name, value in message.items() if name != "content"}
    return {**message, "content": call_errors.SAID_NOTHING} if is_blank else message


def _with_text(message: Message) -> Message:
    is_without = message.get("content") is None and "tool_calls" in message
    return {**message, "content": ""} if is_without else message


_IN_MESSAGES: Mapping[str, Callable[[Messages], list[Json]]] = {
    CARRIED: partial(_each, _without_carried),
    NO_REASONING: partial(_each, _with_reasoning),
    NO_SIGNATURE: partial(_each, _with_signature),
    IDS: partial(_each, _with_short_ids),
    NULL: partial(_each, _with_text),
    EMPTY: partial(_each, _with_something),
    SYSTEM: partial(_in_order, system=False),
    ORDER: _in_order,
}
