r"""Read calls whose parameters stand between tags.

A value is text; the schema converts it to a number. A tag's type (`string=`, `type=`)
is trusted. A call or parameter needs its own closing tag: one that contains the
beginning of the next has lost its end.
"""

from __future__ import annotations

import re

from msgspec import Struct

from neuraxis.dialects.families.family import NAME, SUFFIX, Family, Reading, Taken
from neuraxis.formatting import quote
from neuraxis.parsing.json_errors import Broken, Fault, broken, cut_off, end_of
from neuraxis.parsing.json_scan import Value, loads
from neuraxis.specs import Json

_NS = r"\]<\]minimax\[>\[\s*"
_PREFIX = r"(?:\w{1,20}:|[|｜]DSML[|｜])?"
_OF = r"(?:longcat_)?"
_VALUE = r"(?P<value><!\[CDATA\[.*?\]\]>|.*?)"
_SPACE = re.compile(r"\s*")
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_NOT_TEXT = re.compile(r"string=\"false\"|type=\"(?!string\")\w+\"")
_CHILD = re.compile(
    r"\s*\]<\]minimax\[>\[\s*<(?P<key>[\w-]{1,200})>(?P<value>.*?)"
    r"\]<\]minimax\[>\[\s*</(?P=key)>",
    re.DOTALL,
)


class _Tagged(Struct, frozen=True):
    models: str
    begin: re.Pattern[str]
    parameter: re.Pattern[str]
    end: re.Pattern[str]
    opens: re.Pattern[str]
    registered: bool = False

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        name, at = begin["name"].strip(), begin.end()
        if self.registered and not reading.is_tool(name):
            return None
        arguments: dict[str, Json] = {}
        while (match := self.parameter.match(text, at)) is not None:
            key = match["key"].strip()
            if key in arguments:
                message = f"the parameter {quote(key)} appears twice"
                fault = Fault(
                    code="duplicate_key", message=message, position=at, key=key
                )
                raise Broken(fault)
            if self.opens.search(match["value"]) and "<![CDATA[" not in match["value"]:
                raise broken(text, at, f"the parameter {quote(key)} is not closed")
            arguments[key] = _value(text, match)
            at = match.end()
        end = self.end.match(text, at)
        if end is not None and end.groupdict(name).get("name", name) == name:
            return Taken(calls=((name, arguments),), end=end.end())
        if not text[at:].strip() or self.opens.match(text, end_of(_SPACE, text, at)):
            raise cut_off(text, f"inside the call of {name}")
        got = quote(text[at : at + 30].strip())
        message = (
            f"expected more parameters or the end of the call of {name}, got {got}"
        )
        raise broken(text, at, message)


def _value(text: str, match: re.Match[str]) -> Json:
    value = match["value"]
    if (whole := _CDATA.fullmatch(value)) is not None:
        return whole[1]
    if "]<]minimax[>[" in value:
        return _children(text, match.start("value"), value)
    if _NOT_TEXT.search(match[0][: match.start("value") - match.start()]):
        read = loads(value)
        return read.value if isinstance(read, Value) else value
    return value


def _children(text: str, start: int, value: str, depth: int = 1) -> Json:
    """Return the object or list of nested tags (MiniMax M3)."""
    children: list[tuple[str, Json]] = []
    at = 0
    while (match := _CHILD.match(value, at)) is not None:
        content, at = match["value"], match.end()
        nested = "]<]minimax[>[" in content
        if nested and depth > 20:
            break
        children.append(
            (
                match["key"],
                _children(text, start, content, depth + 1) if nested else content,
            )
        )
    keys = {key for key, _ in children}
    if value[at:].strip() or not (keys == {"item"} or len(keys) == len(children)):
        raise broken(text, start, "the tags inside the parameter cannot be read")
    return [item for _, item in children] if keys == {"item"} else dict(children)


def _tags(
    models: str,
    name: str,
    key: str,
    close: str,
    end: str,
    opens: str,
    *,
    registered: bool = False,
) -> _Tagged:
    """Return the family with these tags around names, values and calls."""
    parameter = re.compile(rf"\s*{key}{close}", re.DOTALL)
    name_, end_, opens_ = (re.compile(each) for each in (name, rf"\s*{end}", opens))
    return _Tagged(models, name_, parameter, end_, opens_, registered)


_QUOTED = r"\"(?P<name>[^\"\n]{1,200})\""
_KEY = r"[\"'](?P<key>[^\"'\n]{1,200})[\"']"
_ANY = r"(?P<value>.*?)"

TAGGED: tuple[Family, ...] = (
    _tags(
        "Qwen 3 Coder, Nemotron 3, Step 3.5, Seed",
        r"<function=(?P<name>[^<>\n]{1,200})>",
        # line breaks next to these tags belong to the form, all other text to the value
        r"<parameter=(?P<key>[^<>\n]{1,200})>\n?",
        rf"{_VALUE}\n?</parameter>",
        r"</function>",
        r"<parameter=|</function>",
    ),
    _tags(
        "MiniMax M3",
        rf"{_NS}<invoke name={_QUOTED}>",
        rf"{_NS}<(?P<key>[\w-]{{1,200}})>",
        rf"{_ANY}(?:{_NS})?</(?P=key)>",
        rf"(?:{_NS})?</invoke>",
        rf"{_NS}</?invoke\b",
    ),
    _tags(
        "MiniMax M3, where the server removed its tokens",
        rf"<invoke name={_QUOTED}>(?=\s*+<(?!param(?:eter)?\b)[\w-]{{1,200}}>)",
        r"<(?P<key>[\w-]{1,200})>",
        rf"{_ANY}</(?P=key)>",
        r"</invoke>",
        r"</?invoke\b",
    ),
    _tags(
        "MiniMax M2, Claude, Grok, DeepSeek V3.2 and V4, Step 3, MiniCPM 5",
        rf"<{_PREFIX}(?:invoke|function(?:_call)?) name={_KEY.replace('key', 'name')}>",
        rf"<{_PREFIX}param(?:eter)? name={_KEY}[^<>]{{0,100}}>",
        rf"{_VALUE}</{_PREFIX}param(?:eter)?>",
        rf"</{_PREFIX}(?:invoke|function(?:_call)?)>",
        rf"<{_PREFIX}param(?:eter)? name=|</{_PREFIX}invoke>",
    ),
    _tags(
        "Claude 2",
        rf"<invoke>\s*<tool_name>{NAME}</tool_name>\s*<parameters>",
        r"<(?P<key>[\w-]{1,200})>\n?",
        rf"{_VALUE}\n?</(?P=key)>",
        r"</parameters>\s*</invoke>",
        r"<tool_name>|</?parameters>",
    ),
    _tags(
        "GLM, Hunyuan 3, LongCat, Poolside, Ling 3",
        rf"<{_OF}tool_call{SUFFIX}>\s*{NAME}\s*+(?:<tool_sep>\s*+)?"
        rf"(?=(?:<{_OF}arg_key{SUFFIX}>|</{_OF}tool_call{SUFFIX}>|\Z))",
        rf"<{_OF}arg_key{SUFFIX}>(?P<key>[^<>]{{1,200}})</{_OF}arg_key{SUFFIX}>\s*<{_OF}arg_value{SUFFIX}>",
        rf"{_ANY}</{_OF}arg_value{SUFFIX}>",
        rf"</{_OF}tool_call{SUFFIX}>",
        rf"<{_OF}arg_(?:key|value){SUFFIX}>",
    ),
    _tags(
        "Kimi K3",
        rf"<\|open\|>call tool={_QUOTED}[^<>]{{0,100}}<\|sep\|>",
        rf"<\|open\|>argument key={_KEY}[^<>]{{0,100}}<\|sep\|>",
        rf"{_ANY}<\|close\|>argument<\|sep\|>",
        r"<\|close\|>call<\|sep\|>",
        r"<\|open\|>argument|<\|close\|>call",
    ),
    _tags(
        "models in the manner of Cline and Roo Code",
        rf"<{NAME}>(?=\s*<)",
        r"<(?P<key>[\w-]{1,200})>\n?",
        rf"{_VALUE}\n?</(?P=key)>",
        rf"</{NAME}>",
        r"(?!)",
        registered=True,
    ),
)
