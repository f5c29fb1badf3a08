"""Build a Responses API request from a prompt and options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from neuraxis.messages import Message, Part, Prompt
from neuraxis.models.http.optional_parts import Body, OptionalPart, option
from neuraxis.models.http.reasoning_blocks import unpack
from neuraxis.models.http.request_parts import (
    arguments_text,
    base64_of,
    declared,
    function_of,
    leading_system,
)
from neuraxis.models.http.settings import Options, effort_of
from neuraxis.specs import Json

UNASKED = ("include", "store", "reasoning summary")
"""Parts omitted without a note: nothing is lost without them."""

Block = dict[str, Json]


def request_body(
    prompt: Prompt, model: str, options: Options, origin: str = ""
) -> dict[str, Json]:
    """Return the body of a request; the server stores nothing."""
    native = bool(prompt.native_tools)
    system, messages = leading_system(prompt.messages)
    items: list[Json] = []
    for message in messages:
        items += _items(message, native, origin)
    body: dict[str, Json] = {
        "model": model,
        "input": items,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if instructions := "\n\n".join(
        item.content for item in system if item.content.strip()
    ):
        body["instructions"] = instructions
    if native:
        tools = [_tool(tool) for tool in prompt.native_tools]
        if any("defer_loading" in tool for tool in tools):
            tools.append({"type": "tool_search"})
        body["tools"] = tools
        if options.tool_choice is not None:
            body["tool_choice"] = _tool_choice(options.tool_choice)
        if options.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = options.parallel_tool_calls
    names = {
        "temperature": "temperature",
        "top_p": "top_p",
        "max_tokens": "max_output_tokens",
    }
    for name, field in names.items():
        if (value := getattr(options, name)) is not None:
            body[field] = value
    if options.thinking is not None:
        effort = effort_of(options.thinking)
        body["reasoning"] = {"effort": effort}
        if effort != "none":
            body["reasoning"]["summary"] = "auto"
    form = prompt.output_schema or options.output_schema
    if form is not None:
        output_format = {"type": "json_schema", "name": "reply", "schema": dict(form)}
        body["text"] = {"format": output_format}
    body.update(options.extra)
    return body


def missing_options(options: Options) -> list[str]:
    """Return notes on the options that this API does not have."""
    if options.seed is not None:
        return ["seed is left out: the Responses API has none"]
    return []


def _tool_choice(choice: str) -> Json:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "name": choice}


def _items(message: Message, native: bool, origin: str) -> list[Json]:
    if native and message.role == "tool":
        call_id = message.tool_call_id or ""
        output = message.content
        return [{"type": "function_call_output", "call_id": call_id, "output": output}]
    if carried := unpack(message, origin):
        return [*carried]
    items: list[Json] = []
    role = "user" if message.role == "tool" else message.role
    if message.parts:
        content: list[Json] = [_part(part) for part in message.parts]
        if message.content:
            content.insert(0, {"type": "input_text", "text": message.content})
        items.append({"role": role, "content": content})
    elif message.content or not (native and message.tool_calls):
        items.append({"role": role, "content": message.content})
    if native:
        items += [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": arguments_text(message, place),
            }
            for place, call in enumerate(message.tool_calls)
        ]
    return items


def _part(part: Part) -> Json:
    url = f"data:{part.media_type};base64,{base64_of(part)}"
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    name = part.name or "file.pdf"
    return {"type": "input_file", "filename": name, "file_data": url}


def _tool(tool: Mapping[str, Json]) -> Block:
    # the default is strict, which accepts only a part of JSON Schema
    strict = bool(function_of(tool).get("strict"))
    return {"type": "function", **declared(tool, "parameters"), "strict": strict}


# --- what a model may refuse ------------------------------------------------------


def _without_reasoning_items(body: Body) -> dict[str, Json]:
    items = cast("list[Block]", body.get("input") or [])
    remaining = [item for item in items if item.get("type") != "reasoning"]
    return {**body, "input": remaining}


PARTS = (
    option("include", words=r"\binclude\b|encrypted.content is not supported"),
    option("store", words=r"\bstore\b"),
    OptionalPart(
        name="reasoning of earlier turns",
        words=re.compile(
            r"encrypted.content|'rs_|type 'reasoning'|reasoning item", re.IGNORECASE
        ),
        remove=_without_reasoning_items,
    ),
    option("reasoning summary", "reasoning", "summary", words=r"reasoning\W+summar"),
    option("reasoning", words=r"\breasoning\b"),
    option("temperature"),
    option("top_p"),
    option("tool_choice"),
    option("parallel_tool_calls"),
    option("output format", "text", "format", words=r"text\.format|json_schema"),
)
"""Parts that some models or servers refuse, most specific first."""
