"""Build a generateContent request from a prompt and options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import cast

from neuraxis import call_errors
from neuraxis.messages import Message, Part, Prompt
from neuraxis.models.http.optional_parts import Body, OptionalPart, at_path, option
from neuraxis.models.http.reasoning_blocks import unpack
from neuraxis.models.http.request_parts import (
    arguments_object,
    base64_of,
    function_of,
    joined_turns,
    leading_system,
)
from neuraxis.models.http.settings import EFFORTS, Options
from neuraxis.models.openai.fallback import OF_TOOLS, without
from neuraxis.parsing.json_access import as_list, as_map
from neuraxis.specs import Json

MOST_STOPS = 5
"""Stop sequences of one request; more are refused."""
_CONFIG = "generationConfig"
_THINKING = "thinkingConfig"
_SYSTEM = "systemInstruction"
_NO_MORE = f"additionalProperties{OF_TOOLS}"

Block = dict[str, Json]


def request_body(prompt: Prompt, options: Options, origin: str = "") -> dict[str, Json]:
    """Return the body of a request for one completion."""
    native = bool(prompt.native_tools)
    system, messages = leading_system(prompt.messages)
    body: dict[str, Json] = {"contents": _turns(messages, native, origin)}
    texts: list[Json] = [
        {"text": message.content} for message in system if message.content.strip()
    ]
    if texts:
        body[_SYSTEM] = {"parts": texts}
    if native:
        tools = [_tool(tool) for tool in prompt.native_tools]
        body["tools"] = [{"functionDeclarations": tools}]
        if options.tool_choice is not None:
            chosen = _tool_choice(options.tool_choice)
            body["toolConfig"] = {"functionCallingConfig": chosen}
    if config := _config(prompt, options):
        body[_CONFIG] = config
    body.update(options.extra)
    return body


def missing_options(options: Options) -> list[str]:
    """Return notes on the options that this API does not have."""
    if options.parallel_tool_calls is False:
        return ["parallel_tool_calls is left out: Gemini decides that itself"]
    return []


def _config(prompt: Prompt, options: Options) -> Block:
    config: Block = {}
    names = {
        "temperature": "temperature",
        "top_p": "topP",
        "max_tokens": "maxOutputTokens",
        "seed": "seed",
    }
    for name, field in names.items():
        if (value := getattr(options, name)) is not None:
            config[field] = value
    if prompt.stop:
        config["stopSequences"] = list(prompt.stop)[:MOST_STOPS]
    form = prompt.output_schema or options.output_schema
    if form is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = dict(form)
    thinking = options.thinking
    if isinstance(thinking, str):
        config[_THINKING] = {"thinkingLevel": thinking, "includeThoughts": True}
    elif thinking is not None:
        config[_THINKING] = {"thinkingBudget": thinking}
        if thinking:
            config[_THINKING]["includeThoughts"] = True
    return config


def _tool_choice(choice: str) -> Block:
    words = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    if choice in words:
        return {"mode": words[choice]}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def _turns(messages: list[Message], native: bool, origin: str) -> list[Json]:
    """Return the turns; adjacent turns of one role are joined."""
    names: dict[str, str] = {}  # call id -> tool name: a result must repeat it
    blocks: list[tuple[str, list[Block]]] = []
    for message in messages:
        names.update({call.id: call.name for call in message.tool_calls})
        blocks.append((message.role, _parts(message, native, origin, names)))
    turns = joined_turns(blocks, "model")
    nothing: Block = {"text": call_errors.SAID_NOTHING}
    return [{"role": role, "parts": parts or [nothing]} for role, parts in turns]


def _parts(
    message: Message, native: bool, origin: str, names: Mapping[str, str]
) -> list[Block]:
    if native and message.role == "tool":
        call_id = message.tool_call_id or ""
        answer: Block = {
            "id": call_id,
            "name": names.get(call_id, ""),
            "response": {"output": message.content},
        }
        return [{"functionResponse": answer}]
    if carried := unpack(message, origin):
        return _with_ids(carried, message)
    parts = [_file(part) for part in message.parts]
    if message.content.strip():
        parts.append({"text": message.content})
    if native:
        for place, call in enumerate(message.tool_calls):
            arguments = arguments_object(message, place)
            own_call = {"id": call.id, "name": call.name, "args": arguments}
            parts.append({"functionCall": own_call})
    return parts


def _with_ids(parts: list[Block], message: Message) -> list[Block]:
    """Return the parts; calls without an id get ours."""
    ids = iter([call.id for call in message.tool_calls])
    completed: list[Block] = []
    for part in parts:
        call = part.get("functionCall")
        if isinstance(call, dict):
            call_id = next(ids, "")
            fields = cast("Block", call)
            part = {
                **part,
                "functionCall": {**fields, "id": fields.get("id") or call_id},
            }
        completed.append(part)
    return completed


def _file(part: Part) -> Block:
    data = base64_of(part)
    return {"inlineData": {"mimeType": part.media_type, "data": data}}


def _tool(tool: Mapping[str, Json]) -> Block:
    function = function_of(tool)
    declaration: Block = {"name": function.get("name")}
    if function.get("description"):
        declaration["description"] = function["description"]
    if function.get("parameters"):
        declaration["parametersJsonSchema"] = function["parameters"]
    return declaration


# --- what a model may refuse ------------------------------------------------------


def _budget_for_level(body: Body) -> dict[str, Json]:
    config = cast("Block", body.get(_CONFIG) or {})
    thinking = cast("Block", config.get(_THINKING) or {})
    if "thinkingLevel" not in thinking:
        return dict(body)
    tokens = EFFORTS[cast("str", thinking["thinkingLevel"])]
    budget = {"thinkingBudget": tokens, "includeThoughts": True}
    return {**body, _CONFIG: {**config, _THINKING: budget}}


def _without_calls_ids(body: Body) -> dict[str, Json]:
    contents: list[Json] = []
    for turn in cast("list[Block]", body.get("contents") or []):
        parts: list[Json] = []
        for part in cast("list[Block]", turn.get("parts") or []):
            for name in ("functionCall", "functionResponse"):
                if isinstance(part.get(name), dict):
                    inner = dict(cast("Block", part[name]))
                    inner.pop("id", None)
                    part = {**part, name: inner}
            parts.append(part)
        contents.append({**turn, "parts": parts})
    return {**body, "contents": contents}


def _without_system(body: Body) -> dict[str, Json]:
    """Put the system text in front of the user's first request."""
    changed = dict(body)
    system = as_map(changed.pop(_SYSTEM, None))
    texts = as_list(system.get("parts"))
    if not texts:  # the settings may have put anything there
        return dict(body)
    turns = cast("list[Block]", body.get("contents") or [])
    first: Block = {"role": "user", "parts": []}
    if turns and turns[0].get("role") == "user":
        first, turns = turns[0], turns[1:]
    parts = cast("list[Block]", first.get("parts") or [])
    changed["contents"] = [{**first, "parts": [*texts, *parts]}, *turns]
    return changed


def _without_output_type(body: Body) -> dict[str, Json]:
    # a schema without the type is refused, too
    changed = at_path(_CONFIG, "responseJsonSchema")(body)
    return at_path(_CONFIG, "responseMimeType")(changed)


PARTS = (
    OptionalPart(
        # Gemma has no system role
        name="system instruction",
        words=re.compile(
            r"(?:system|developer).?instructions?\b.{0,20}\bnot (?:ena|sup|all)"
            r"|unknown name \W{0,2}system.?instruction",
            re.IGNORECASE,
        ),
        remove=_without_system,
    ),
    OptionalPart(
        name="thinking level",
        words=re.compile(r"thinking.?level", re.IGNORECASE),
        remove=_budget_for_level,
    ),
    option("thinking", _CONFIG, _THINKING, words=r"\bthinking|thought"),
    OptionalPart(
        name="ids of calls",
        words=re.compile(r"unknown name \W{0,2}id\b", re.IGNORECASE),
        remove=_without_calls_ids,
    ),
    option(
        "output schema",
        _CONFIG,
        "responseJsonSchema",
        # words after its name are about the user's own schema
        words=r"response.?json.?schema|response.?schema(?![\w.\[])",
    ),
    OptionalPart(
        name="output type",
        words=re.compile("response.?mime.?type", re.IGNORECASE),
        remove=_without_output_type,
    ),
    OptionalPart(
        name=_NO_MORE,
        words=re.compile(r"\badditional.?properties\b", re.IGNORECASE),
        remove=partial(without, part=_NO_MORE),
    ),
    option("temperature", _CONFIG, "temperature"),
    option("top_p", _CONFIG, "topP", words="top.?p"),
    option("seed", _CONFIG, "seed"),
    option("stop", _CONFIG, "stopSequences", words="stop.?sequences?"),
    option("tool_choice", "toolConfig", words="function.?calling.?config|tool.?config"),
)
"""Parts that some models refuse, most specific first."""
