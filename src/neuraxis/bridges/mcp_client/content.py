"""Convert MCP content blocks to values: text, media, resources, links.

A picture becomes a picture object, other binary data bytes: neither is JSON, so the
session stores it as an asset. A link is never followed automatically.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, cast

from neuraxis.assets.attachments import MOST_BYTES
from neuraxis.bridges.untrusted_text import one_line
from neuraxis.errors import CommandError, MissingExtra
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Json

MOST_ERROR = 4_000
"""Maximum characters shown of a failed call's message."""
_PICTURES = 64_000_000


def result_value(result: Mapping[str, Json]) -> Any:
    """Return the value of a `tools/call` result, as the server sent it.

    Raises:
        CommandError: the server reports that the call failed.
    """
    blocks = _blocks(result.get("content"))
    if result.get("isError") is True:
        text = "\n".join(str(b.get("text", "")) for b in blocks if b.get("text"))
        raise CommandError(one_line(text, MOST_ERROR) or "the server gave no reason")
    has_structure = "structuredContent" in result
    structured = result.get("structuredContent")
    attachments = [block for block in blocks if block.get("type") != "text"]
    if has_structure and structured is not None:
        if not attachments:
            return structured
        return {
            "structured": structured,
            "content": [block_value(b) for b in attachments],
        }
    values = [block_value(block) for block in blocks]
    return values[0] if len(values) == 1 else values or None


def resource_value(result: Mapping[str, Json]) -> Any:
    """Return the value of a `resources/read` result."""
    values = [_resource(block) for block in _blocks(result.get("contents"))]
    return values[0] if len(values) == 1 else values


def prompt_value(result: Mapping[str, Json]) -> Any:
    """Return the value of a `prompts/get` result: its messages."""
    messages: list[Json] = []
    for message in _blocks(result.get("messages")):
        block = as_map(message.get("content"))
        messages.append(
            {"role": str(message.get("role", "user")), "content": block_value(block)}
        )
    return {"description": result.get("description") or "", "messages": messages}


def _blocks(content: Json) -> Sequence[Mapping[str, Json]]:
    return [as_map(block) for block in as_list(content) if isinstance(block, Mapping)]


def block_value(block: Mapping[str, Json]) -> Any:
    """Return the value of one content block."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio":
            return binary_value(block.get("data"), str(block.get("mimeType", "")))
        case "resource":
            return _resource(as_map(block.get("resource")))
        case "resource_link":
            return _link(block)
        case _:
            return dict(block)


def _link(block: Mapping[str, Json]) -> Json:
    keys = ("uri", "name", "title", "description", "mimeType", "size")
    return {"link": {key: block[key] for key in keys if block.get(key) is not None}}


def _resource(block: Mapping[str, Json]) -> Any:
    uri, kind = str(block.get("uri", "")), str(block.get("mimeType") or "")
    if isinstance(block.get("text"), str):
        return {"uri": uri, "mime_type": kind, "text": block["text"]}
    value = binary_value(block.get("blob"), kind)
    if isinstance(value, dict):
        return {"uri": uri, **cast("dict[str, Any]", value)}
    return {"uri": uri, "mime_type": kind, "content": value}


def binary_value(data: Json, kind: str) -> Any:
    """Return a picture, or `{"mime_type", "data"}` with the bytes.

    Raises:
        CommandError: it is not base64, or too large.
    """
    text = data if isinstance(data, str) else ""
    if len(text) > MOST_BYTES:
        raise CommandError(f"the {kind or 'binary'} answer is over {MOST_BYTES} bytes")
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise CommandError(f"the {kind or 'binary'} answer is no base64") from None
    if kind.startswith("image/"):
        # few servers send pictures, and few installations have Pillow
        from neuraxis.builtin.images.pillow import opened

        try:
            return opened(raw, _PICTURES)
        except (CommandError, MissingExtra):
            pass  # the bytes are still useful
    return {"mime_type": kind, "data": raw}
