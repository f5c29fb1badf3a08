"""Parts of request bodies that several wires share."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from neuraxis.errors import ConfigError
from neuraxis.messages import Message, Part
from neuraxis.specs import Json


def arguments_text(message: Message, place: int) -> str:
    """Return a tool call's arguments as the JSON text of an object.

    A model may write something else, or be cut off. Servers that read the arguments for
    their template (vLLM, SGLang, llama.cpp) refuse them, now and in each later request.
    """
    written = message.tool_calls[place].arguments
    try:
        if isinstance(json.loads(written), dict):
            return written
    except (ValueError, RecursionError):
        pass
    sent: Json = {"unreadable": written} if written.strip() else {}
    if len(message.calls) == len(message.tool_calls):
        # the arguments as decoded and run
        read: Json = message.calls[place].arguments
        sent = cast("Json", read) if isinstance(read, dict) else {"value": read}
    return json.dumps(sent, ensure_ascii=False)


def arguments_object(message: Message, place: int) -> dict[str, Json]:
    """Return a tool call's arguments, for servers that require an object."""
    return cast("dict[str, Json]", json.loads(arguments_text(message, place)))


def leading_system(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return the leading system messages, and the rest of the conversation."""
    start = 0
    for message in messages:
        if message.role != "system":
            break
        start += 1
    return list(messages[:start]), list(messages[start:])


def function_of(tool: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the definition inside an OpenAI-style tool."""
    inner = tool.get("function")
    return cast("Mapping[str, Json]", inner) if isinstance(inner, Mapping) else tool


def declared(tool: Mapping[str, Json], parameters: str) -> dict[str, Json]:
    """Return a tool's declaration, its schema under the key `parameters`."""
    function = function_of(tool)
    declaration: dict[str, Json] = {
        "name": function.get("name"),
        parameters: function.get("parameters") or {"type": "object"},
    }
    if function.get("description"):
        declaration["description"] = function["description"]
    if tool.get("defer_loading"):
        declaration["defer_loading"] = True
    return declaration


def joined_turns(
    messages: Iterable[tuple[str, list[dict[str, Json]]]], model_role: str
) -> list[tuple[str, list[dict[str, Json]]]]:
    """Join adjacent turns of one role; `model_role` is the model's."""
    turns: list[tuple[str, list[dict[str, Json]]]] = []
    for role, blocks in messages:
        name = model_role if role == "assistant" else "user"
        if turns and turns[-1][0] == name:
            turns[-1][1].extend(blocks)
        else:
            turns.append((name, blocks))
    return turns


def base64_of(part: Part) -> str:
    """Return the data of a picture or a PDF file as base64.

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
