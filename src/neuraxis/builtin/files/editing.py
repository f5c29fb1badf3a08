"""Edit text files: append, or replace a passage.

The file's encoding and line ends are kept; unchanged parts are not rewritten in another
form.
"""

from __future__ import annotations

from neuraxis.errors import CommandError
from neuraxis.formatting import quote
from neuraxis.parsing.encodings import MARKS, UTF_8, mark_of, text_of

_LONGEST = 64_000_000
"""Maximum characters of a text after passages were replaced."""


def appended(data: bytes, text: str, path: str, *, own_line: bool) -> bytes:
    """Return the file with a text at its end.

    Args:
        data: the whole file.
        text: the text to add.
        path: for messages.
        own_line: begin on a line of its own, and end the last line as the file does.

    Raises:
        CommandError: the file is not a text, or its encoding cannot represent the text.
    """
    old, encoding, _ = _decoded(data, path)
    end = _line_end(old)
    text = _with_ends(text, end)
    if own_line and old:
        if old.endswith("\n"):
            text += "" if text.endswith("\n") else end
        else:
            text = end + text
    return data + _encoded(text, encoding, path)


def replaced(data: bytes, old: str, new: str, path: str, *, every: bool) -> bytes:
    """Return the file with a passage replaced.

    Args:
        data: the whole file.
        old: the current passage.
        new: the new passage.
        path: for messages.
        every: replace all places; without it there must be exactly one.

    Raises:
        CommandError: the passage is missing, or occurs more than once.
    """
    text, encoding, mark = _decoded(data, path)
    if old not in text:
        end = _line_end(text)
        old, new = _with_ends(old, end), _with_ends(new, end)
    first = text.find(old)
    if first < 0:
        # an error is not read: it tells nothing that the model does not know
        similar = old.lower() in text.lower()
        case = " It holds the same words with other upper and lower case letters."
        hint = case if similar else ""
        raise CommandError(
            f"{path!r} does not hold the passage {quote(old)}; nothing was changed."
            f"{hint} Read the file and write the passage exactly as it stands there."
        )
    if not every and text.find(old, first + 1) >= 0:
        lines = sorted({text.count("\n", 0, at) + 1 for at in _places(text, old)})
        line_numbers = ", ".join(map(str, lines[:10]))
        raise CommandError(
            f"{path!r} holds the passage {quote(old)} more than once "
            f"(line {line_numbers}); nothing was changed. Write more of the text "
            "around it, or every: true."
        )
    size = len(text) + text.count(old) * (len(new) - len(old))
    if every and size > _LONGEST:  # before it is made
        raise CommandError(
            f"{path!r} would have {size:,} characters, at most {_LONGEST:,} are "
            "written; nothing was changed. Replace fewer passages or a shorter text."
        )
    text = text.replace(old, new) if every else text.replace(old, new, 1)
    return mark + _encoded(text, encoding, path)


def _places(text: str, old: str) -> list[int]:
    positions, at = list[int](), text.find(old)
    while at >= 0 and len(positions) < 100:
        positions.append(at)
        at = text.find(old, at + 1)
    return positions


def _decoded(data: bytes, path: str) -> tuple[str, str, bytes]:
    """Return the text, its encoding and its byte order mark."""
    decoded = text_of(data)
    if decoded is None:
        raise CommandError(
            f"{path!r} is no text file ({len(data)} bytes); nothing was changed."
        )
    mark = mark_of(data)
    plain = "utf-8" if decoded[1] == UTF_8 else "cp1252"
    encoding = MARKS.get(mark, plain)
    return data[len(mark) :].decode(encoding), encoding, mark


def _encoded(text: str, encoding: str, path: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise CommandError(
            f"{path!r} is written in {encoding}, which has no form for "
            f"{text[error.start]!r}; nothing was changed. Leave that character out."
        ) from None


def _line_end(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _with_ends(text: str, end: str) -> str:
    return text if end == "\n" else text.replace("\r\n", "\n").replace("\n", end)
