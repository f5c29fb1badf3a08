"""Convert results to MCP content: text, pictures, structures and links.

A value that is too large or too complex becomes a link to a resource, which the client
can read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import quote, unquote

import mcp_types as types

from neuraxis.assets.describe import describe
from neuraxis.assets.embed import is_picture, png_of
from neuraxis.assets.json_view import to_json_value
from neuraxis.assets.store import AssetStore
from neuraxis.messages import Result
from neuraxis.parsing.json_access import as_map
from neuraxis.specs import Json

SCHEME = "neuraxis://asset/"
MOST_MEDIA = 2_000_000
"""Maximum characters of media in an answer; larger ones are only linked."""
MOST_PARTS = 50
MOST_RESOURCE = 50_000_000
"""Maximum bytes of a resource."""
MOST_STRUCTURED = 1_000_000
"""Maximum characters of structured content; larger answers are only linked."""


class CannotBeRead(Exception):
    """Error: the asset cannot be sent; says why."""


def asset_uri(asset_id: str) -> str:
    """Return the address of an asset."""
    return SCHEME + quote(asset_id, safe="")


def asset_id(uri: str) -> str | None:
    """Return the asset id of an address; None: not ours."""
    return unquote(uri.removeprefix(SCHEME)) if uri.startswith(SCHEME) else None


def is_answer(content: Any) -> bool:
    """Check whether an asset's content is a command's answer."""
    return isinstance(content, dict) and set(cast("Any", content)) == {
        "command",
        "response",
    }


def with_references(value: Json, assets: AssetStore) -> Json:
    """Return arguments with references in the place of assets' addresses.

    An `asset_id` without a path is one to the whole answer, too.
    """
    if isinstance(value, str):
        found = asset_id(value)
    elif isinstance(value, list):
        return [with_references(part, assets) for part in cast("list[Json]", value)]
    elif isinstance(value, dict):
        entries = cast("dict[str, Json]", value)
        if entries.keys() != {"asset_id"}:
            return {key: with_references(entries[key], assets) for key in entries}
        given = str(entries["asset_id"])
        found = asset_id(given) or given
    else:
        return value
    if found is None or found not in assets.ids:
        return cast("Json", value)
    whole = is_answer(assets.root(found)["content"])
    path: Json = ["content", "response"] if whole else ["content"]
    return {"asset_id": found, "field_path": path}


def call_result(result: Result, *, structured: bool) -> types.CallToolResult:
    """Return a finished call as an MCP result.

    Args:
        result: the session's result.
        structured: whether the tool declares a schema of its answers.
    """
    if result.error is not None:
        text = types.TextContent(text=result.error.message)
        return types.CallToolResult(content=[text], is_error=True)
    content: list[types.ContentBlock] = []
    has_json, json_form = to_json_value(result.value)
    parts = media(result.value)
    if parts is not None:
        content += [*parts, _link(result)] if result.stored else parts
    elif result.stored:
        content += _stored(result)
    else:
        content.append(types.TextContent(text=_text(json_form)))
    content += [
        types.TextContent(text=f"Note: {warning}") for warning in result.warnings
    ]
    answer: Json = None
    if has_json and (structured or isinstance(json_form, dict)):
        answer = (
            cast("Json", json_form)
            if isinstance(json_form, dict)
            else {"result": json_form}
        )
        too_long = result.stored and len(_text(answer)) > MOST_STRUCTURED
        if too_long and not structured:
            answer = None
    return types.CallToolResult(
        content=content,
        structured_content=cast("dict[str, Any] | None", answer),
        # clients refuse an answer without the declared structure
        is_error=structured and answer is None,
    )


def as_json(result: Result) -> Json:
    """Return a result as JSON, or None if it has none."""
    has_json, json_form = to_json_value(result.value)
    return json_form if result.error is None and has_json else None


def _stored(result: Result) -> list[types.ContentBlock]:
    link = _link(result)
    text = f"The answer is the resource {link.uri}: {link.description}"
    return [types.TextContent(text=text), link]


def _link(result: Result) -> types.ResourceLink:
    description = describe(result.value)
    words = description if isinstance(description, str) else _text(description)
    uri = asset_uri(result.call.id)
    return types.ResourceLink(uri=uri, name=result.call.id, description=words[:200])


def blocks(value: Any) -> list[types.ContentBlock]:
    """Return a value as blocks: its pictures and parts, else its text."""
    return media(value) or [types.TextContent(text=_text(to_json_value(value)[1]))]


def media(value: Any) -> list[types.ContentBlock] | None:
    """Return pictures, sounds and resources as blocks; None: no media.

    The forms are those of `mcp_client`, so that media pass through.
    """
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    if len(items) > MOST_PARTS or all(isinstance(part, str) for part in items):
        return None
    blocks: list[types.ContentBlock] = []
    size = 0
    for part in items:
        block = types.TextContent(text=part) if isinstance(part, str) else _block(part)
        if block is None:
            return None
        size += len(block.model_dump_json())
        if size > MOST_MEDIA:
            return None
        blocks.append(block)
    return blocks


def _block(part: Any) -> types.ContentBlock | None:
    if is_picture(part):
        text = base64.b64encode(png_of(part)).decode()
        return types.ImageContent(data=text, mime_type="image/png")
    fields = as_map(part)
    kind, data = fields.get("mime_type"), fields.get("data")
    if not isinstance(kind, str):
        return None
    if isinstance(fields.get("uri"), str):
        if not isinstance(fields.get("text"), str):
            return None
        contents = types.TextResourceContents(
            uri=fields["uri"], mime_type=kind or None, text=fields["text"]
        )
        return types.EmbeddedResource(resource=contents)
    if not isinstance(data, bytes):
        return None
    text = base64.b64encode(data).decode()
    if kind.startswith("image/"):
        return types.ImageContent(data=text, mime_type=kind)
    if kind.startswith("audio/"):
        return types.AudioContent(data=text, mime_type=kind)
    return None


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def resource_contents(
    uri: str, value: Any
) -> types.TextResourceContents | types.BlobResourceContents:
    """Return an asset's value as the contents of a resource.

    Raises:
        CannotBeRead: it has no such form, or is too large.
    """
    found = _bytes(value)
    if found is not None:
        kind, data = found
        if len(data) > MOST_RESOURCE:
            raise CannotBeRead(f"it is over {MOST_RESOURCE} bytes")
        blob = base64.b64encode(data).decode()
        return types.BlobResourceContents(uri=uri, mime_type=kind, blob=blob)
    kind, text = _as_text(value)
    if len(text) > MOST_RESOURCE:
        raise CannotBeRead(f"it is over {MOST_RESOURCE} characters")
    return types.TextResourceContents(uri=uri, mime_type=kind, text=text)


def _bytes(value: Any) -> tuple[str, bytes] | None:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        if isinstance(fields.get("data"), bytes):  # the form of `mcp_client.content`
            return str(fields.get("mime_type") or _UNKNOWN), fields["data"]
    if isinstance(value, bytes | bytearray):
        return _UNKNOWN, bytes(value)
    return ("image/png", png_of(value)) if is_picture(value) else None


_UNKNOWN = "application/octet-stream"


def _as_text(value: Any) -> tuple[str, str]:
    if isinstance(value, str):
        return "text/plain", value
    for method in ("write_csv", "to_csv"):  # a polars or pandas table
        write: Callable[[], Any] | None = getattr(value, method, None)
        text = write() if write is not None else None
        if isinstance(text, str):
            return "text/csv", text
    has_json, json_form = to_json_value(value)
    if has_json:
        return "application/json", json.dumps(json_form, ensure_ascii=False)
    description = describe(value)
    raise CannotBeRead(f"it has no form outside of this process: {description}")
