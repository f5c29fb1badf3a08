"""Detect the encoding of a text file, and decode it.

UTF-8, or the encoding of a byte order mark, or Windows-1252, which western European
Windows programs still write. Bytes that no text contains are not decoded.
"""

from __future__ import annotations

import codecs
import re

MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""Encodings by their mark; UTF-32 first, since its mark begins with UTF-16's."""
_NO_TEXT = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
UTF_8 = "UTF-8"


def mark_of(data: bytes) -> bytes:
    """Return the byte order mark with which a file begins; empty: none."""
    return next((mark for mark in MARKS if data.startswith(mark)), b"")


def text_of(data: bytes) -> tuple[str, str] | None:
    """Return the text without its mark, and its encoding; None if binary."""
    if mark := mark_of(data):
        encoding = MARKS[mark]
        try:
            text = data[len(mark) :].decode(encoding)
        except UnicodeDecodeError:
            return None
        return text, encoding.upper().removesuffix("-LE").removesuffix("-BE")
    try:
        return data.decode(), UTF_8
    except UnicodeDecodeError:
        pass
    if _NO_TEXT.search(data):
        return None
    try:
        return data.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        return None
