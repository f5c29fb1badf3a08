"""Members of request bodies that several wires write alike."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from neuraxis.errors import ConfigError
from neuraxis.messages import Message, Part
from neuraxis.specs import Json


def arguments_text(message: Message, place: int) -> str:
    """Return a tool call's arguments as they can be sent: an object.

    A model may write others, or be cut off. Servers that read the arguments for their
    template (vLLM, SGLang, llama.cpp) refuse them, now and in each later request.
    """
    written = message.tool_calls[place].arguments
    try:
        if isinstance(json.loads(written), dict):
            return written
    except (ValueError, RecursionError):
        pass
    sent: Json = {"unreadable": written} if written.strip() else {}
    if len(message.calls) == len(message.tool_calls):
        # the arguments that were read, and run
        read: Json = message.calls[place].arguments
        sent = cast("Json", read) if isinstance(read, dict) else {"value": read}
    return json.dumps(sent, ensure_ascii=False)


def arguments_object(message: Message, place: int) -> dict[str, Json]:
    """The arguments of a tool call, for servers that take an object."""
    return cast("dict[str, Json]", json.loads(arguments_text(message, place)))


def leading_system(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The system messages at the start, and the rest of the conversation."""
    start = 0
    for message in messages:
        if message.role != "system":
            break
        start += 1
    return list(messages[:start]), list(messages[start:])


def function_of(tool: Mapping[str, Json]) -> Mapping[str, Json]:
    """The definition inside an OpenAI-style tool."""
    inner = tool.get("function")
    return cast("Mapping[str, Json]", inner) if isinstance(inner, Mapping) else tool


def declared(tool: Mapping[str, Json], parameters: str) -> dict[str, Json]:
    """Return name, description and parameters, these under that key."""
    function = function_of(tool)
    told: dict[str, Json] = {
        "name": function.get("name"),
        parameters: function.get("parameters") or {"type": "object"},
    }
    if function.get("description"):
        told["description"] = function["description"]
    if tool.get("defer_loading"):
        told["defer_loading"] = True
    return told


def joined_turns(
    said: Iterable[tuple[str, list[dict[str, Json]]]], own: str
) -> list[tuple[str, list[dict[str, Json]]]]:
    """Return the turns, neighbours of one role joined; `own`: the model's."""
    turns: list[tuple[str, list[dict[str, Json]]]] = []
    for role, blocks in said:
        name = own if role == "assistant" else "user"
        if turns and turns[-1][0] == name:
            turns[-1][1].extend(blocks)
        else:
            turns.append((name, blocks))
    return turns


def base64_of(part: Part) -> str:
    """The data of a picture or a PDF file as base64.

    Raises:
        ConfigError: the part is another kind of file.
    """
    kind = part.media_type
    if not kind.startswith("image/") and kind != "application/pdf":
        raise ConfigError(
            f"{part.name or 'a part of a message'}: expected a picture or a PDF file "
            f"(image/*, application/pdf), got {kind}"
        )
    return base64.b64encode(part.data).decode("ascii")


def as_json(value: Json) -> bytes:
    """Return JSON in UTF-8; an unpaired surrogate becomes `?`."""
    # a tool's definition may be any mapping
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text.encode("utf-8", "replace")
