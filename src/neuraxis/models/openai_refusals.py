"""What a server says of a request it refused flows in, a body without that flows out.

Servers of the OpenAI form agree on less than the form has, and which of it a model
takes is known to nobody before it is asked: so a request that is refused is mended by
what the refusal names. `tests/wire/models/refusals.yaml` has what servers really say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from neuraxis import sentences
from neuraxis.later import pattern
from neuraxis.models.openai_carried import OF_CALL, OF_MESSAGE
from neuraxis.specs import Json

Body = Mapping[str, Json]
Messages = Sequence[Json]
Change = Callable[[dict[str, Json]], dict[str, Json]]

UNASKED = ("stream_options", "max_tokens")
"""Nothing is lost without these, so nothing is said of it."""

ORDER = "the order of roles"
SYSTEM = "the system role"
OF_TOOLS = " in the tools' schemas"
"""Ends the name of a part that is a keyword there."""

_NAMES = {
    name: pattern(rf"\b{name}\b")
    for name in ("stop", "temperature", "top_p", "seed", "stream_options")
}
_UNKNOWN = pattern(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|extra inputs"
    r"|not permitted|not allowed|cannot find field|forbidden",
    re.IGNORECASE,
)
_MISSING = pattern(r"missing|must be (?:passed|sent|provided)|required", re.IGNORECASE)
_IDS = pattern(
    r"tool.?call.?id was|tool_calls?\S*id\b.{0,40}(?:too long|maximum length)"
    r"|too long.{0,80}tool_calls?\S*id",
    re.IGNORECASE | re.DOTALL,
)
_NO_NULL = pattern(
    r"content\W{1,12}(?:value |input )?(?:must|should) be a (?:valid )?string"
    r"|content.{0,20}(?:null|none)|(?:null|none)\S* .{0,30}content",
    re.IGNORECASE,
)
_ROLES = pattern(
    r"unexpected role|roles must alternate|expected roles?\b|after role", re.IGNORECASE
)
_NO_SYSTEM = pattern(
    r"system role (?:is )?not supported|does not support 'system'"
    r"|(?:system|developer) (?:message|instruction)s? (?:is |are )?not (?:sup|ena)",
    re.IGNORECASE,
)
_EMPTY = pattern(
    r"non-?empty|non-whitespace|either content or tool_calls"
    r"|content or tool_calls must be set|content.{0,20}(?:cannot|must not) be empty",
    re.IGNORECASE,
)
_KEYWORD = pattern(r"Unknown name \"(\S{1,40})\" at '[^']*function_declarations")
_FITS = pattern(r"[A-Za-z0-9]{9}")
_TOO_LONG = pattern(
    r"context.{0,20}(?:length|size|window)|too (?:long|large)|too many tokens"
    r"|maximum prompt length",
    re.IGNORECASE,
)
_SCHEMA = ("type", "function", "name", "parameters", "properties", "items", "required")
"""Without these there is no tool."""
# What Google says to put where a call was not made by Gemini itself:
# https://ai.google.dev/gemini-api/docs/thought-signatures (FAQ)
_NO_SIGNATURE = "skip_thought_signature_validator"


def refused_part(body: Body, said: str, *, known: bool = False) -> str:
    """The part of the body that a server refused; empty: it is something else.

    `known`: the server took a request before, so what every request has is no suspect.
    """
    # Newer models of OpenAI and Azure want `max_completion_tokens` for `max_tokens`.
    if "max_tokens" in body and "max_completion_tokens" in said:
        return "max_tokens"
    keyword = _KEYWORD.search(said)
    if keyword and keyword[1] not in _SCHEMA and "tools" in body:
        return keyword[1] + OF_TOOLS
    messages: Json = body.get("messages")  # the settings may have put anything there
    for part, is_it in _OF_MESSAGES.items():
        if isinstance(messages, list) and is_it(cast("list[Json]", messages), said):
            return part
    for part, word in _NAMES.items():
        if part in body and word.search(said) and _UNKNOWN.search(said):
            return part
    # Some servers know no `stream_options` and do not say so: it is the first suspect.
    unnamed = not known and "stream_options" in body and not is_about_size(said)
    return "stream_options" if unnamed else ""


def without(body: Body, part: str) -> dict[str, Json]:
    """The body without a part that the server refuses, or with what it misses."""
    changed = dict(body)
    if part.endswith(OF_TOOLS):
        keyword = part.removesuffix(OF_TOOLS)
        changed["tools"] = _without_keyword(body.get("tools"), keyword)
        return changed
    if part in (ORDER, SYSTEM):
        told: Json = body.get("messages")
        if isinstance(told, list):
            listed = cast("list[Json]", told)
            changed["messages"] = _in_order(listed, system=part != SYSTEM)
        return changed
    if part in _CHANGES:
        change = _CHANGES[part]
        messages: Json = body.get("messages")
        if isinstance(messages, list):
            told = cast("list[Json]", messages)
            changed["messages"] = [_changed(message, change) for message in told]
        return changed
    value = changed.pop(part, None)
    if part == "max_tokens" and value is not None:
        changed["max_completion_tokens"] = value
    return changed


def keeps_constant(parts: Sequence[str]) -> bool:
    """Whether without these parts a body still has its prompt's constant part."""
    return not any(part in (ORDER, SYSTEM) or OF_TOOLS in part for part in parts)


def is_about_size(said: str) -> bool:
    """Whether a refusal says that the prompt is too long: no other request helps."""
    return bool(_TOO_LONG.search(said))


def _is_carried_too_much(messages: Messages, said: str) -> bool:
    """Behind a gateway may be a server that refuses what the gateway itself gave.

    Mistral says "Extra inputs are not permitted", Groq "property 'reasoning_content' is
    unsupported".
    """
    if not _UNKNOWN.search(said):
        return False
    if not any(name in said for name in (*OF_MESSAGE, *OF_CALL)):
        return False
    return _changes(messages, _without_carried)


def _misses_reasoning(messages: Messages, said: str) -> bool:
    """DeepSeek and Kimi want the field in turns of another model as well."""
    if "reasoning_content" not in said or not _MISSING.search(said):
        return False
    return _changes(messages, _with_reasoning)


def _misses_signature(messages: Messages, said: str) -> bool:
    if "thought_signature" not in said or not _MISSING.search(said):
        return False
    return _changes(messages, _with_signature)


def _dislikes_ids(messages: Messages, said: str) -> bool:
    """Mistral takes ids of nine letters and digits, OpenAI of at most 40 characters."""
    return bool(_IDS.search(said)) and _changes(messages, _with_short_ids)


def _dislikes_null(messages: Messages, said: str) -> bool:
    """Some servers take no null for the content of a message with tool calls."""
    return bool(_NO_NULL.search(said)) and _changes(messages, _with_text)


def _dislikes_order(messages: Messages, said: str) -> bool:
    """Mistral takes no user after a tool; templates of Mistral and Gemma no two users.

    Both happen: what stands behind the newest results, and a run that was cut off.
    """
    return bool(_ROLES.search(said)) and _in_order(messages) != messages


def _dislikes_system(messages: Messages, said: str) -> bool:
    """Gemma's template has no system role."""
    if not _NO_SYSTEM.search(said):
        return False
    return _in_order(messages, system=False) != messages


def _in_order(messages: Messages, *, system: bool = True) -> list[Json]:
    """The messages with no two users beside each other, and none behind a tool.

    Where `system` is false, what the system says is said by the user.
    """
    told: list[Json] = []
    last: Json = None
    for message in messages:
        fields: dict[str, Json] = {}
        if isinstance(message, dict):
            fields = dict(cast("dict[str, Json]", message))
        if not system and fields.get("role") == "system":
            fields["role"] = "user"
        role = fields.get("role")
        if role == last == "user":
            before = cast("dict[str, Json]", told[-1])
            both = f"{before.get('content')}\n\n{fields.get('content')}"
            told[-1] = {**before, "content": both}
            continue
        if role == "user" and last == "tool":
            told.append({"role": "assistant", "content": sentences.RESULTS_SEEN})
        told.append(fields or message)
        last = role
    return told


def _changes(messages: Messages, change: Change) -> bool:
    return any(_changed(message, change) != message for message in messages)


def _changed(message: Json, change: Change) -> Json:
    if not isinstance(message, dict):
        return message
    return change(cast("dict[str, Json]", message))


def _dislikes_empty(messages: Messages, said: str) -> bool:
    """Mistral, Anthropic and Bedrock take no message that says nothing."""
    return bool(_EMPTY.search(said)) and _changes(messages, _with_something)


def _without_keyword(schema: Json, keyword: str) -> Json:
    """Tools without a keyword of their schemas, which are checked here all the same.

    Google's proxies know fewer of them than JSON Schema has.
    """
    if isinstance(schema, list):
        listed = cast("list[Json]", schema)
        return [_without_keyword(item, keyword) for item in listed]
    if isinstance(schema, tuple):
        return _without_keyword(list(cast("tuple[Json, ...]", schema)), keyword)
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Json] = {}
    for name, value in cast("Mapping[str, Json]", schema).items():
        if name == "properties" and isinstance(value, Mapping):
            # there the names are those of parameters
            named = cast("Mapping[str, Json]", value)
            kept[name] = {
                own: _without_keyword(inner, keyword) for own, inner in named.items()
            }
        elif name != keyword:
            literal = name in ("enum", "const", "default", "examples")
            kept[name] = value if literal else _without_keyword(value, keyword)
    return kept


def _calls(message: Body) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", message.get("tool_calls") or [])


def _without_carried(message: dict[str, Json]) -> dict[str, Json]:
    kept = {name: value for name, value in message.items() if name not in OF_MESSAGE}
    if "tool_calls" in message:
        kept["tool_calls"] = [
            {name: value for name, value in call.items() if name not in OF_CALL}
            for call in _calls(message)
        ]
    return kept


def _with_reasoning(message: dict[str, Json]) -> dict[str, Json]:
    if message.get("role") != "assistant" or "reasoning_content" in message:
        return message
    return {**message, "reasoning_content": ""}


def _with_signature(message: dict[str, Json]) -> dict[str, Json]:
    calls = _calls(message)
    # Of calls beside each other the first has it.
    if not calls or "extra_content" in calls[0]:
        return message
    extra = {"google": {"thought_signature": _NO_SIGNATURE}}
    return {**message, "tool_calls": [{**calls[0], "extra_content": extra}, *calls[1:]]}


def _with_short_ids(message: dict[str, Json]) -> dict[str, Json]:
    if message.get("role") == "tool":
        own = str(message.get("tool_call_id"))
        return {**message, "tool_call_id": _short(own)}
    if "tool_calls" not in message:
        return message
    calls = [{**call, "id": _short(str(call.get("id")))} for call in _calls(message)]
    return {**message, "tool_calls": calls}


def _short(own: str) -> str:
    """An id that fits, and the same one for the same id."""
    if _FITS.fullmatch(own):
        return own
    import hashlib  # for one server's sake

    return hashlib.sha256(own.encode("utf-8", "replace")).hexdigest()[:9]


def _with_something(message: dict[str, Json]) -> dict[str, Json]:
    content = message.get("content")
    if not isinstance(content, str) or content.strip():
        return message
    if "tool_calls" in message:
        return {**message, "content": None}
    return {**message, "content": sentences.SAID_NOTHING}


def _with_text(message: dict[str, Json]) -> dict[str, Json]:
    if message.get("content", "") is not None:
        return message
    return {**message, "content": ""}


_OF_MESSAGES: Mapping[str, Callable[[Messages, str], bool]] = {
    "no reasoning_content": _misses_reasoning,
    "no thought_signature": _misses_signature,
    "reasoning of earlier turns": _is_carried_too_much,
    "ids of tool calls": _dislikes_ids,
    "null content": _dislikes_null,
    "empty messages": _dislikes_empty,
    SYSTEM: _dislikes_system,
    ORDER: _dislikes_order,
}
_CHANGES: Mapping[str, Change] = {
    "reasoning of earlier turns": _without_carried,
    "no reasoning_content": _with_reasoning,
    "no thought_signature": _with_signature,
    "ids of tool calls": _with_short_ids,
    "null content": _with_text,
    "empty messages": _with_something,
}
