"""Find the part of a request that a server's refusal refers to.

OpenAI-compatible servers support different subsets of the API, and which options a
model accepts is unknown before the first request: so a refused request is repeated
without the part that the refusal names. `tests/wire/models/refusals.yaml` has real
refusals. A server's message is cut before it is matched here (`answers.MOST_TEXT`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from neuraxis.models.http.answers import is_about_size
from neuraxis.models.openai.fallback import (
    CARRIED,
    EMPTY,
    IDS,
    NO_REASONING,
    NO_SIGNATURE,
    NULL,
    OF_TOOLS,
    ORDER,
    SYSTEM,
    Body,
    without,
)
from neuraxis.models.openai.provider_state import OF_CALL, OF_MESSAGE

_OTHER_NAMES = {
    "response_format": r"|response[ _]mime[ _]type|json[ _](?:mode|schema)"
    r"|structured[ _]outputs?",
}
_NAMES = {
    name: re.compile(
        rf"\b(?:{name.replace('_', '[ _-]?')}{_OTHER_NAMES.get(name, '')})\b",
        re.IGNORECASE,
    )
    for name in (
        "stop",
        "temperature",
        "top_p",
        "seed",
        "stream_options",
        "reasoning_effort",
        "response_format",
        "tool_choice",
        "parallel_tool_calls",
    )
}
"""Options in any spelling: one that a refusal names and means is left out."""
_UNKNOWN = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|extra inputs"
    r"|not permitted|not allowed|cannot find field|forbidden",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"missing|must be (?:passed|sent|provided)|required", re.IGNORECASE
)
_NOT_TAKEN = re.compile(
    r"deprecated|no longer|\bonly\b.{0,30}\ballowed|incompatible|disabled|unavailable"
    r"|no endpoints found"
    r"|(?:not|n't) (?:enabled|available|implemented|compatible|accept|take)"
    r"|(?:cannot|can't|must not) (?:both )?be (?:used|set|specified|combined)",
    re.IGNORECASE,
)
"""Words for an option as such; others are about its value, which is the user's."""
_IN_MESSAGES = {
    # Mistral accepts ids of nine letters and digits, OpenAI of at most 40 characters.
    IDS: re.compile(
        r"tool.?call.?id was|tool_calls?\S*id\b.{0,40}(?:too long|maximum length)"
        r"|too long.{0,80}tool_calls?\S*id",
        re.IGNORECASE | re.DOTALL,
    ),
    # Mistral, Anthropic and Bedrock do not accept an empty message.
    EMPTY: re.compile(
        r"non-?empty|non-whitespace|either content or tool_calls"
        r"|content or tool_calls must be set"
        r"|content.{0,20}(?:cannot|must not) be empty",
        re.IGNORECASE,
    ),
    # Some servers do not accept null as the content of a message with tool calls:
    # their words name the content, and a text or a null.
    NULL: re.compile(
        r"\bcontent\b.{0,80}(?:\bstr(?:ing)?\b|\bnull\b|<nil>|\bnone is\b)"
        r"|(?:null|none)\S{0,9} .{0,30}content|NoneType",
        re.IGNORECASE | re.DOTALL,
    ),
    # Gemma's template has no system role.
    SYSTEM: re.compile(
        r"system role (?:is )?not supported|does not support 'system'"
        r"|(?:system|developer) (?:message|instruction)s? (?:is |are )?not (?:sup|ena)",
        re.IGNORECASE,
    ),
    # Mistral refuses a user message after a tool's; templates of Mistral and Gemma
    # refuse two user messages in a row. Both occur: a message after the newest results,
    # and a run that was cut off.
    ORDER: re.compile(
        r"unexpected role|roles must alternate|expected roles?\b|after role",
        re.IGNORECASE,
    ),
}
# Google's proxies know fewer keywords of a schema than JSON Schema has.
_KEYWORD = re.compile(r"Unknown name \"(\S{1,40})\" at '[^']*function_declarations")
_SCHEMA = ("type", "function", "name", "parameters", "properties", "items", "required")
"""Schema keywords that a tool cannot do without."""


def refused_part(
    body: Body, message: str, *, known: bool = False, is_fault: bool = False
) -> str:
    """Return the part of the body that a server refused, or "".

    `known`: the server accepted a request before, so parts of all requests are fine.
    `is_fault`: the status says so, and the message may name an option by chance.
    """
    for part in _suspects(message, is_fault=is_fault):
        # removing an absent part changes nothing, and would be retried for ever
        if without(body, part) != body:
            return part
    # some servers know no `stream_options` and do not say so: it is the first suspect
    unnamed = not known and "stream_options" in body and not is_about_size(message)
    return "stream_options" if unnamed else ""


def _plain(name: str) -> str:
    return re.sub(r"[ _-]", "", name).lower()


def _suspects(message: str, *, is_fault: bool) -> Iterator[str]:
    """Yield the parts that the message may mean, most specific first."""
    # OpenAI's and Azure's newer models require `max_completion_tokens` instead.
    if "max_completion_tokens" in message:
        yield "max_tokens"
    keyword = _KEYWORD.search(message)
    if keyword and keyword[1] not in _SCHEMA:
        yield keyword[1] + OF_TOOLS
    is_missing, is_unknown = _MISSING.search(message), _UNKNOWN.search(message)
    # DeepSeek and Kimi require the field also in another model's turns.
    if is_missing and "reasoning_content" in message:
        yield NO_REASONING
    if is_missing and "thought_signature" in message:
        yield NO_SIGNATURE
    # A gateway's own fields may be refused by the server behind it: Mistral and
    # Groq do that.
    if is_unknown and any(name in message for name in (*OF_MESSAGE, *OF_CALL)):
        yield CARRIED
    for part, words in _IN_MESSAGES.items():
        if words.search(message):
            yield part
    if is_fault and not is_unknown:
        return
    is_refused = is_unknown or _NOT_TAKEN.search(message)
    for part, word in _NAMES.items():
        # the stops are the dialect's own, and no user's mistake
        is_meant = is_refused or (part == "stop" and not is_fault)
        found = word.search(message) if is_meant else None
        # a fault of what carries an option out is passing: it must be named itself
        if found and not (is_fault and _plain(found[0]) != _plain(part)):
            yield part
