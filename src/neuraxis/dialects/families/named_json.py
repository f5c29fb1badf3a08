r"""Read calls that are a name with a JSON object after it.

The object is the call: it must be closed, and the token after it may be missing, since
servers take it off as a stop text.
"""

from __future__ import annotations

import re

from msgspec import Struct

from neuraxis.dialects.families.family import (
    BAR,
    NAME,
    Family,
    Reading,
    Taken,
    arguments,
)
from neuraxis.parsing.json_errors import broken, cut_off
from neuraxis.parsing.json_scan import Value

_OPEN = r"(?=\{|\Z)"
_SEP = rf"<{BAR}tool[▁_]sep{BAR}>"


def named_json(
    text: str, at: int, name: str, reading: Reading, end: re.Pattern[str]
) -> Taken:
    """Return the call of `name` whose arguments begin at `at`."""
    value = reading.value(at)
    parsed = arguments(text, at, name, value)
    assert isinstance(value, Value)
    close = end.match(text, value.end)
    return Taken(
        calls=((name, parsed),),
        end=close.end() if close else value.end,
        notes=value.notes,
    )


class _NamedJson(Struct, frozen=True):
    models: str
    begin: re.Pattern[str]
    end: re.Pattern[str]
    registered: bool = False

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        name = begin["name"].strip()
        if self.registered and not reading.is_tool(name):
            return None
        at = begin.end()
        if at == len(text):
            raise cut_off(text, f"where the arguments of {name} begin")
        return named_json(text, at, name, reading, self.end)


class _ReAct(Struct, frozen=True):
    """Form of two lines, for the tool and for its arguments."""

    models: str = "ReAct"
    begin: re.Pattern[str] = re.compile(
        rf"\**Action:\**[ \t]*`?{NAME}`?"
        r"(?P<input>\s*\**Action[ _]Input:\**\s*(?:```(?:json)?\s*|`)?)?"
    )
    end: re.Pattern[str] = re.compile(r"\s*(?:```|`)")

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        name, at = begin["name"], begin.end()
        if not reading.is_tool(name):
            return None
        if begin["input"] is None:
            if _WORDS_BEHIND.match(text, at) or _NEXT_LABEL.match(text, at):
                return None
            raise broken(text, at, f'expected "Action Input:" after {name}')
        if at == len(text):
            raise cut_off(text, f"where the arguments of {name} begin")
        if text[at] != "{":
            raise broken(text, at, f"expected the arguments of {name}: a JSON object")
        return named_json(text, at, name, reading, self.end)


_WORDS_BEHIND = re.compile(r"[^\w\n({]*+\w")
_NEXT_LABEL = re.compile(
    r"[^\w({]*+(?!(?:Action[ _]?)?(?:Input|Arg|Param)|Final Answer|Observation|Question"
    r"|Thought)[^\W\d][ \w]{0,40}+:"
)
"""Next label of a ReAct card, which has an action among other entries."""
_NO_END = re.compile("")
_FENCE_END = re.compile(r"\s*```")

NAMED_JSON: tuple[Family, ...] = (
    _NamedJson(
        "Mistral",
        re.compile(
            rf"\[TOOL_CALLS\]\s*{NAME}\s*(?:\[CALL_ID\]\s*\w+\s*)?"
            rf"(?:\[ARGS\]\s*)?{_OPEN}"
        ),
        _NO_END,
    ),
    _NamedJson(
        "Llama 3, Functionary 3.1",
        re.compile(rf"<function=(?P<name>[^<>\n]{{1,200}})>\s*{_OPEN}"),
        re.compile(r"\s*</function>"),
    ),
    _NamedJson(
        "DeepSeek R1, V3",
        re.compile(
            rf"<{BAR}tool[▁_]call[▁_]begin{BAR}>(?:function{_SEP})?{NAME}\s*+"
            rf"(?:{_SEP}\s*+)?(?:```json\s*+)?{_OPEN}"
        ),
        re.compile(rf"\s*+(?:```\s*+)?<{BAR}tool[▁_]call[▁_]end{BAR}>|\s*```\s*\Z"),
    ),
    _NamedJson(
        "Kimi K2",
        re.compile(
            r"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>[\w.-]{1,200}?)(?::\d+)?"
            r"\s*<\|tool_call_argument_begin\|>\s*"
        ),
        re.compile(r"\s*<\|tool_call_end\|>"),
    ),
    _NamedJson(
        "Hermes, where it forgets its form",
        re.compile(rf"<tool_call>\s*<name>\s*{NAME}\s*</name>\s*<arguments>\s*{_OPEN}"),
        re.compile(r"\s*</arguments>\s*</tool_call>"),
    ),
    _NamedJson(
        "gpt-oss, where the server removed its tokens",
        re.compile(rf"to=functions\.{NAME}[ \t]*+(?:json|code)?\s*+(?=\{{)"),
        _NO_END,
    ),
    _NamedJson(
        "Functionary 2.4",
        re.compile(
            r"(?:<\|from\|>\s*\w+\s*)?<\|recipient\|>\s*"
            rf"{NAME}\s*<\|content\|>\s*{_OPEN}"
        ),
        re.compile(r"\s*<\|stop\|>"),
    ),
    _NamedJson(
        "Functionary 2 for Llama 3",
        re.compile(rf"<\|reserved_special_token_249\|>\s*{NAME}\s*{_OPEN}"),
        _NO_END,
    ),
    _NamedJson(
        "Qwen-Agent",
        re.compile(rf"✿FUNCTION✿:\s*{NAME}\s*✿ARGS✿:\s*{_OPEN}"),
        _NO_END,
    ),
    _ReAct(),
    _NamedJson(
        "Functionary 3.2, and models without a form of their own",
        re.compile(
            rf"(?:>>>[ \t]*+)?{NAME}[ \t]*+(?::[ \t]*+)?(?:\r?\n\s*+)?"
            r"(?:```(?:json)?\s*+)?(?=\{)"
        ),
        _FENCE_END,
        registered=True,
    ),
)
