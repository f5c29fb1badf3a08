"""Build a Messages API request from a prompt and options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from neuraxis import call_errors
from neuraxis.messages import Message, Part, Prompt
from neuraxis.models.http.optional_parts import Body, OptionalPart, at_path, option
from neuraxis.models.http.reasoning_blocks import unpack
from neuraxis.models.http.request_parts import (
    arguments_object,
    base64_of,
    declared,
    function_of,
    joined_turns,
    leading_system,
)
from neuraxis.models.http.settings import EFFORTS, Options
from neuraxis.specs import Json

MOST_TOKENS = 8192
"""Default maximum tokens of an answer: this API requires a number."""
_LEAST_BUDGET = 1024  # minimum tokens of thinking; the API refuses fewer
_CACHED: Json = {"type": "ephemeral"}
_TOOL_SEARCH: Mapping[str, Json] = {
    "type": "tool_search_tool_bm25_20251119",
    "name": "tool_search_tool_bm25",
}
_THINKING = ("thinking", "redacted_thinking")

Block = dict[str, Json]


def request_body(
    prompt: Prompt, model: str, options: Options, origin: str = ""
) -> dict[str, Json]:
    """Return the body of a request for one message."""
    native = bool(prompt.native_tools)
    system, messages = leading_system(prompt.messages)
    body: dict[str, Json] = {
        "model": model,
        "max_tokens": options.max_tokens or MOST_TOKENS,
        "stream": True,
        "messages": _turns(messages, native, origin),
    }
    blocks: list[Block] = [
        {"type": "text", "text": message.content}
        for message in system
        if message.content.strip()
    ]
    if blocks:
        body["system"] = blocks
    tools = [_tool(tool) for tool in prompt.native_tools]
    if any("defer_loading" in tool for tool in tools):
        tools.append({**_TOOL_SEARCH})
    if tools:
        body["tools"] = tools
    # Tools precede the system text there: one cache mark covers both.
    marked = blocks or tools
    if options.cache and marked:
        marked[-1] = {**marked[-1], "cache_control": _CACHED}
    if stops := [stop for stop in prompt.stop if stop.strip()]:
        body["stop_sequences"] = stops
    if native:
        _put_tool_choice(body, options)
    _put_thinking(body, options)
    if "thinking" not in body:  # while thinking, only the default 1 is accepted
        for key in ("temperature", "top_p"):
            if (value := getattr(options, key)) is not None:
                body[key] = value
    form = prompt.output_schema or options.output_schema
    if form is not None:
        output_format = {"type": "json_schema", "schema": dict(form)}
        body.setdefault("output_config", {})["format"] = output_format
    body.update(options.extra)
    return body


def missing_options(options: Options) -> list[str]:
    """Return notes on the options that this API does not have."""
    notes: list[str] = []
    if options.seed is not None:
        notes.append("seed is left out: the Messages API has none")
    sampled = options.temperature is not None or options.top_p is not None
    if options.thinking and sampled:
        notes.append("temperature and top_p are left out: the model thinks")
    return notes


def _put_tool_choice(body: dict[str, Json], options: Options) -> None:
    choice = options.tool_choice
    words = {"auto": "auto", "none": "none", "required": "any"}
    if choice is None and options.parallel_tool_calls is not False:
        return
    tool_choice: Block = {"type": words.get(choice or "auto", "tool")}
    if tool_choice["type"] == "tool":
        tool_choice["name"] = choice
    if options.parallel_tool_calls is False and tool_choice["type"] != "none":
        tool_choice["disable_parallel_tool_use"] = True
    body["tool_choice"] = tool_choice


def _put_thinking(body: dict[str, Json], options: Options) -> None:
    thinking = options.thinking
    if thinking is None:
        return
    if thinking == 0:
        body["thinking"] = {"type": "disabled"}
    elif isinstance(thinking, str):
        body["thinking"] = {"type": "adaptive"}
        body["output_config"] = {"effort": thinking}
    else:
        _put_budget(body, thinking)


def _put_budget(body: dict[str, Json], tokens: int) -> None:
    tokens = max(tokens, _LEAST_BUDGET)
    body["thinking"] = {"type": "enabled", "budget_tokens": tokens}
    # The thinking budget is part of `max_tokens`.
    body["max_tokens"] = cast("int", body["max_tokens"]) + tokens


def _turns(messages: list[Message], native: bool, origin: str) -> list[Json]:
    contents = [
        (message.role, _blocks(message, native, origin)) for message in messages
    ]
    turns = joined_turns(contents, "assistant")
    nothing: Block = {"type": "text", "text": call_errors.SAID_NOTHING}
    return [{"role": role, "content": blocks or [nothing]} for role, blocks in turns]


def _blocks(message: Message, native: bool, origin: str) -> list[Block]:
    if native and message.role == "tool":
        result: Block = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id or "",
            "content": message.content,
        }
        return [result]
    if carried := unpack(message, origin):
        return carried
    blocks: list[Block] = [_part(part) for part in message.parts]
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    if native:
        blocks += [
            {
                "type": "tool_use",
                "id": call.id,
                "name": call.name,
                "input": arguments_object(message, place),
            }
            for place, call in enumerate(message.tool_calls)
        ]
    return blocks


def _part(part: Part) -> Block:
    data = base64_of(part)
    kind = "image" if part.media_type.startswith("image/") else "document"
    source = {"type": "base64", "media_type": part.media_type, "data": data}
    return {"type": kind, "source": source}


def _tool(tool: Mapping[str, Json]) -> Block:
    strict = {"strict": True} if function_of(tool).get("strict") else {}
    return declared(tool, "input_schema") | strict


# --- what a model may refuse ------------------------------------------------------


def _without_thinking_blocks(body: Body) -> dict[str, Json]:
    turns: list[Json] = []
    for turn in cast("list[dict[str, Json]]", body.get("messages") or []):
        content = turn.get("content")
        if isinstance(content, list):
            blocks = [
                block
                for block in cast("list[Block]", content)
                if block.get("type") not in _THINKING
            ]
            nothing: Block = {"type": "text", "text": call_errors.SAID_NOTHING}
            turns.append({**turn, "content": blocks or [nothing]})
        else:
            turns.append(turn)
    return {**body, "messages": turns}


def _budget_for_adaptive(body: Body) -> dict[str, Json]:
    changed = at_path("output_config", "effort")(body)
    thinking = cast("Block", body.get("thinking") or {})
    if thinking.get("type") == "adaptive":
        config = cast("Block", body.get("output_config") or {})
        _put_budget(changed, EFFORTS[cast("str", config.get("effort") or "medium")])
    return changed


def _without_cache_mark(body: Body) -> dict[str, Json]:
    changed = dict(body)
    for key in ("system", "tools"):
        blocks = cast("list[Block]", body.get(key) or [])
        if blocks and "cache_control" in blocks[-1]:
            last = {k: v for k, v in blocks[-1].items() if k != "cache_control"}
            changed[key] = [*blocks[:-1], last]
    return changed


PARTS = (
    OptionalPart(
        # servers that translate this API into another may not know it
        name="cache mark",
        words=re.compile(r"cache.?control", re.IGNORECASE),
        remove=_without_cache_mark,
    ),
    OptionalPart(
        name="thinking of earlier turns",
        words=re.compile(r"signature|thinking.{0,3} blocks", re.IGNORECASE),
        remove=_without_thinking_blocks,
    ),
    OptionalPart(
        name="adaptive thinking",
        words=re.compile(r"adaptive|\beffort\b", re.IGNORECASE),
        remove=_budget_for_adaptive,
    ),
    option("tool_choice"),
    option("top_p"),
    option("temperature"),
    option("stop_sequences"),
    option(
        "output format", "output_config", "format", words=r"output_(?:config|format)"
    ),
    option("thinking"),
)
"""Parts that some models refuse, most specific first."""
