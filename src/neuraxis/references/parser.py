"""Parse the expressions of the `{{ … }}` grammar in a text.

    expression  = primary { "|" filter }
    primary     = ( root | "(" expression ")" ) { "." word | "[" index "]" }
    root        = previous_result | PREVIOUS | results[n] | a step's own name
    index       = string | integer | [integer] ":" [integer] [":" [integer]]
    filter      = word [ "(" argument { "," argument } ")" ]
    argument    = [word "="] literal
    literal     = string | number | true | false | none | list | object

There are no calls and no attributes, so an expression is only data: a root and a list
of operations. An expression with another root stays text, byte for byte, so that a Vue,
Jinja or workflow file can be written (rule C21); in a plan file it is a mistake
instead, since there a step can say `literal: true`. `{{ '{{' }}` writes the two braces
themselves. All limits count characters read, so time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from neuraxis.formatting import quote
from neuraxis.references.filters import ALIASES, FILTERS, Filter, Operation, Slice
from neuraxis.references.path import MISSING
from neuraxis.specs import Json

MOST_CHARACTERS = 2_000
MOST_DEPTH = 40
MOST_BROKEN = 20
"""Maximum malformed expressions reported per text; the rest is not read."""

PREVIOUS: Final = ("previous_result", "PREVIOUS")
RESERVED: Final = frozenset({*PREVIOUS, "results", "true", "false", "none", "null"})
"""Reserved names, which steps cannot have."""


class Parsed(Struct, frozen=True, kw_only=True):
    """Parsed expression: `index` is the n of `results[n]`, `text` its source."""

    text: str
    root: str
    index: int | None = None
    operations: tuple[Operation, ...] = ()


class Malformed(Struct, frozen=True, kw_only=True):
    """Malformed expression: text in braces that begins with a known root."""

    text: str
    expected: str
    got: str
    candidates: tuple[str, ...] = ()


Piece = str | Parsed | Malformed

# compiled once, at import: a call never compiles a pattern
_START = re.compile(r"""\{\{(?=[\s(]*[^\W\d]|\s*['"]\{\{)""")
_ESCAPE = re.compile(r"""\{\{\s*(?:'\{\{'|"\{\{")\s*\}\}""")
_NAME = r"[^\W\d]\w*(?:-\w+)*"
NAME = re.compile(_NAME)  # names of steps that can be roots
_ROOT = re.compile(rf"\{{\{{[\s(]*({_NAME})")
_RESULTS = re.compile(r"\{\{[\s(]*results\s*\[\s*(-?[0-9]{1,9})\s*\]")
_NUMBERED = "-0123456789"  # first characters of the n of `results[n]`
_BRACES = re.compile(rf"\{{\{{\s*+({_NAME})[^{{}}\n]{{0,200}}+\}}\}}")
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W\d]\w*")
_FIELD = re.compile(r"\w+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STRING = re.compile(
    r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*\"""", re.DOTALL
)
_ESCAPED = re.compile(
    r"(?s)\\(u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*|x[0-9a-fA-F]{2}|.)"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "/": "/"}
_CONSTANTS: dict[str, Json] = {"none": None, "None": None, "null": None}
_CONSTANTS.update({"true": True, "True": True, "false": False, "False": False})


def split(text: str, names: Collection[str], *, strict: bool = False) -> list[Piece]:
    """Split a text into literal pieces and expressions, in order.

    Args:
        text: what the model wrote.
        names: the names of the plan's steps, which are roots too.
        strict: whether an expression with another root is malformed.
    """
    whole = _whole(text) if len(text) <= 200 else None
    if whole is not None and (
        whole.index is not None or whole.root in PREVIOUS or whole.root in names
    ):
        return [whole]
    pieces: list[Piece] = []
    literal = ""
    done = at = 0
    broken = 0
    while broken < MOST_BROKEN and (begin := _START.search(text, at)):
        start = begin.start()
        if escaped := _ESCAPE.match(text, start):
            literal += text[done:start] + "{{"
            done = at = escaped.end()
            continue
        root = _root(text, start, names)
        if root is not None:
            piece, end = _read(text, start, root)
        elif strict and (unknown := _unknown(text, start, names)):
            piece, end = unknown, start + len(unknown.text)
        else:
            at = start + 1
            continue
        literal += text[done:start]
        if literal:
            pieces.append(literal)
            literal = ""
        pieces.append(piece)
        broken += isinstance(piece, Malformed)
        done = at = end
    literal += text[done:]
    if literal or not pieces:
        pieces.append(literal)
    return pieces


def foreign(text: str, names: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield each expression with another root, and that root."""
    for match in _BRACES.finditer(text):
        if _root(text, match.start(), names) is None:
            yield match[0], match[1]


@lru_cache(maxsize=512)
def _whole(text: str) -> Parsed | None:
    """Return the expression if the whole text is one, from a cache."""
    if not text.endswith("}}"):
        return None
    root = _RESULTS.match(text) or _ROOT.match(text)
    if root is None or root[1] == "results" or "-" in root[1][1:]:
        return None
    piece, end = _read(text, 0, root)
    return piece if end == len(text) and isinstance(piece, Parsed) else None


def _root(text: str, start: int, names: Container[str]) -> re.Match[str] | None:
    """Match the root at `start`, if it is a known one."""
    # an expression is shorter than this, so no root can be further away
    limit = start + MOST_CHARACTERS
    match = _ROOT.match(text, start, limit)
    if match is None:
        return None
    if match[1] == "results":
        return _RESULTS.match(text, start, limit)
    if match[1] in PREVIOUS or match[1] in names:
        return match
    # `previous_result-1`: a malformed expression. `a-b` may be a step.
    name = match[1].partition("-")[0]
    if name != match[1] and (name in PREVIOUS or name in names):
        return _ROOT.match(text, start, match.start(1) + len(name))
    return None


def _unknown(text: str, start: int, names: Collection[str]) -> Malformed | None:
    """Read an expression in braces with an unknown root."""
    end = text.find("}}", start, start + MOST_CHARACTERS)
    match = _ROOT.match(text, start, max(start, end))
    if match is None or text.find("{{", start + 2, end) >= 0:
        return None
    whole = text[start : end + 2]
    return Malformed(
        text=whole,
        expected="previous_result, results[n], the name of a step, params or item in "
        f"{quote(whole)} (if the braces are text, the step needs `literal: true`)",
        got=match[1],
        candidates=(*names, PREVIOUS[0], "results[0]"),
    )


def _read(text: str, start: int, root: re.Match[str]) -> tuple[Parsed | Malformed, int]:
    reader = _Reader(text, start, root)
    try:
        operations = reader.whole()
    except _Syntax as error:
        line_end = text.find("\n", reader.at, start + 200)
        shown = text[start : line_end if line_end >= 0 else start + 200]
        return (
            Malformed(
                text=shown,
                expected=f"{error.expected} in {shown[:60]}",
                got=error.got,
                candidates=error.candidates,
            ),
            max(reader.at, start + 2),
        )
    index = int(root[1]) if root[1][0] in _NUMBERED else None
    return (
        Parsed(
            text=text[start + 2 : reader.at - 2].strip(),
            root="results" if index is not None else root[1],
            index=index,
            operations=tuple(operations),
        ),
        reader.at,
    )


class _Syntax(Exception):
    """Expected syntax at the reader's position; never leaves this module."""

    def __init__(
        self, expected: str, got: str, candidates: tuple[str, ...] = ()
    ) -> None:
        self.expected = expected
        self.got = got
        self.candidates = candidates
        super().__init__(expected)


class _Reader:
    """Reads one expression after its root; `at` is the position."""

    __slots__ = ("at", "depth", "end", "text")

    def __init__(self, text: str, start: int, root: re.Match[str]) -> None:
        self.text = text
        self.at = root.end()
        self.end = min(len(text), start + 2 + MOST_CHARACTERS + 2)
        begin = root.end() if root[1][0] in _NUMBERED else root.start(1)
        self.depth = text.count("(", start, begin)

    def whole(self) -> list[Operation]:
        """Read all operations, up to and including the closing braces."""
        if self.depth > MOST_DEPTH:
            raise self.wrong(f"at most {MOST_DEPTH} levels of brackets")
        operations: list[Operation] = []
        piped = False
        while True:
            self.skip()
            if self.take("|"):
                operations.append(self.filter())
                piped = True
            elif self.depth and self.take(")"):
                self.depth -= 1
                piped = False
            elif not piped and self.take("."):
                operations.append(self.field())
            elif not piped and self.take("["):
                operations.append(self.index())
            elif not self.depth and self.take("}}"):
                return operations
            else:
                raise self.wrong(
                    "a ) that closes the bracket"
                    if self.depth
                    else "only keys ['k'] or .k, indices [0], slices [0:3] and filters "
                    "| name, then }} (no calls, no operators; "
                    "{{ '{{' }} writes the braces themselves)"
                )

    def wrong(self, expected: str, candidates: tuple[str, ...] = ()) -> _Syntax:
        if self.at >= len(self.text):
            return _Syntax(expected, "the end of the text", candidates)
        if self.at >= self.end:
            return _Syntax(
                f"at most {MOST_CHARACTERS:,} characters", "more", candidates
            )
        return _Syntax(expected, quote(self.text[self.at : self.at + 20]), candidates)

    def skip(self) -> None:
        space = _SPACE.match(self.text, self.at, self.end)
        if space is not None:
            self.at = space.end()

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at, self.end):
            self.at += len(token)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> str | None:
        result = pattern.match(self.text, self.at, self.end)
        if result is None:
            return None
        self.at = result.end()
        return result[0]

    def field(self) -> str | int:
        self.skip()
        word = self.match(_FIELD)
        if word is None:
            raise self.wrong("a key after the dot")
        return int(word) if word.isascii() and word.isdigit() else word

    def index(self) -> str | int | Slice:
        self.skip()
        key: str | int | Slice | None = self.string()
        if key is None:
            numbers = [self.integer()]
            while len(numbers) < 3 and self.take(":"):
                numbers.append(self.integer())
            if len(numbers) == 1:
                key = numbers[0]
            elif numbers[2:] == [0]:
                raise _Syntax("a slice whose step is not 0", "0")
            else:
                start, stop, step = (*numbers, None, None)[:3]
                key = Slice(start=start, stop=stop, step=step)
        if key is None:
            raise self.wrong("a key in quotes or an integer after [")
        self.skip()
        if not self.take("]"):
            raise self.wrong("a ] after the key or index")
        return key

    def integer(self) -> int | None:
        self.skip()
        start = self.at
        number = self.match(_NUMBER)
        self.skip()
        if number is None:
            return None
        if len(number) > 18 or not number.removeprefix("-").isdigit():
            self.at = start
            raise self.wrong("an integer")
        return int(number)

    def string(self) -> str | None:
        quoted = self.match(_STRING)
        if quoted is None:
            return None
        return _ESCAPED.sub(_unescape, quoted[1:-1]) if "\\" in quoted else quoted[1:-1]

    def filter(self) -> Filter:
        self.skip()
        start = self.at
        word = self.match(_WORD)
        name = ALIASES.get(word or "", word)
        if name is None or name not in FILTERS:
            self.at = start
            raise self.wrong(f"a filter ({', '.join(FILTERS)})", tuple(FILTERS))
        parameters, defaults = FILTERS[name].parameters, FILTERS[name].defaults
        required = len(parameters) - len(defaults)
        values: list[Json] = [MISSING] * required + list(defaults)
        self.skip()
        if self.take("("):
            self.arguments(name, parameters, values)
        if any(value is MISSING for value in values):
            raise _Syntax(
                f"the filter {name} with {name}({', '.join(parameters[:required])})",
                "an argument too few",
            )
        return Filter(name=name, arguments=tuple(values))

    def arguments(
        self, name: str, parameters: Sequence[str], values: list[Json]
    ) -> None:
        count = 0
        while True:
            self.skip()
            if self.take(")"):
                return
            if count and not self.take(","):
                raise self.wrong(f"a , or ) in the filter {name}")
            self.skip()
            place = count
            start = self.at
            word = self.match(_WORD)
            self.skip()
            if word is not None and self.take("="):
                place = list(parameters).index(word) if word in parameters else -1
            else:
                self.at = start
            if not 0 <= place < len(values):
                takes = ", ".join(parameters) or "no arguments"
                raise self.wrong(f"the arguments of {name}: {takes}")
            values[place] = self.literal()
            count += 1

    def literal(self) -> Json:
        self.skip()
        if (text := self.string()) is not None:
            return text
        if (number := self.match(_NUMBER)) is not None:
            return int(number) if number.removeprefix("-").isdigit() else float(number)
        word = self.match(_WORD)
        if word is not None and word in _CONSTANTS:
            return _CONSTANTS[word]
        if self.depth >= MOST_DEPTH:
            raise self.wrong(f"at most {MOST_DEPTH} levels of brackets")
        if word is None and self.take("["):
            return self.many("]")
        if word is None and self.take("{"):
            return dict(self.many("}"))
        raise self.wrong("a literal: a text in quotes, a number, true, false, none, []")

    def many(self, close: str) -> list[Any]:
        """Read the rest of a list, or the pairs of an object."""
        self.depth += 1
        items: list[Any] = []
        while True:
            self.skip()
            if self.take(close):
                self.depth -= 1
                return items
            if items and not self.take(","):
                raise self.wrong(f"a , or {close}")
            self.skip()
            if close == "]":
                items.append(self.literal())
                continue
            key = self.string()
            self.skip()
            if key is None or not self.take(":"):
                raise self.wrong("a key in quotes, then :")
            items.append((key, self.literal()))


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 4:  # as in JSON, two escapes may form one character
        units = bytes.fromhex(code[1:].replace("\\u", ""))
        return units.decode("utf-16-be", "surrogatepass")
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, "\\" + code)
