"""Read one JSON string as models write it.

A valid JSON string is read as JSON says. Beyond that, an unescaped quote inside the
string is accepted only where no other reading is possible; in doubt the text is
refused, since a string that ends at the wrong place changes the call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from neuraxis.parsing.json_errors import Broken, Fault, broken, cut_off, end_of, place
from neuraxis.parsing.surrogates import has_surrogate

UNESCAPED_QUOTES = "unescaped quotes inside a string"
CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’"}
"""Opening quote -> the quote that ends the string."""

_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in CLOSING.values()}
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPES = re.compile(r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))++')
_SPACE = re.compile(r"[\s\ufeff\u200b]*")
_COLON = re.compile(r"\s*:")
_COMMA_BEFORE = re.compile(r",\s*\Z")
_COMMA_OR_COLON = re.compile(r"\s*[,:]")
_CLOSERS = re.compile(r"[\s\]}]*")
# A comment after a string counts as one only if it holds no quotes; else the
# "comment" may be the rest of the string.
_COMMENT = re.compile(r"(?://|#)[^\"'“”‘’\n]*(?:\n|$)|/\*[^\"'“”‘’]{0,300}?\*/")
_QUOTED = (
    r"(?:\"(?:[^\"\\\n]|\\.){0,300}\"|'(?:[^'\\\n]|\\.){0,300}'"
    r"|“[^”\n]{0,300}”|‘[^’\n]{0,300}’"
)
_QUOTED_KEY = re.compile(_QUOTED + r")\s*:")
_KEY = re.compile(_QUOTED + r"|[A-Za-z_$][\w$-]{0,100})\s*:")
_LONG_KEY = re.compile(r'"(?:[^"\\\n]|\\.){301}')
_VALUE = re.compile(r"[\"'“‘{\[\d-]|(?:true|false|null|True|False|None)\b")
_JOINED = re.compile(r"\+\s*\Z")
_JOINS = re.compile(r"\s*\+")
_PYTHON_ESCAPE = re.compile(r"\\[abfv0-7xNU/\n]")
"""Escapes that Python and JSON read differently."""
# `, name: ` right before a quote: the string before it was not closed
_BARE_MEMBER = re.compile(r"[,{]\s*[A-Za-z_$][\w$-]*\s*[:=]\s*\Z")
_TRIPLE = "\"'"
_WORD_END = " \t\n,.;:!?)}]"

_decode = json.JSONDecoder().raw_decode


def key_follows(text: str, position: int) -> bool:
    """Return whether a quoted key begins here: a comma is missing."""
    return _QUOTED_KEY.match(text, position) is not None


def read_string(
    text: str,
    start: int,
    *,
    open_brackets: Sequence[str],
    is_key: bool,
    note: Callable[[str], None],
) -> tuple[str, int]:
    """Read the string whose opening quote is at `start`; return its end."""
    quote = text[start]
    close = CLOSING[quote]
    if not is_key and quote in _TRIPLE and text.startswith(quote * 3, start):
        return _read_triple(text, start, open_brackets, note)
    if quote == '"':
        try:
            value, end = _decode(text, start)
        except (ValueError, RecursionError):
            pass
        else:
            if _may_end(text, end, close, open_brackets, is_key):
                return whole(text, start, value), end
    else:
        note("quotes other than double quotes" if quote == "'" else "smart quotes")
    quotes_inside: list[int] = []
    try:
        return _read_loose(
            text, start, close, open_brackets, is_key, note, quotes_inside
        )
    except Broken as error:
        fault = error.fault
        for inside in quotes_inside[:1]:
            fault = _lost_bracket(text, inside + 1, open_brackets) or fault
        reach = max([error.fault.reach, *quotes_inside[-1:]])
        raise Broken(replace(fault, reach=reach)) from None


def _read_triple(
    text: str, start: int, open_brackets: Sequence[str], note: Callable[[str], None]
) -> tuple[str, int]:
    """Read a string of Python between triple quotes."""
    quote = text[start]
    end = start + 3
    while not text.startswith(quote * 3, end):
        if end >= len(text):
            raise cut_off(text, f"inside the string that begins at {start}")
        end += 2 if text[end] == "\\" else 1
    unclear = _PYTHON_ESCAPE.search(text, start, end)
    if unclear is not None or not _may_end(text, end + 3, quote, open_brackets, False):
        raise broken(
            text,
            unclear.start() if unclear is not None else end,
            "triple quotes are not JSON, and this text between them is not clear; "
            "write one string in double quotes",
        )
    parts: list[str] = []
    cursor = start + 3
    while (escape := text.find("\\", cursor, end)) >= 0:
        parts.append(text[cursor:escape])
        piece, cursor = _escape(text, escape, quote, note)
        parts.append(piece)
    parts.append(text[cursor:end])
    note("triple quotes")
    return whole(text, start, "".join(parts)), end + 3


def _read_loose(
    text: str,
    start: int,
    close: str,
    open_brackets: Sequence[str],
    is_key: bool,
    note: Callable[[str], None],
    quotes_inside: list[int],
) -> tuple[str, int]:
    parts: list[str] = []
    plain = _PLAIN[close]
    cursor = start + 1
    while True:
        end = end_of(plain, text, cursor)
        chunk = text[cursor:end]
        if _CONTROL.search(chunk):
            note("line breaks or tabs inside a string")
        parts.append(chunk)
        cursor = end
        if cursor >= len(text):
            if quotes_inside and text.rstrip()[-1] in "}])>`":
                raise _unclear(text, quotes_inside[0])  # its end is written
            context = f"inside the string that begins at {place(text, start)}"
            raise cut_off(text, f"{context}, without a closing quote")
        if text[cursor] == "\\":
            piece, cursor = _escape(text, cursor, close, note)
            parts.append(piece)
        elif _may_end(
            text, cursor + 1, close, open_brackets, is_key, quotes=len(quotes_inside)
        ):
            _refuse_if_ambiguous(text, start, cursor, quotes_inside)
            if quotes_inside:
                note(UNESCAPED_QUOTES)
            if is_key and close != '"' and '"' in text[start:cursor]:
                raise broken(text, start, "expected a key in double quotes")
            return whole(text, start, "".join(parts)), cursor + 1
        else:
            _refuse_quote(text, cursor, close, open_brackets, is_key)
            quotes_inside.append(cursor)
            parts.append(close)
            cursor += 1


def _escape(
    text: str, cursor: int, close: str, note: Callable[[str], None]
) -> tuple[str, int]:
    """Read a run of escapes; unknown ones stay as they are written."""
    match = _ESCAPES.match(text, cursor)
    if match is None:
        following = text[cursor + 1 : cursor + 2]
        if not following:
            raise cut_off(text, "inside an escape")
        if following in (close, "'"):
            note("an escaped single quote")
            return following, cursor + 2
        note("a backslash that begins no JSON escape")
        return "\\", cursor + 1
    # all of a run at once: two halves of one character belong together
    return json.loads(f'"{match[0]}"'), match.end()


def _may_end(
    text: str,
    position: int,
    close: str,
    open_brackets: Sequence[str],
    is_key: bool,
    quotes: int = 0,
) -> bool:
    """Return whether the text at `position` can follow the string's end."""
    if is_key:
        return _COLON.match(text, position) is not None
    position, depth = _behind_closers(text, position, open_brackets)
    if depth == 0:
        # the whole value ends here: what follows may be prose, but no more string
        position = end_of(_CLOSERS, text, position)
        following = text[position : position + 1]
        if following == ",":
            position = _skip(text, position + 1)
            return text[position : position + 1] in "{["
        return following not in (*CLOSING.values(), "“", ":") or not following
    following = text[position : position + 1]
    if not following:
        if quotes or close != '"':
            # `"a", "b` that was cut is no string with quotes in it, and `'it` may
            # have been the beginning of `'it's`.
            raise cut_off(text, "after quotes that may or may not end a string")
        return True
    in_object = open_brackets[depth - 1] == "{"
    if following == ",":
        position = _skip(text, position + 1)
        following = text[position : position + 1]
        if not following or following in "}]":
            return True
        if in_object and quotes:
            return _QUOTED_KEY.match(text, position) is not None
        if in_object:
            return (
                _KEY.match(text, position) is not None
                or _LONG_KEY.match(text, position) is not None
            )
        if quotes:
            raise broken(
                text,
                position,
                "quotes inside a string of a list are not escaped, and it is not "
                'clear where it ends; write \\" for a quote inside a string',
            )
        return _VALUE.match(text, position) is not None
    return in_object and not quotes and key_follows(text, position)


def _behind_closers(
    text: str, position: int, open_brackets: Sequence[str]
) -> tuple[int, int]:
    """Return the place behind closing brackets, and how many are still open."""
    position = _skip(text, position)
    depth = len(open_brackets)
    while depth and text[position : position + 1] == _closer(open_brackets[depth - 1]):
        depth -= 1
        position = _skip(text, position + 1)
    return position, depth


def _lost_bracket(
    text: str, position: int, open_brackets: Sequence[str]
) -> Fault | None:
    """Return the fault of a string before a bracket of another kind."""
    position, depth = _behind_closers(text, position, open_brackets)
    if not depth or text[position : position + 1] not in ("]", "}"):
        return None
    return broken(
        text,
        position,
        f'expected "{_closer(open_brackets[depth - 1])}" before this bracket, if the '
        'string before it ends there; write \\" for a quote inside a string',
    ).fault


def _skip(text: str, position: int) -> int:
    while True:
        position = end_of(_SPACE, text, position)
        comment = _COMMENT.match(text, position)
        if comment is None:
            return position
        position = comment.end()


def _closer(bracket: str) -> str:
    return "}" if bracket == "{" else "]"


def _refuse_quote(
    text: str, cursor: int, close: str, open_brackets: Sequence[str], is_key: bool
) -> None:
    """Raise where the quote can be neither an end nor plain text."""
    if is_key:
        raise broken(text, cursor + 1, 'expected ":" after the key')
    in_list = bool(open_brackets) and open_brackets[-1] == "["
    unclear = _COMMA_OR_COLON if in_list else _COLON
    if (
        text[cursor - 1] == "\\"
        or unclear.match(text, cursor + 1)
        or (in_list and _COMMA_BEFORE.search(text, max(0, cursor - 100), cursor))
    ):
        raise broken(
            text,
            cursor,
            "a quote inside a string is not escaped, and it is not clear where the "
            'string ends; write \\" for a quote inside a string',
        )
    if _BARE_MEMBER.search(text, max(0, cursor - 100), cursor):
        raise broken(
            text,
            cursor,
            "a member seems to begin inside a string; write a closing quote before "
            'it, or \\" for a quote inside a string',
        )
    following = end_of(_SPACE, text, cursor + 1)
    if following > cursor + 1 and text[following : following + 1] == close:
        raise broken(
            text,
            cursor + 1,
            'two strings stand side by side; expected "," or one string',
        )


def _refuse_if_ambiguous(text: str, start: int, end: int, inside: list[int]) -> None:
    """Refuse quotes inside a string that are no pairs."""
    if not inside:
        return
    first, last = inside[0], inside[-1]
    doubled = len(inside) % 2 == 1 and (first == start + 1 or last == end - 1)
    is_pairs = _is_pairs(text, start, inside) if text[start] in _TRIPLE else True
    slips = not _opens(text, start, first) and _opens(text, start, last)
    if doubled or slips or not is_pairs:
        raise _unclear(text, first)


def _unclear(text: str, quote: int) -> Broken:
    return broken(
        text,
        quote,
        "quotes inside a string are not escaped, and it is not clear which of them "
        'belong to it; write one string, with \\" for a quote inside it',
    )


def _is_pairs(text: str, start: int, inside: list[int]) -> bool:
    """Return whether quotes open and close in turn, as around words."""
    is_open = False
    for previous, quote in zip([start, *inside], inside, strict=False):
        before, behind = text[quote - 1], text[quote + 1 : quote + 2]
        apostrophe = text[quote] == "'" and before.isalnum()
        if apostrophe and (behind.isalnum() or not is_open):
            continue
        if not is_open and before.isdigit() and not behind.isalnum():
            continue  # inches
        if not is_open and text.rfind("„", previous, quote) >= 0:
            continue  # the end of „such“ a quotation
        if is_open:
            fits = not behind.isalnum() and not _JOINED.search(
                text, max(0, quote - 20), quote
            )
        else:
            is_boundary = before in "([{=," or behind not in _WORD_END
            fits = (
                not before.isalnum()
                and is_boundary
                and not _JOINS.match(text, quote + 1)
            )
        if not fits:
            return False
        is_open = not is_open
    return not is_open


def _opens(text: str, start: int, quote: int) -> bool:
    """Return whether the quote looks like an opening one."""
    previous, following = text[quote - 1], text[quote + 1 : quote + 2]
    return (quote == start + 1 or not previous.isalnum()) and (
        bool(following) and following not in _WORD_END
    )


def whole(text: str, start: int, value: str) -> str:
    """Return the value, refused if it has characters that cannot be encoded."""
    if has_surrogate(value):
        raise broken(
            text, start, "a string holds half of a character (a lone surrogate)"
        )
    return value
