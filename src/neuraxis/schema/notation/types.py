"""Parse types of the notation: `List[int]`, `Union[a, b]`, mappings, field lists.

The value of `type:` becomes a JSON Schema 2020-12 (rules B29-B37, D3). Mistakes are
appended to `problems` with their path in the tree, never raised. This module reads one
type; `nodes.py` reads the node around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import Literal

from msgspec import Struct

from neuraxis.formatting import did_you_mean, nearest
from neuraxis.messages import Path
from neuraxis.schema.builders import MAKERS, is_key, literal_of, union_of
from neuraxis.specs import Json

DEEPEST = 32
"""Maximum levels of nesting of one type."""

_ALIASES: dict[str, str] = {
    **dict.fromkeys(("string", "str"), "string"),
    **dict.fromkeys(("int", "integer", "long"), "integer"),
    **dict.fromkeys(("float", "number", "double"), "number"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
    **dict.fromkeys(("null", "none", "nonetype"), "null"),
    **dict.fromkeys(("any", "object"), "any"),
    **dict.fromkeys(("list", "array", "sequence", "iterable"), "list"),
    **dict.fromkeys(("dict", "mapping", "map"), "dict"),
    "tuple": "tuple",
    **dict.fromkeys(("set", "frozenset"), "set"),
    "optional": "optional",
    "union": "union",
    "literal": "literal",
    **dict.fromkeys(("date", "datetime.date"), "format:date"),
    **dict.fromkeys(("datetime", "datetime.datetime"), "format:date-time"),
    **dict.fromkeys(("time", "datetime.time"), "format:time"),
    **dict.fromkeys(("timedelta", "duration", "datetime.timedelta"), "format:duration"),
    **dict.fromkeys(("uuid", "uuid.uuid"), "format:uuid"),
    **dict.fromkeys(("bytes", "bytearray"), "format:byte"),
    **dict.fromkeys(("path", "pathlib.path"), "format:path"),
    **dict.fromkeys(("decimal", "decimal.decimal"), "format:decimal"),
    **dict.fromkeys(("uri", "url"), "format:uri"),
    "email": "format:email",
}
BUILTIN_NAMES = (
    *("string", "int", "float", "bool", "null", "Any", "List", "Dict", "Tuple", "Set"),
    *("Optional", "Union", "Literal", "date", "datetime", "time", "bytes", "uuid"),
    *("str", "integer", "number", "double", "boolean", "array", "object", "Mapping"),
)
_PREFIXES = ("typing.", "collections.abc.", "builtins.", "typing_extensions.")
_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[^\W\d][\w.\-]*)|(?P<number>[+-]?\d+(?:\.\d+)?)"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<mark>\.\.\.|[\[\],|]))"""
)


LONGEST = 500
"""Maximum characters of a message."""


class NotationProblem(Struct, frozen=True, kw_only=True):
    """Mistake in a notation tree, at a path inside the tree."""

    path: Path = ()
    message: str
    severity: Literal["error", "warning", "command"] = "error"


class TypeTable(Struct, frozen=True):
    """Types of one file by `_type_ref`: the raw values of their `type:`."""

    definitions: Mapping[str, Json] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.definitions


class Reading(Struct, kw_only=True):
    """State of one translation: type table, mistakes, types used."""

    types: TypeTable
    problems: list[NotationProblem]
    response: bool = False
    used: dict[str, None] = {}

    def error(self, path: Path, message: str) -> None:
        """Add a mistake that must stop the load."""
        self.problems.append(NotationProblem(path=path, message=_bounded(message)))

    def drop(self, path: Path, message: str) -> None:
        """Add a mistake that drops only this command."""
        self.problems.append(
            NotationProblem(path=path, message=_bounded(message), severity="command")
        )

    def warn(self, path: Path, message: str) -> None:
        """Add a mistake that does not stop the load."""
        self.problems.append(
            NotationProblem(path=path, message=_bounded(message), severity="warning")
        )


def _bounded(message: str) -> str:
    """Shorten a message, which may quote long input."""
    return message if len(message) <= LONGEST else f"{message[: LONGEST - 1]}…"


def builtin(name: str) -> str | None:
    """Return the canonical name of a builtin type (`Sequence`: `list`), else None."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
    return _ALIASES.get(name.casefold())


# --- the text form -------------------------------------------------------------


class _Token(Struct, frozen=True):
    kind: str
    text: str


class _Mistake(Exception):
    """Mistake in a type text; never leaves this module."""


def parse_type(text: str, path: Path, reading: Reading) -> dict[str, Json]:
    """Parse a type text; return `{}` and add an error if malformed."""
    try:
        parser = _Parser(_tokens(text), text, path, reading)
        schema = parser.union(0)
        parser.end()
    except _Mistake as mistake:
        reading.error(path, str(mistake))
        return {}
    return schema


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            unread = stripped[at : at + 20]
            raise _Mistake(f"type {text!r}: cannot be read from {unread!r} on")
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind]))
        at = match.end()
    if not tokens:
        raise _Mistake("the type is empty: expected a type name such as string")
    return tokens


class _Parser:
    """Recursive descent over one type text; one token of look-ahead."""

    __slots__ = ("at", "path", "reading", "text", "tokens")

    def __init__(
        self, tokens: list[_Token], text: str, path: Path, reading: Reading
    ) -> None:
        self.tokens = tokens
        self.text = text
        self.path = path
        self.reading = reading
        self.at = 0

    def mistake(self, expected: str) -> _Mistake:
        got = self.tokens[self.at].text if self.at < len(self.tokens) else "the end"
        return _Mistake(f"type {self.text!r}: expected {expected}, got {got}")

    def accept(self, mark: str) -> bool:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == "mark" and token.text == mark:
                self.at += 1
                return True
        return False

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise self.mistake("the end of the type")

    def union(self, depth: int) -> dict[str, Json]:
        if depth > DEEPEST:
            raise _Mistake(f"the type is nested deeper than {DEEPEST} levels")
        arms = [self.one(depth)]
        while self.accept("|"):
            arms.append(self.one(depth))
        return arms[0] if len(arms) == 1 else union_of(arms)

    def one(self, depth: int) -> dict[str, Json]:
        if self.at >= len(self.tokens):
            raise self.mistake("a type name")
        token = self.tokens[self.at]
        if token.kind == "text":  # a quoted forward reference: List["node"]
            name = token.text[1:-1]
        elif token.kind == "name":
            name = token.text
        else:
            raise self.mistake("a type name")
        self.at += 1
        meaning = None if name in self.reading.types else builtin(name)
        if meaning == "literal":
            return literal_of(self.literals())
        arguments = self.arguments(depth) if self.accept("[") else None
        if meaning is None:
            return named_type(name, self.path, self.reading)
        return self.generic(name, meaning, arguments)

    def arguments(self, depth: int) -> list[dict[str, Json] | None]:
        """Return the types between brackets; None stands for `...`."""
        types: list[dict[str, Json] | None] = []
        while not self.accept("]"):
            types.append(None if self.accept("...") else self.union(depth + 1))
            if not self.accept(","):
                if not self.accept("]"):
                    raise self.mistake("] or ,")
                break
        return types

    def number(self, text: str) -> int | float:
        try:
            value = float(text) if "." in text else int(text)
        except ValueError:  # more digits than Python converts to an int
            value = inf
        if value == inf or value == -inf:
            raise _Mistake(f"a number of the type has {len(text)} digits: too many")
        return value

    def literals(self) -> list[Json]:
        if not self.accept("["):
            raise self.mistake("[ after Literal")
        values: list[Json] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            words: dict[str, Json] = {"True": True, "true": True, "None": None}
            words |= {"False": False, "false": False, "null": None}
            if token.kind == "text":
                values.append(re.sub(r"\\(.)", r"\1", token.text[1:-1]))
            elif token.kind == "number":
                values.append(self.number(token.text))
            elif token.text in words:
                values.append(words[token.text])
            else:
                raise _Mistake(
                    f"type {self.text!r}: expected a value in Literal, got "
                    f"{token.text}; put a text in quotes"
                )
            if self.accept("]"):
                return values
            if not self.accept(","):
                break
        raise self.mistake("] or ,")

    def generic(
        self, name: str, meaning: str, arguments: list[dict[str, Json] | None] | None
    ) -> dict[str, Json]:
        plain = [argument for argument in arguments or () if argument is not None]
        dots = arguments is not None and len(plain) != len(arguments)
        if dots:
            if meaning != "tuple" or arguments is None or arguments[1:] != [None]:
                raise _Mistake(
                    f"type {self.text!r}: ... is allowed only in Tuple[T, ...]"
                )
            meaning = "list"
        maker = MAKERS.get(meaning)
        if maker is not None:
            if arguments is not None and len(plain) not in maker.count:
                raise _Mistake(
                    f"type {self.text!r}: {name} takes {maker.wanted}, got {len(plain)}"
                )
            if arguments is None and 0 not in maker.count:
                raise _Mistake(f"type {self.text!r}: {name} needs {maker.wanted}")
            if meaning == "dict" and plain and not is_key(plain[0]):
                self.reading.error(
                    self.path,
                    f"type {self.text!r}: keys are always strings (rule B35); "
                    f"write {name}[str, …]",
                )
            return maker.make(plain)
        if arguments is not None:
            raise _Mistake(f"type {self.text!r}: {name} takes nothing in brackets")
        if meaning.startswith("format:"):
            return {"type": "string", "format": meaning.removeprefix("format:")}
        return {} if meaning == "any" else {"type": meaning}


def named_type(name: str, path: Path, reading: Reading) -> dict[str, Json]:
    """Return a `_type_ref` name's or opaque class's schema (B36, B41)."""
    if name in reading.types:
        reading.used.setdefault(name)
        return {"$ref": f"#/$defs/{name}"}
    if "." in name and all(part.isidentifier() for part in name.split(".")):
        return {"x-type": name, "not": {}}
    close = nearest(name, [*reading.types.definitions, *BUILTIN_NAMES])
    hint = did_you_mean(close)
    if reading.response and name[:1].isupper() and not close:
        # Real files name Python classes here without a module. The plugin itself
        # makes the response, so skipping the check is harmless.
        reading.warn(
            path,
            f"unknown type {name!r}: its values are not checked; write a class with "
            f"its module or plugin, as in PLUGIN.{name}",
        )
        return {}
    reading.error(
        path,
        f"unknown type {name!r}: expected a builtin type, a _type_ref of this file or "
        f"a class with its module or plugin, as in PLUGIN.{name}.{hint}",
    )
    return {}
