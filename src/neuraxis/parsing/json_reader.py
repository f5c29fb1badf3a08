r"""Read one JSON value at a place in a text, reporting faults.

Strict reading accepts JSON and nothing else. Lenient reading also accepts what
models write when no meaning is guessed, and notes each leniency. The time is linear
in the length of the text: nothing is read twice except a bounded look-ahead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isfinite

from msgspec import Struct

from neuraxis.messages import Path
from neuraxis.parsing.flawless_json import DEPTH
from neuraxis.parsing.json_errors import Broken, Fault, broken, cut_off, end_of
from neuraxis.parsing.json_strings import (
    CLOSING,
    key_follows,
    read_string,
    whole,
)
from neuraxis.specs import Json

QUICK_DEPTH = 8
"""Maximum nesting of parts that the standard library's reader tries first."""

_SPACE = re.compile(r"[ \t\n\r]*")
_LOOSE_SPACE = re.compile(
    r"(?:[\s\ufeff\u200b\u2060]++|//[^\n]*|#[^\n]*|/\*(?s:.*?)\*/)*+"
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_CUT = re.compile(r"-?[0-9]+(?:\.|(?:\.[0-9]+)?[eE][+-]?)\Z")
_WORD = re.compile(r"[\w$.+-]+")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}
_LOOSE_WORDS: dict[str, Json] = {"True": True, "False": False, "None": None}
_ALL_WORDS = (*_WORDS, *_LOOSE_WORDS)

_decode = json.JSONDecoder().raw_decode

Quick = Callable[[str, int], tuple[Json, int]]


class _Open(Struct):
    """Object or list that was begun and not closed."""

    bracket: str
    container: dict[str, Json] | list[Json]
    key: str = ""

    def put(self, value: Json) -> None:
        if isinstance(self.container, dict):
            self.container[self.key] = value
        else:
            self.container.append(value)

    @property
    def closer(self) -> str:
        return "}" if self.bracket == "{" else "]"


class Reader:
    """Reads one value; `notes` then lists the leniencies used.

    Args:
        text: the whole text.
        lenient: accept also what models write.
        quick: reads a value of flawless JSON, or raises ValueError.
    """

    def __init__(self, text: str, *, lenient: bool, quick: Quick | None) -> None:
        self.text = text
        self.lenient = lenient
        self.quick = quick
        self.notes: dict[str, None] = {}
        self.reach = 0
        self._stack: list[_Open] = []

    def read(self, start: int) -> tuple[Json, int]:
        """Return the value that begins at `start`, and its end."""
        stack = self._stack = []
        position = start
        while True:
            position = self._space(position)
            value, position, opened = self._begin(position)
            if opened:
                continue
            while stack:
                stack[-1].put(value)
                position, more = self._after(position)
                if more:
                    break
                value = stack.pop().container
            else:
                return value, position
            if stack[-1].bracket == "{":
                position = self._key(position)

    def _begin(self, position: int) -> tuple[Json, int, bool]:
        """Read a scalar or container, or open one (third item true)."""
        char = self.text[position : position + 1]
        if char == "" or char not in "{[":
            value, position = self._scalar(position)
            return value, position, False
        if self.quick is not None and len(self._stack) < QUICK_DEPTH:
            try:
                value, end = self.quick(self.text, position)
            except (ValueError, RecursionError):
                pass
            else:
                return value, end, False
        if len(self._stack) >= DEPTH:
            raise broken(
                self.text,
                position,
                f"more than {DEPTH} objects and lists inside each other",
            )
        container = _Open(char, {} if char == "{" else [])
        position = self._space(position + 1)
        if self.text.startswith(container.closer, position):
            return container.container, position + 1, False
        self._stack.append(container)
        if char == "{":
            position = self._key(position)
        return None, position, True

    def _after(self, position: int) -> tuple[int, bool]:
        """Read past a comma or closing bracket; true if an element follows."""
        text, top = self.text, self._stack[-1]
        position = self._space(position)
        char = text[position : position + 1]
        if char == top.closer:
            return position + 1, False
        if char == ",":
            following = self._space(position + 1)
            if following >= len(text):
                raise self._cut("after a comma")
            if text[following] == top.closer:
                if not self.lenient:
                    raise self._broken(following, "no comma before a closing bracket")
                self._note("a comma before a closing bracket")
                return following + 1, False
            return following, True
        if not char:
            raise self._cut("before its closing brackets")
        if self.lenient and self._comma_missing(top, position):
            self._note("a missing comma")
            return position, True
        raise self._broken(position, f'expected "," or "{top.closer}"')

    def _comma_missing(self, top: _Open, position: int) -> bool:
        if isinstance(top.container, dict):
            return key_follows(self.text, position)
        # between two objects or two lists; two bare numbers may be one number
        return self.text[position] in "{[" and isinstance(
            top.container[-1], dict | list
        )

    def _key(self, position: int) -> int:
        """Read a member's key and colon."""
        text, top = self.text, self._stack[-1]
        char = text[position : position + 1]
        if char == '"' or (self.lenient and char in CLOSING and char):
            key, position = self._string(position, is_key=True)
        elif not char:
            raise self._cut("before a key")
        elif self.lenient and (bare := _BARE_KEY.match(text, position)) is not None:
            key, position = bare[0], bare.end()
            self._note("keys without quotes")
        else:
            raise self._broken(position, "expected a key in double quotes")
        assert isinstance(top.container, dict)
        if key in top.container:
            raise Broken(
                Fault(
                    code="duplicate_key",
                    message=f"the key {key!r} appears twice in one object",
                    position=position,
                    path=self.path()[:-1],
                    key=key,
                )
            )
        top.key = key
        position = self._space(position)
        if position >= len(text):
            raise self._cut("after a key")
        if text[position] != ":":
            raise self._broken(position, 'expected ":" after the key')
        return position + 1

    def _scalar(self, position: int) -> tuple[Json, int]:
        text = self.text
        char = text[position : position + 1]
        if char == '"' or (self.lenient and char in CLOSING and char):
            return self._string(position, is_key=False)
        if not char:
            raise self._cut("where a value was expected")
        number = _NUMBER.match(text, position)
        if number is not None and number.end() < len(text):
            ahead = text[number.end()]
            if ahead.isalnum() or ahead in "_.+-$":
                if _NUMBER_CUT.match(text, position):
                    raise self._cut("inside a number")
                raise self._broken(position, "expected a number as JSON writes it")
        if number is not None:
            return self._number(number, position)
        word = _WORD.match(text, position)
        if text.endswith("-") and position == len(text) - 1:
            raise self._cut("inside a number")
        if word is not None:
            return self._word(word[0], position, word.end())
        raise self._broken(position, "expected a value")

    def _number(self, match: re.Match[str], position: int) -> tuple[Json, int]:
        end = match.end()
        if end == len(self.text) and self._stack:
            raise self._cut("inside a number")
        if match[1] is None and match[2] is None:
            try:
                return int(match[0]), end
            except ValueError:  # more digits than Python converts to an int
                raise self._broken(position, "a number has too many digits") from None
        value = float(match[0])
        if not isfinite(value):
            raise self._broken(position, "a number is too large")
        return value, end

    def _word(self, word: str, position: int, end: int) -> tuple[Json, int]:
        if word in _WORDS:
            return _WORDS[word], end
        if self.lenient and word in _LOOSE_WORDS:
            self._note("True, False or None of Python")
            return _LOOSE_WORDS[word], end
        if end == len(self.text) and any(
            literal.startswith(word) for literal in _ALL_WORDS
        ):
            raise self._cut("inside a word")
        instead = "write text in double quotes"
        if _NO_NUMBER.fullmatch(word):
            instead = "JSON has no NaN and no infinity: write a number or null"
        raise self._broken(position, f"expected a value; {instead}")

    def _string(self, position: int, *, is_key: bool) -> tuple[str, int]:
        if self.lenient:
            return read_string(
                self.text,
                position,
                open_brackets=[item.bracket for item in self._stack],
                is_key=is_key,
                note=self._note,
            )
        return self._strict_string(position)

    def _strict_string(self, position: int) -> tuple[str, int]:
        try:
            value, end = _decode(self.text, position)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated"):
                raise self._cut(
                    f"inside the string that begins at {position}"
                ) from None
            raise self._broken(
                error.pos, "a string holds what JSON does not allow there"
            ) from None
        return whole(self.text, position, value), end

    def _space(self, position: int) -> int:
        text = self.text
        end = end_of(_SPACE, text, position)
        if not self.lenient or end >= len(text):
            return end
        char = text[end]
        if char.isascii() and char not in "/#\v\f":
            return end
        loose = end_of(_LOOSE_SPACE, text, end)
        if text.startswith("/*", loose):
            # no comment end before the end of the text
            self.reach = len(text)
        if loose > end:
            skipped = text[end:loose]
            self._note(
                "comments" if "/" in skipped or "#" in skipped else "unusual spaces"
            )
        return loose

    def path(self) -> Path:
        """Return the keys and indices that lead to the reader's position."""
        return tuple(
            item.key if isinstance(item.container, dict) else len(item.container)
            for item in self._stack
        )

    def _note(self, note: str) -> None:
        self.notes[note] = None

    def _broken(self, position: int, message: str) -> Broken:
        return broken(self.text, position, message, path=self.path())

    def _cut(self, where: str) -> Broken:
        return cut_off(self.text, where, path=self.path())
