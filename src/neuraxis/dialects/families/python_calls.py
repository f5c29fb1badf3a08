r"""Read calls in the form of Python, alone or in a list.

They are read by `ast` and never run: a name, and literals for named parameters. Only
calls that stand alone on their lines count, or after a token that says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import isfinite
from typing import cast

from msgspec import Struct

from neuraxis.dialects.families.family import Family, Reading, Taken, bare
from neuraxis.formatting import quote
from neuraxis.parsing.json_errors import Broken, Fault, broken, cut_off, end_of
from neuraxis.parsing.json_scan import Written
from neuraxis.specs import Json

DEPTH = 60
"""Maximum nesting of brackets."""
LONGEST = 200_000
"""Maximum characters of one expression."""

_TOKEN = re.compile(
    r"'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\]|\\.)*+'"
    r"|\"(?:[^\"\\]|\\.)*+\"|['\"]|[()\[\]{}]|\#[^\n]*|[^'\"()\[\]{}\#]++",
    re.DOTALL,
)
_NAMES = re.compile(
    r"(?<![\w.])(?:(?P<head>[^\W\d][\w.-]{0,200}+)(?P<call>\s*+\Z)"
    r"|(?P<key>[^\W\d][\w.-]{0,200}+)(?=\s*=(?!=)))"
)
_ESCAPE = re.compile(
    r"\\(?P<known>[\\'\"abfnrtv]|0(?!\d)|x[\da-fA-F]{2}|u[\da-fA-F]{4})?", re.DOTALL
)
_NO_NUMBER = re.compile(r"(?<![\w.])\d[\d._]*(?![eE][+-]?\d)[^\W\d_]")
BEFORE = r"print\(\s*+|Call:[ \t]*+|[^\W\d]\w{0,60}+[ \t]*+=[ \t]*+"
"""What may precede a call: `print(`, an announcement, or a result's name."""
_GIVEN_NAME = re.compile(BEFORE.partition("|")[2])
_REST = re.compile(r"(?:`(?!`))?[ \t]*+(?:\#[^\n]*+)?")
_BODY = re.compile(r"[ \t]*+\{")
_LINE_ENDS = re.compile(
    rf"{_REST.pattern}(?:[;,.]?[ \t]*+(?:\r?\n|\Z)|```|</?\w|<[|｜])"
)
_BEHIND_SENTENCE = re.compile(r"[.!?][ \t]")
_NEXT = re.compile(
    r"\s*+(?:[,;]\s*+)?(?:\#[^\n]*\s*+)*+"
    rf"(?:{_GIVEN_NAME.pattern})?+(?=[^\W\d][\w.-]*+\()"
)
_QUOTED = re.compile(r"\[\s*+[\"'`]")
_NEXT_QUOTED = re.compile(r"([\"'`])\s*+,\s*+\1(?=[^\W\d])")
_LAST_QUOTED = re.compile(r"[\"'`]\s*+\]")
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}


class _Python(Struct, frozen=True):
    models: str
    begin: re.Pattern[str]

    def read(self, text: str, begin: re.Match[str], reading: Reading) -> Taken | None:
        at = end_of(_GIVEN_NAME, text, begin.start())
        is_list = text[at] == "["
        is_known_tool = reading.is_tool(_bare(begin["name"], reading))
        is_alone = reading.is_alone()
        whole = is_alone and (is_list or "```" not in text[:at])
        if not (reading.framed or is_known_tool or whole):
            return None
        quoted = _QUOTED.match(text, at)
        at = quoted.end() if quoted else at
        calls: list[Written] = []
        end = at
        if (
            is_list
            and not reading.framed
            and _BEHIND_SENTENCE.match(text, begin.start() - 2)
        ):
            raise broken(text, at, "expected the calls on a line of their own")
        try:
            while True:
                source, names, end = _scan(text, at)
                calls += _calls(text, at, source, names, reading)
                following = (
                    _NEXT_QUOTED.match(text, end) if quoted else _NEXT.match(text, end)
                )
                if following is None or (is_list and not quoted):
                    break
                at = following.end()
            if quoted:
                if (last := _LAST_QUOTED.match(text, end)) is None:
                    raise broken(text, end, "expected nothing but calls in the list")
                end = last.end()
            if _BODY.match(text, end):
                return None  # a function of another language is defined
            if not (reading.framed or _LINE_ENDS.match(text, end)):
                raise broken(text, end, "expected nothing after a call on its line")
            end = end_of(_REST, text, end)
        except Broken as error:
            reading.reach = max(end, error.fault.position)
            is_truncated = error.fault.code == "truncated"
            opens = is_alone or reading.is_fenced()
            code = is_list or is_truncated or (opens and text.rstrip()[-1] in ")]}`;")
            if reading.framed or (is_known_tool and code):
                raise
            return None  # words, or a program that is only shown
        is_whole = whole and not text[end:].strip(" \t\r\n`.")
        is_whole = is_whole and (is_list or all(given for _, given in calls))
        if reading.framed or is_whole or all(reading.is_tool(to) for to, _ in calls):
            return Taken(calls=tuple(calls), end=end)
        return None


def _scan(text: str, start: int) -> tuple[str, list[str], int]:
    """Return an expression for `ast`, its names, and its end.

    Names become `_0`, `_1` …: a tool or a parameter may be called `from` or `get-it`.
    """
    parts: list[str] = []
    names: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(text, start, min(len(text), start + LONGEST)):
        token = match[0]
        if token[0] in "'\"":
            if len(token) == 1:
                raise cut_off(text, f"inside the text that begins at {match.start()}")
            parts.append(_string(token, text[match.start() - 1] in "rR"))
        elif token in "([{":
            depth += 1
            if depth > DEPTH:
                raise broken(text, match.start(), "too many brackets")
            parts.append(token)
        elif token in ")]}":
            depth -= 1
            parts.append(token)
            if depth <= 0:
                return "".join(parts), names, match.end()
        elif token[0] != "#":
            is_call = text[match.end() : match.end() + 1] == "("
            parts.append(_renamed(text, match.start(), token, names, is_call))
    raise cut_off(text, "before the closing brackets of a call")


def _renamed(text: str, at: int, code: str, names: list[str], is_call: bool) -> str:
    if _NO_NUMBER.search(code):
        raise broken(text, at, "expected a number as JSON writes it")

    def rename(match: re.Match[str]) -> str:
        if match["head"] is not None and not is_call:
            return match[0]
        names.append(match["head"] or match["key"])
        return f"_{len(names) - 1}"

    return _NAMES.sub(rename, code)


def _string(token: str, raw: bool) -> str:
    """Return a string whose line breaks and lone backslashes are escaped."""
    if not raw:
        token = _ESCAPE.sub(lambda m: m[0] if m["known"] else "\\\\", token)
    if token[:3] in ("'''", '"""'):
        return token
    return token.replace("\r", "\\r").replace("\n", "\\n")


def _calls(
    text: str, at: int, source: str, names: list[str], reading: Reading
) -> Iterator[Written]:
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise broken(text, at, "expected calls as name(parameter=value)") from None
    elements = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
    for node in elements:
        call = _call_of(node)
        if call is not None and _name(call, names) == "print" and len(call.args) == 1:
            call = _call_of(call.args[0])
        if call is None or not (name := _bare(_name(call, names), reading)):
            raise broken(text, at, "expected calls as name(parameter=value)")
        arguments: dict[str, Json] = {}
        for keyword in call.keywords:
            key = _own(keyword.arg or "", names)
            if not key or call.args:
                break
            if key in arguments:
                message = f"the parameter {quote(key)} appears twice"
                raise Broken(
                    Fault(code="duplicate_key", message=message, position=at, key=key)
                )
            arguments[key] = _literal(text, at, keyword.value)
        if not arguments and len(call.args) == 1 and isinstance(call.args[0], ast.Dict):
            arguments = cast("dict[str, Json]", _literal(text, at, call.args[0]))
        elif call.args or len(arguments) < len(call.keywords):
            message = f"write each argument of {name} as parameter=value"
            raise broken(text, at, message)
        yield name, arguments


def _call_of(node: ast.expr) -> ast.Call | None:
    return node if isinstance(node, ast.Call) else None


def _name(call: ast.Call, names: list[str]) -> str:
    return _own(call.func.id, names) if isinstance(call.func, ast.Name) else ""


def _own(name: str, names: list[str]) -> str:
    # an index is short: a model's own `_999…` may have more digits than Python reads
    digits = name.removeprefix("_")[:9]
    is_ours = name == f"_{digits}" and digits.isdecimal() and int(digits) < len(names)
    return names[int(digits)] if is_ours else ""


def _bare(name: str, reading: Reading) -> str:
    """Return a name without the prefixes that Gemini and Llama write."""
    return name if reading.is_tool(name) else bare(name).removesuffix(".call")


def _literal(text: str, at: int, node: ast.expr) -> Json:
    match node:
        case ast.Constant(value=bool() | None | int() as value):
            return value
        case ast.Constant(value=str() as value):
            try:  # two halves of one character belong together
                return value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                raise broken(text, at, "a text holds half of a character") from None
        case ast.Constant(value=float() as value) if isfinite(value):
            return value
        case ast.Name(id=word) if word in _WORDS:
            return _WORDS[word]
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.Constant(value=int() | float() as n)
        ):
            return -n
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_literal(text, at, item) for item in items]
        case ast.Dict(keys=keys, values=values):
            entries: dict[str, Json] = {}
            for key, value in zip(keys, values, strict=True):
                name = None if key is None else _literal(text, at, key)
                if not isinstance(name, str) or name in entries:
                    raise broken(text, at, "expected each key of a dict once, as text")
                entries[name] = _literal(text, at, value)
            return entries
        case _:
            message = (
                "expected literals: texts, numbers, lists, dicts; call a tool first"
            )
            raise broken(text, at, f"{message} and use its result in a later call")


PYTHON: Family = _Python(
    "Llama 4, LFM 2, OLMo 3, Gemini, and models that are asked for it",
    re.compile(rf"(?:\[\s*+[\"'`]?|{BEFORE})?(?P<name>[^\W\d][\w.-]*+)[ \t]*+\("),
)
